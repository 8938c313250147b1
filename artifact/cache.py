"""The cache on disk: what was compiled, by a digest of all that it depends on (``cache_key.py``).

What is in it is run, so it is used only where none but trusted users could have written it (``cache_folder.py``). Files
are written aside and moved into place, so readers in other processes see a whole entry or none, and an entry may be
removed at any time. A damaged or foreign entry is dropped, never trusted. Where the folder is not trusted, or cannot be
written, nothing is cached.

What is large, as weights are, lies in a file of sections beside the entry, which is mapped (``section_file.py``). The
entry has the digest of its header, so that the seal holds for all whose digest is checked.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import IO

import platformdirs

from ..base.dataclass import dataclass
from ..base.errors import CacheError, ModelError
from .cache_entry import MAX_BYTES, MODEL, About, decode, encode, read_about
from .cache_folder import CacheFolder, Opened, named_folders
from .section_file import Section, SectionFile, write_sections_to
from .trusted_files import file_inside, read_inside, write_inside

_log = logging.getLogger("loopwright.cache")
_NEW = ".new-"
_OBJECTS = "objects"
_MAPPED = "mapped"
NESTS = "nests"
_KEY = re.compile(r"[0-9a-f]{64}")
_NEST = re.compile(r"\w+-[0-9a-f]{12}\.loops|\.new-.*")
_USE_NOTED_EVERY = 3600.0
"""Seconds: the time of an entry's last use is not kept more precisely, which would be a write at each use."""
_FREE_AT_LEAST = 4
"""A file that is mapped may take one part of so many of what is free on the disk."""


def cache_folder() -> Path:
    """``LOOPWRIGHT_CACHE_DIR``, or the platform's folder for caches."""
    named = os.environ.get("LOOPWRIGHT_CACHE_DIR")
    return Path(named) if named else Path(platformdirs.user_cache_dir("loopwright", appauthor=False))


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An entry as it lies on disk: its bytes, and when it was last used, in seconds since 1970."""

    path: Path
    key: str
    size: int
    used: float
    cache: DiskCache = field(repr=False)

    def about(self) -> About | None:
        """What it says of itself; None if that cannot be read."""
        try:
            return read_about(self.cache.read(self.key))
        except (OSError, CacheError):
            return None

    def problem(self) -> str | None:
        """What is wrong with it, None if it is whole; one that another process has just removed has no problem."""
        try:
            self.cache.check(self.key)
        except FileNotFoundError:
            return None
        except (OSError, CacheError) as error:
            return str(error)
        return None

    def drop(self) -> None:
        """Remove the entry from the disk. Raises ``CacheError`` where that is not allowed."""
        self.cache.remove(self.path)


class DiskCache:
    """Entries in a folder; ``named`` are folders whose owners are trusted. Mutable: knows what it has told of."""

    def __init__(self, folder: Path, named: tuple[Path, ...] = ()) -> None:
        self.folder = folder
        self._place = CacheFolder(folder, named)
        self._told: set[str] = set()

    def _path(self, key: str) -> Path:
        """Where the entry of a key lies."""
        return self.folder / _OBJECTS / key[:2] / key[2:]

    def get(self, key: str) -> bytes | None:
        """The content stored under a key, or None if there is none that is whole and trusted."""
        try:
            with self._place.trusted(_OBJECTS, key[:2]) as opened:
                return self._whole(opened, key)
        except FileNotFoundError:
            return None
        except (OSError, CacheError) as error:
            self._tell(error)
            return None

    def put(self, key: str, about: About, content: bytes) -> None:
        """Store something; a folder that is not trusted, or cannot be written, is reported once, otherwise ignored."""
        try:
            with self._place.trusted(_OBJECTS, key[:2], make=True) as opened:
                data = encode(key, about, content, opened.secret)
                write_inside(opened.descriptor, key[2:], _new_name(), lambda file: file.write(data))
        except (OSError, CacheError) as error:
            self._tell(error)

    def sections(self, key: str) -> SectionFile | None:
        """The file beside the entry of a key, mapped; None if there is none that is trusted. Only what is asked of it
        as bytes is checked."""
        digest = self.get(key)
        if digest is None:
            return None
        try:
            with self._place.trusted(_MAPPED, key[:2]) as opened:
                return _sections(file_inside(opened.descriptor, key[2:], opened.owners), digest)
        except FileNotFoundError:
            self.drop(key, "the file beside it is not there")
        except CacheError as error:
            self.drop(key, str(error))
        except OSError as error:
            self._tell(error)
        return None

    def put_sections(self, key: str, about: About, sections: Iterable[Section], content: Callable[[], object]) -> None:
        """Store a file of sections, which are written as they come, beside an entry of the kind ``MODEL``, as ``put``
        does; where the disk has little room left, nothing. Nothing is left of it if ``sections`` or ``content``
        raise."""
        try:
            with self._place.trusted(_MAPPED, key[:2], make=True) as opened:
                fitting = _fitting(sections, opened.descriptor)
                digest = write_inside(
                    opened.descriptor, key[2:], _new_name(), lambda file: write_sections_to(file, fitting, content)
                )
        except _NoRoomError:
            return
        except (OSError, CacheError) as error:
            self._tell(error)
        else:
            self.put(key, about, digest.encode())

    def put_nest(self, name: str, text: str) -> None:
        """Store a loop nest that line tables speak of, unless it is there; as ``put`` does."""
        try:
            with self._place.trusted(NESTS, make=True) as opened:
                if not os.access(name, os.F_OK, dir_fd=opened.descriptor):
                    write_inside(opened.descriptor, name, _new_name(), lambda file: file.write(text.encode()))
        except (OSError, CacheError) as error:
            self._tell(error)

    def drop(self, key: str, reason: str) -> None:
        """Remove an entry that cannot be used, and the file beside it, with a warning."""
        path = self._path(key)
        _log.warning("dropping a damaged entry of the cache, %s: %s", path, reason)
        try:
            self.remove(path)
        except CacheError as error:
            self._tell(error)

    def distrust(self) -> str | None:
        """Why nothing in the folder is used, and what to do; None if it is trusted, or not there yet."""
        why = self._place.distrust()
        return None if why is None else f"{why}: {self._place.advice()}"

    def read(self, key: str) -> bytes:
        """The bytes of an entry, whoever wrote them. Raises ``OSError``, and ``CacheError`` for what is no file."""
        with self._place.untrusted(_OBJECTS, key[:2]) as folder:
            return read_inside(folder, key[2:], MAX_BYTES, None)

    def check(self, key: str) -> None:
        """Raise ``CacheError`` or ``OSError`` for an entry that is damaged, or, in a cache that is trusted, was written
        by others."""
        with self._opened(_OBJECTS, key) as opened:
            data = read_inside(opened.descriptor, key[2:], MAX_BYTES, opened.owners)
            about, content = decode(key, data, opened.secret)
        if about.kind != MODEL:
            return
        with self._opened(_MAPPED, key) as opened:
            found = _sections(file_inside(opened.descriptor, key[2:], opened.owners), content)
        try:
            found.check_all()
        except ModelError as error:
            raise CacheError(f"the file beside it is damaged: {error}") from error

    def remove(self, path: Path) -> None:
        """Remove a file of the cache, if it is there, and one that is mapped beside it. Raises ``CacheError`` where
        that is not allowed."""
        top, *names = path.relative_to(self.folder).parts
        try:
            for folder_name in (top, _MAPPED) if top == _OBJECTS else (top,):
                with suppress(FileNotFoundError), self._place.untrusted(folder_name, *names[:-1]) as folder:
                    os.unlink(names[-1], dir_fd=folder)
        except OSError as error:
            raise CacheError(f"{path} cannot be removed: {error.strerror}") from error

    def entries(self) -> list[CacheEntry]:
        """All entries, by key. Raises ``CacheError`` where the folder cannot be read."""
        found = []
        mapped = {_key_of(path): status.st_size for path, status in self._files(_MAPPED)}
        for path, status in self._files(_OBJECTS):
            key = _key_of(path)
            if _KEY.fullmatch(key):
                size = status.st_size + mapped.get(key, 0)
                found.append(CacheEntry(path, key, size, status.st_mtime, self))
        return sorted(found, key=lambda entry: entry.key)

    def leftovers(self, seconds: float) -> list[Path]:
        """Files that writers left behind when they died, and what is mapped without an entry, unchanged for so long."""
        before = time.time() - seconds
        mapped, kept = list(self._files(_MAPPED)), {entry.key for entry in self.entries()}
        written = [*self._files(_OBJECTS), *mapped]
        found = [(path, status) for path, status in written if path.name.startswith(_NEW)]
        found += [(p, status) for p, status in mapped if _KEY.fullmatch(_key_of(p)) and _key_of(p) not in kept]
        return sorted(path for path, status in found if status.st_mtime < before)

    def nests(self, seconds: float) -> list[Path]:
        """Loop nests that line tables speak of (``nest_source.py``), written longer ago than that. Whoever loads such
        code writes them again."""
        before = time.time() - seconds
        found = self._files_in(NESTS)
        return sorted(p for p, status in found if _NEST.fullmatch(p.name) and status.st_mtime < before)

    def _whole(self, opened: Opened, key: str) -> bytes | None:
        """The content of an entry, which is dropped if it cannot be used."""
        try:
            data = read_inside(opened.descriptor, key[2:], MAX_BYTES, opened.owners)
            _, content = decode(key, data, opened.secret)
        except CacheError as error:
            self.drop(key, str(error))
            return None
        _note_use(opened.descriptor, key[2:])
        return content

    def _opened(self, top: str, key: str) -> AbstractContextManager[Opened]:
        """The folder of a key under another one, trusted if the cache is."""
        trusted = self._place.distrust() is None
        return self._place.trusted(top, key[:2]) if trusted else self._place.unsealed(top, key[:2])

    def _files(self, top: str) -> Iterator[tuple[Path, os.stat_result]]:
        """The files where entries lie, or what is mapped; some may not be ours."""
        try:
            with suppress(FileNotFoundError), self._place.untrusted(top) as folder, os.scandir(folder) as found:
                for inner in found:
                    if re.fullmatch(r"[0-9a-f]{2}", inner.name) and inner.is_dir(follow_symlinks=False):
                        yield from self._files_in(top, inner.name)
        except OSError as error:
            raise CacheError(f"the cache folder {self.folder} cannot be read: {error.strerror}") from error

    def _files_in(self, *names: str) -> Iterator[tuple[Path, os.stat_result]]:
        with suppress(FileNotFoundError), self._place.untrusted(*names) as folder, os.scandir(folder) as found:
            for each in found:
                with suppress(FileNotFoundError):  # another process removed it
                    if each.is_file(follow_symlinks=False):
                        yield self.folder.joinpath(*names, each.name), each.stat(follow_symlinks=False)

    def _tell(self, error: OSError | CacheError) -> None:
        """Say once that the cache is not used, or an entry of it, and what to do."""
        text = str(error.strerror) if isinstance(error, OSError) else f"{error}: {self._place.advice()}"
        if text not in self._told:
            self._told.add(text)
            _log.warning("the cache in %s is not usable, going on without it: %s", self.folder, text)


def _key_of(path: Path) -> str:
    return path.parent.name + path.name


class _NoRoomError(Exception):
    """The disk has little room for what is to be stored."""


def _fitting(sections: Iterable[Section], folder: int) -> Iterator[Section]:
    """The sections. Raises ``_NoRoomError`` at the first one that the disk of a folder has little room for."""
    disk = os.fstatvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    for section in sections:
        free -= _FREE_AT_LEAST * (len(section) if isinstance(section, bytes) else section.nbytes)
        if free < 0:
            raise _NoRoomError
        yield section


def _sections(file: IO[bytes], digest: bytes) -> SectionFile:
    """The file of this digest, which is closed, mapped. Raises ``CacheError`` for another one."""
    try:
        with file:
            found = SectionFile(file)
    except (ModelError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise CacheError(f"the file beside it cannot be read: {error}") from error
    if found.digest.encode() != digest:
        raise CacheError("the file beside it is of another entry")
    return found


def _new_name() -> str:
    return f"{_NEW}{secrets.token_hex(8)}"


def _note_use(folder: int, name: str) -> None:
    with suppress(OSError):  # removed by now, or not ours to touch
        if time.time() - os.stat(name, dir_fd=folder).st_mtime > _USE_NOTED_EVERY:
            os.utime(name, dir_fd=folder)


@cache
def _cache_in(folder: Path, named: tuple[Path, ...]) -> DiskCache:
    return DiskCache(folder, named)


def disk_cache() -> DiskCache:
    """The cache in the folder that the environment names now."""
    return _cache_in(cache_folder(), named_folders())
