"""The format of an entry of the cache on disk: what it says of itself, and its content, under one checksum.

entry    ::= MAGIC checksum(32 bytes) size(4 bytes) about content
checksum ::= SHA-256 of the entry's key and of all that follows; so an entry under another name is damaged too
about    ::= JSON object, of ``size`` bytes
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ..ir.errors import CacheError

MAGIC = b"lwcache1\n"
_CHECKSUM_BYTES = 32
_SIZE_BYTES = 4
_START = len(MAGIC) + _CHECKSUM_BYTES + _SIZE_BYTES
_MAX_ABOUT = 1 << 20
"""A larger size is damage: do not believe it."""


@dataclass(frozen=True, slots=True)
class About:
    """What people want to know of an entry. ``kind`` is the stage that made it, ``versions`` those of its makers."""

    kind: str
    name: str
    target: str
    versions: str


def encode(key: str, about: About, content: bytes) -> bytes:
    """The bytes of an entry."""
    header = json.dumps(asdict(about)).encode()
    rest = len(header).to_bytes(_SIZE_BYTES, "little") + header + content
    return MAGIC + _checksum(key, rest) + rest


def decode(key: str, data: bytes) -> tuple[About, bytes]:
    """What an entry says of itself, and its content. Raises ``CacheError`` for one that is damaged or foreign."""
    if data[: len(MAGIC)] != MAGIC:
        raise CacheError("it is no entry of this version's format")
    rest = data[len(MAGIC) + _CHECKSUM_BYTES :]
    if data[len(MAGIC) : len(MAGIC) + _CHECKSUM_BYTES] != _checksum(key, rest):
        raise CacheError("its checksum is not that of its content")
    end = _START + int.from_bytes(data[_START - _SIZE_BYTES : _START], "little")
    return _about(data[_START:end]), data[end:]


def read_about(path: Path) -> About:
    """What an entry says of itself, its checksum unchecked. Raises ``CacheError`` where that cannot be read."""
    with path.open("rb") as file:
        start = file.read(_START)
        size = int.from_bytes(start[-_SIZE_BYTES:], "little")
        if len(start) < _START or not start.startswith(MAGIC) or size > _MAX_ABOUT:
            raise CacheError("it is no entry of this version's format")
        return _about(file.read(size))


def _about(header: bytes) -> About:
    try:
        return About(**json.loads(header))
    except (ValueError, TypeError) as error:
        raise CacheError(f"what it says of itself cannot be read: {error}") from error


def _checksum(key: str, rest: bytes) -> bytes:
    return hashlib.sha256(key.encode() + rest).digest()
