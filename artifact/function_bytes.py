"""Compiled functions as bytes: for the cache on disk, and for processes that run code which others compile."""

from __future__ import annotations

import json

from ..base.errors import ModelError
from .function import CompiledFunction

_SIZE_BYTES = 8


def to_bytes(function: CompiledFunction) -> bytes:
    """A function as bytes: its fields as JSON, then its object code."""
    fields = function.to_json()
    code: bytes = fields.pop("object")
    header = json.dumps(fields).encode()
    return len(header).to_bytes(_SIZE_BYTES, "little") + header + code


def from_bytes(data: bytes) -> CompiledFunction:
    """The function that ``to_bytes`` wrote. Raises ``ValueError``, ``RecursionError`` or ``ModelError`` for all
    else."""
    end = _SIZE_BYTES + int.from_bytes(data[:_SIZE_BYTES], "little")
    fields = json.loads(data[_SIZE_BYTES:end])
    if not isinstance(fields, dict):
        raise ModelError("its fields are no object")
    return CompiledFunction.from_json(fields | {"object": data[end:]})
