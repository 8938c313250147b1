"""The format of an entry of the cache on disk: what it says of itself, and its content, under a checksum and a seal.

entry    ::= MAGIC checksum(16 bytes) seal(16 bytes) size(4 bytes) about content
checksum ::= of the SHA-256 of the key and of all from ``size`` on; so an entry under another name is damaged too
seal     ::= of the HMAC-SHA-256 of that by the writer's secret; zeros of a writer that has none
about    ::= JSON object, of ``size`` bytes

The checksum finds damage, the seal who wrote it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict

from ..base.dataclass import dataclass
from ..base.errors import CacheError, ModelError
from .plain_data import from_plain

MAGIC = b"lwcache2\n"
_DIGEST_BYTES = 16
_SIZE_BYTES = 4
_SEAL = len(MAGIC) + _DIGEST_BYTES
_SEALED = _SEAL + _DIGEST_BYTES
_START = _SEALED + _SIZE_BYTES
MAX_BYTES = 1 << 28
"""A larger file is no entry: do not read it."""
MODEL = "model"
"""The kind of an entry whose content is the digest of a file of sections, which lies beside it."""


@dataclass(frozen=True, slots=True)
class About:
    """What people want to know of an entry. ``kind`` is the stage that made it, ``versions`` those of its makers."""

    kind: str
    name: str
    target: str
    versions: str


def encode(key: str, about: About, content: bytes, secret: bytes | None) -> bytes:
    """The bytes of an entry."""
    header = json.dumps(asdict(about)).encode()
    rest = len(header).to_bytes(_SIZE_BYTES, "little") + header + content
    digest = _digest(key, rest)
    return MAGIC + digest[:_DIGEST_BYTES] + _seal(digest, secret) + rest


def decode(key: str, data: bytes, secret: bytes | None) -> tuple[About, bytes]:
    """What an entry says of itself, and its content.

    Raises ``CacheError`` for one that is damaged or foreign, or, where there is a secret, was written without it.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise CacheError("it is no entry of this version's format")
    digest = _digest(key, data[_SEALED:])
    if data[len(MAGIC) : _SEAL] != digest[:_DIGEST_BYTES]:
        raise CacheError("its checksum is not that of its content")
    if secret is not None and not hmac.compare_digest(data[_SEAL:_SEALED], _seal(digest, secret)):
        raise CacheError("it was not written by this user here")
    return read_about(data), data[_START + _about_size(data) :]


def read_about(data: bytes) -> About:
    """What an entry says of itself, nothing else checked. Raises ``CacheError`` where that cannot be read."""
    if not data.startswith(MAGIC) or len(data) < _START + _about_size(data):
        raise CacheError("it is no entry of this version's format")
    try:
        fields = json.loads(data[_START : _START + _about_size(data)])
        about: About = from_plain(About, fields, "entry")
    except (ValueError, RecursionError, ModelError) as error:
        raise CacheError(f"what it says of itself cannot be read: {error}") from error
    if not all(text.isprintable() for text in asdict(about).values()):
        raise CacheError("what it says of itself cannot be shown")
    return about


def _about_size(data: bytes) -> int:
    return int.from_bytes(data[_SEALED:_START], "little")


def _digest(key: str, rest: bytes) -> bytes:
    return hashlib.sha256(key.encode() + rest).digest()


def _seal(digest: bytes, secret: bytes | None) -> bytes:
    return bytes(_DIGEST_BYTES) if secret is None else hmac.digest(secret, digest, "sha256")[:_DIGEST_BYTES]
