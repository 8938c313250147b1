"""The folder of a cache, opened where what it holds may be run: nobody but trusted users could have written it.

These are this user, whose entries have a seal, and the owners of the folders that ``LOOPWRIGHT_CACHE_TRUST`` names
(with ``:`` between them), for the caches in these folders. There entries need no seal: so a cache that another user has
made is handed on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ..base.errors import CacheError
from .cache_secret import user_secret
from .trusted_files import FOLDER, open_folder, open_inside, this_user, user_name

VARIABLE = "LOOPWRIGHT_CACHE_TRUST"


class Opened(NamedTuple):
    """A descriptor of a folder in a cache; the users who may have written what is in it, None for anybody; and the
    secret by which its entries are sealed, None where they need no seal."""

    descriptor: int
    owners: frozenset[int] | None
    secret: bytes | None


class _Known(NamedTuple):
    """A folder that is trusted; ``identity`` tells it apart from others, and from itself with other rights."""

    identity: tuple[int, ...]
    owners: frozenset[int]
    named: bool


class CacheFolder:
    """Mutable: knows which folder it has found to be trusted, so that the way to it is checked once."""

    def __init__(self, path: Path, named: tuple[Path, ...]) -> None:
        """``named`` are folders whose owners are trusted."""
        self.path = path
        self._named = named
        self._known: _Known | None = None

    @contextmanager
    def trusted(self, *names: str, make: bool = False) -> Iterator[Opened]:
        """Open the folder that has these names, from the cache's own on, which are made if need be.

        Raises ``CacheError`` where others than trusted users could have written something, and ``OSError``.
        """
        with ExitStack() as stack:
            folder, (_, owners, named) = self._open(make)
            stack.callback(os.close, folder)
            secret = None if named else user_secret()
            for k, name in enumerate(names):
                folder = open_inside(folder, name, self.path.joinpath(*names[: k + 1]), owners, make=make)
                stack.callback(os.close, folder)
            yield Opened(folder, owners, secret)

    @contextmanager
    def unsealed(self, *names: str) -> Iterator[Opened]:
        """Open a folder as ``trusted`` does, whoever may have written it, to look for damage alone. Raises
        ``OSError``."""
        with self.untrusted(*names) as folder:
            yield Opened(folder, None, None)

    @contextmanager
    def untrusted(self, *names: str) -> Iterator[int]:
        """A descriptor of such a folder, whoever may have written it: to list and to remove. Raises ``OSError``."""
        with ExitStack() as stack:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, folder)
            for name in names:
                folder = os.open(name, FOLDER, dir_fd=folder)
                stack.callback(os.close, folder)
            yield folder

    def distrust(self) -> str | None:
        """Why nothing in it is used; None if it is trusted, or not there yet."""
        try:
            with suppress(FileNotFoundError), self.trusted():
                pass
        except CacheError as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)
        return None

    def advice(self) -> str:
        """What to do where it is not trusted."""
        return (
            "change that, choose a folder by LOOPWRIGHT_CACHE_DIR that is yours alone, or, to run what its owner has "
            f"compiled, set {VARIABLE}={self.path}"
        )

    def _owners(self) -> tuple[frozenset[int], bool]:
        """The users who may write the cache, and whether one of them is named."""
        own, place = frozenset({this_user()}), Path(os.path.realpath(self.path))
        for path in self._named:
            if path.exists() and place.is_relative_to(os.path.realpath(path)):
                return own | {path.stat().st_uid}, True
        return own, False

    def _open(self, make: bool) -> tuple[int, _Known]:
        known = self._known
        if known is not None:
            with suppress(OSError):
                folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                if _identity(folder) == known.identity:
                    return folder, known
                os.close(folder)
        owners, named = self._owners()
        folder = open_folder(self.path, owners, make=make)
        owner = os.fstat(folder).st_uid
        if not named and owner != this_user():
            os.close(folder)
            raise CacheError(f"{self.path} belongs to {user_name(owner)}")
        self._known = _Known(_identity(folder), owners, named)
        return folder, self._known


def named_folders() -> tuple[Path, ...]:
    """The folders that the environment names now."""
    return tuple(map(Path, filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))))


def _identity(folder: int) -> tuple[int, ...]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino, status.st_uid, status.st_gid, status.st_mode
