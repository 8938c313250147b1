"""The secret of a user, by which the cache knows entries again that this user's processes have written.

It lies in the user's folder for settings, not in the cache, so that a cache can be handed on without it.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path

import platformdirs

from ..base.errors import CacheError
from .trusted_files import create_inside, open_folder, read_inside, this_user

NAME = "cache-secret"
_BYTES = 32


def user_secret() -> bytes:
    """The secret, made when it is first needed. Raises ``CacheError`` where none can be kept."""
    return _secret_in(Path(platformdirs.user_config_dir("loopwright", appauthor=False)))


@cache
def _secret_in(path: Path) -> bytes:
    try:
        folder = open_folder(path, frozenset({this_user()}), make=True)
        try:
            return _kept(folder)
        finally:
            os.close(folder)
    except CacheError as error:
        raise CacheError(f"the secret {path / NAME} that guards it is of no use: {error}") from error
    except OSError as error:
        raise CacheError(f"the secret {path / NAME} that guards it cannot be kept: {error.strerror}") from error


def _kept(folder: int) -> bytes:
    with suppress(FileNotFoundError):
        return _read(folder)
    aside = f".{NAME}-{secrets.token_hex(8)}"
    create_inside(folder, aside, lambda file: file.write(secrets.token_bytes(_BYTES)))
    try:
        with suppress(FileExistsError):  # another process was first, and its secret counts
            os.link(aside, NAME, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.unlink(aside, dir_fd=folder)
    return _read(folder)


def _read(folder: int) -> bytes:
    secret = read_inside(folder, NAME, _BYTES, frozenset({this_user()}))
    if len(secret) != _BYTES:
        raise CacheError("it is damaged: remove it, and what the cache holds will be compiled anew")
    if os.stat(NAME, dir_fd=folder).st_mode & 0o077:
        raise CacheError("other users can read it: remove it, and what the cache holds will be compiled anew")
    return secret
