"""The cache on disk: what was compiled, by a digest of all that it depends on (``cache_key.py``).

What is in it is run, so it is used only where none but trusted users could have written it (``cache_folder.py``). Files
are written aside and moved into place, so readers in other processes see a whole entry or none, and an entry may be
removed at any time. A damaged or foreign entry is dropped, never trusted. Where the folder is not trusted, or cannot be
written, nothing is cached.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import platformdirs

from ..base.errors import CacheError
from .cache_entry import MAX_BYTES, About, decode, encode, read_about
from .cache_folder import CacheFolder, Opened, named_folders
from .trusted_files import read_inside, write_inside

_log = logging.getLogger("loopwright.cache")
_NEW = ".new-"
_OBJECTS = "objects"
NESTS = "nests"
_NEST = re.compile(r"\w+-[0-9a-f]{12}\.loops|\.new-.*")
_USE_NOTED_EVERY = 3600.0
"""Seconds: the time of an entry's last use is not kept more precisely, which would be a write at each use."""


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
        """Remove it. Raises ``CacheError`` where that is not allowed."""
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
                write_inside(opened.descriptor, key[2:], _new_name(), data)
        except (OSError, CacheError) as error:
            self._tell(error)

    def put_nest(self, name: str, text: str) -> None:
        """Store a loop nest that line tables speak of, unless it is there; as ``put`` does."""
        try:
            with self._place.trusted(NESTS, make=True) as opened:
                if not os.access(name, os.F_OK, dir_fd=opened.descriptor):
                    write_inside(opened.descriptor, name, _new_name(), text.encode())
        except (OSError, CacheError) as error:
            self._tell(error)

    def drop(self, key: str, reason: str) -> None:
        """Remove an entry that cannot be used, with a warning."""
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
        if self._place.distrust() is not None:
            decode(key, self.read(key), None)
            return
        with self._place.trusted(_OBJECTS, key[:2]) as opened:
            decode(key, read_inside(opened.descriptor, key[2:], MAX_BYTES, opened.owners), opened.secret)

    def remove(self, path: Path) -> None:
        """Remove a file of the cache, if it is there. Raises ``CacheError`` where that is not allowed."""
        names = path.relative_to(self.folder).parts
        try:
            with suppress(FileNotFoundError), self._place.untrusted(*names[:-1]) as folder:
                os.unlink(names[-1], dir_fd=folder)
        except OSError as error:
            raise CacheError(f"{path} cannot be removed: {error.strerror}") from error

    def entries(self) -> list[CacheEntry]:
        """All entries, by key. Raises ``CacheError`` where the folder cannot be read."""
        found = []
        for path, status in self._files():
            key = path.parent.name + path.name
            if re.fullmatch(r"[0-9a-f]{64}", key):
                found.append(CacheEntry(path, key, status.st_size, status.st_mtime, self))
        return sorted(found, key=lambda entry: entry.key)

    def leftovers(self, seconds: float) -> list[Path]:
        """Files that writers left behind when they died, unchanged for so long."""
        before = time.time() - seconds
        return sorted(p for p, status in self._files() if p.name.startswith(_NEW) and status.st_mtime < before)

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

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """The files where entries lie; some may not be ours."""
        try:
            with suppress(FileNotFoundError), self._place.untrusted(_OBJECTS) as folder, os.scandir(folder) as found:
                for inner in found:
                    if re.fullmatch(r"[0-9a-f]{2}", inner.name) and inner.is_dir(follow_symlinks=False):
                        yield from self._files_in(_OBJECTS, inner.name)
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
