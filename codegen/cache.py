"""The cache on disk: what was compiled, by a digest of all that it depends on (``cache_key.py``).

Files are written aside and moved into place, so readers in other processes see a whole entry or none, and an entry may
be removed at any time. A damaged or foreign entry is dropped, never trusted. Where the folder cannot be written,
nothing is cached.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs

from ..ir.errors import CacheError
from .cache_entry import About, decode, encode, read_about

_log = logging.getLogger("loopwright.cache")
_NEW = ".new-"
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

    def about(self) -> About | None:
        """What it says of itself; None if that cannot be read."""
        try:
            return read_about(self.path)
        except (OSError, CacheError):
            return None

    def problem(self) -> str | None:
        """What is wrong with it, None if it is whole; one that another process has just removed has no problem."""
        try:
            decode(self.key, self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, CacheError) as error:
            return str(error)
        return None

    def drop(self) -> None:
        """Remove it. Raises ``CacheError`` where that is not allowed."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise CacheError(f"the entry {self.path} cannot be removed: {error.strerror}") from error


class DiskCache:
    """Entries in a folder. Holds no state but whether a failure to write has been reported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._warned = False

    def _path(self, key: str) -> Path:
        return self.folder / "objects" / key[:2] / key[2:]

    def get(self, key: str) -> bytes | None:
        """The content stored under a key, or None if there is none that is whole."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(error)
            return None
        try:
            _, content = decode(key, data)
        except CacheError as error:
            self.drop(key, str(error))
            return None
        _note_use(path)
        return content

    def put(self, key: str, about: About, content: bytes) -> None:
        """Store something; a folder that cannot be written is reported once and otherwise ignored."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=_NEW)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(encode(key, about, content))
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            self._warn(error)

    def drop(self, key: str, reason: str) -> None:
        """Remove an entry that cannot be used, with a warning."""
        path = self._path(key)
        _log.warning("dropping a damaged entry of the cache, %s: %s", path, reason)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(error)

    def entries(self) -> list[CacheEntry]:
        """All entries, by key. Raises ``CacheError`` where the folder cannot be read."""
        found = []
        for path in self._files():
            key = path.parent.name + path.name
            with suppress(FileNotFoundError):  # another process removed it
                if re.fullmatch(r"[0-9a-f]{64}", key):
                    status = path.stat()
                    found.append(CacheEntry(path, key, status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: entry.key)

    def leftovers(self, seconds: float) -> list[Path]:
        """Files that writers left behind when they died, unchanged for so long."""
        found = []
        for path in self._files():
            with suppress(FileNotFoundError):
                if path.name.startswith(_NEW) and time.time() - path.stat().st_mtime > seconds:
                    found.append(path)
        return sorted(found)

    def nests(self, seconds: float) -> list[Path]:
        """Loop nests that line tables speak of (``nest_source.py``), written longer ago than that. Whoever loads such
        code writes them again."""
        found = []
        for path in (self.folder / NESTS).glob("*"):
            with suppress(FileNotFoundError):
                ours = _NEST.fullmatch(path.name) and path.is_file()
                if ours and time.time() - path.stat().st_mtime > seconds:
                    found.append(path)
        return sorted(found)

    def _files(self) -> Iterator[Path]:
        """The files where entries lie; some may not be ours."""
        folder = self.folder / "objects"
        if not folder.exists():
            return
        try:
            for inner in folder.iterdir():
                if re.fullmatch(r"[0-9a-f]{2}", inner.name) and inner.is_dir():
                    yield from (path for path in inner.iterdir() if path.is_file())
        except OSError as error:
            raise CacheError(f"the cache folder {self.folder} cannot be read: {error.strerror}") from error

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("the cache in %s is not usable, going on without it: %s", self.folder, error)


def _note_use(path: Path) -> None:
    with suppress(OSError):  # removed by now, or not ours to touch
        if time.time() - path.stat().st_mtime > _USE_NOTED_EVERY:
            os.utime(path)


@cache
def _cache_in(folder: Path) -> DiskCache:
    return DiskCache(folder)


def disk_cache() -> DiskCache:
    """The cache in the folder that the environment names now."""
    return _cache_in(cache_folder())
