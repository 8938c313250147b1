"""Folders and files that only trusted users could have written, as descriptors: what was checked is what is used.

A folder is trusted if it and each folder above it, up to the root, belong to a trusted user and nobody else can write
to it. The superuser is trusted everywhere, as one who can write anyway. A folder that all may write to is fine on the
way, if it is sticky, as ``/tmp`` is: others can neither remove nor rename there what is not theirs. One that a group
may write to is fine if the group is its owner's own: where users have such groups, folders are like that.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeVar

from ..base.errors import CacheError

T = TypeVar("T")

_ON_THE_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""A folder above may be one that this user can only pass through."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""To open a FIFO would wait for a writer otherwise."""
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
"""As many symbolic links as Linux follows in one path."""
_SUPERUSER = 0
_SUPERGROUP = 0


def this_user() -> int:
    """The user whose rights this process has."""
    return os.geteuid()


def user_name(uid: int) -> str:
    """How messages speak of a user."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return f"the user {uid}"


def open_folder(path: Path, owners: frozenset[int], *, make: bool = False) -> int:
    """A descriptor of a folder that only ``owners`` and the superuser could have put there, or written to.

    Symbolic links on the way are followed if only these could have made them. With ``make``, folders that are missing
    are made, for this user alone. Raises ``CacheError``, which says who else could write what, and ``OSError``.
    """
    names = list(reversed(Path(os.path.abspath(path)).parts))  # noqa: PTH100  resolve() would follow links unchecked
    links, place, folder = 0, Path("/"), os.open("/", _ON_THE_WAY)
    try:
        while names:
            name = names.pop()
            if make:
                _make_folder(folder, name)
            if (target := _link(folder, name, place, owners)) is not None:
                names += reversed(Path(target).parts)  # from the root, if it begins there
                links += 1
                if links > _MOST_LINKS:
                    raise CacheError(f"{path} leads through more than {_MOST_LINKS} symbolic links")
                continue
            inner = os.open(name, _ON_THE_WAY, dir_fd=folder)
            os.close(folder)
            folder, place = inner, place / name
            _check(folder, place, owners, passed=bool(names))
        return os.open(".", FOLDER, dir_fd=folder)
    finally:
        os.close(folder)


def open_inside(folder: int, name: str, place: Path, owners: frozenset[int] | None, *, make: bool = False) -> int:
    """A descriptor of a folder in another, which is no symbolic link; ``place`` is its path, for messages. Without
    ``owners`` it is not checked. Raises as ``open_folder`` does."""
    if make:
        _make_folder(folder, name)
    inner = os.open(name, FOLDER, dir_fd=folder)
    try:
        if owners is not None:
            _check(inner, place, owners)
    except BaseException:
        os.close(inner)
        raise
    return inner


def read_inside(folder: int, name: str, limit: int, owners: frozenset[int] | None) -> bytes:
    """The content of a regular file of at most ``limit`` bytes in a folder, which is no symbolic link.

    Raises as ``file_inside`` does.
    """
    with file_inside(folder, name, owners) as content:
        size = os.fstat(content.fileno()).st_size
        if size > limit:
            raise CacheError(f"it has {size} bytes, which is too many")
        return content.read(limit)


def file_inside(folder: int, name: str, owners: frozenset[int] | None) -> IO[bytes]:
    """A regular file in a folder, which is no symbolic link, opened to be read.

    Raises ``CacheError`` for any other file, and for one that others than ``owners``, if these are given, and the
    superuser could have written; ``OSError`` for one that cannot be read.
    """
    try:
        file = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a symbolic link, a socket
            raise CacheError("it is no regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise CacheError("it is no regular file")
    content = os.fdopen(file, "rb")
    try:
        if owners is not None:
            _check(file, Path(name), owners)
    except BaseException:
        content.close()
        raise
    return content


def create_inside(folder: int, name: str, write: Callable[[IO[bytes]], T]) -> T:
    """Have a new file written, for this user alone; a name that something has is an ``OSError``."""
    try:
        with os.fdopen(os.open(name, _NEW_FILE, 0o600, dir_fd=folder), "wb") as file:
            return write(file)
    except FileExistsError:
        raise
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        raise


def write_inside(folder: int, name: str, aside: str, write: Callable[[IO[bytes]], T]) -> T:
    """Have a file written: as ``aside``, a name that nothing has, then moved into place, so that it is there whole or
    not at all. Raises ``OSError``."""
    written = create_inside(folder, aside, write)
    try:
        os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(aside, dir_fd=folder)
        raise
    return written


def _make_folder(folder: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)


def _link(folder: int, name: str, place: Path, owners: frozenset[int]) -> str | None:
    """Where a symbolic link leads; None for anything else."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        return None
    if status.st_uid not in owners | {_SUPERUSER}:
        raise CacheError(f"the symbolic link {place / name} belongs to {user_name(status.st_uid)}")
    return os.readlink(name, dir_fd=folder)


def _check(file: int, place: Path, owners: frozenset[int], *, passed: bool = False) -> None:
    """Raise ``CacheError`` if others could have written a file or folder; ``passed`` is one on the way to another."""
    status = os.fstat(file)
    mode = status.st_mode
    if status.st_uid not in owners | {_SUPERUSER}:
        raise CacheError(f"{place} belongs to {user_name(status.st_uid)}")
    if passed and mode & stat.S_ISVTX:
        return
    if mode & stat.S_IWOTH:
        raise CacheError(f"{place} can be written by all users (chmod o-w)")
    if mode & stat.S_IWGRP and not (_is_of_one(status.st_gid, status.st_uid) and not _has_list(file)):
        raise CacheError(f"{place} can be written by a group of users (chmod g-w)")


def _is_of_one(gid: int, uid: int) -> bool:
    """Whether a group is a user's own, as distributions make them: of the same name, and without other members."""
    try:
        group, name = grp.getgrgid(gid), pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return False
    others = {user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid} - {uid}
    return gid != _SUPERGROUP and group.gr_name == name and set(group.gr_mem) <= {name} and not others


def _has_list(file: int) -> bool:
    """Whether an access control list gives rights to further users: these hide behind the group's."""
    try:
        return "system.posix_acl_access" in os.listxattr(f"/proc/self/fd/{file}")
    except (AttributeError, OSError):  # no Linux, or a file system that cannot tell
        return True
