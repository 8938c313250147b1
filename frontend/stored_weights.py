"""Large weights stay in the model's file: the file is parsed without them, and says where in it they are, as a model
with external data does. Parsed, each would be in memory three times over.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from ..base.dataclass import dataclass

LEAST_BYTES = 1 << 16
"""Smaller weights are parsed with the rest."""
_MAX_VARINT = 10
"""Bytes of a number of 64 bits."""

_GRAPH = ModelProto.GRAPH_FIELD_NUMBER
_INITIALIZER = ModelProto().graph.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = TensorProto.RAW_DATA_FIELD_NUMBER


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of an encoded message: its number, where it begins, and of one with a length, where its contents lie."""

    number: int
    start: int
    end: int
    contents: int | None


@dataclass(frozen=True, slots=True)
class _Weight:
    """The bytes of an initializer in the file."""

    initializer: int
    offset: int
    length: int


def parse_without_weights(path: Path) -> ModelProto | None:
    """The model in a file, whose large initializers are external data in that file; None where there are none, or the
    file is none that can be read so.

    The encoding is that of https://protobuf.dev/programming-guides/encoding.
    """
    model = ModelProto()
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            weights: list[_Weight] = []
            encoded = _without_weights(data, weights)
        if not weights:
            return None
        model.ParseFromString(encoded)
    except (OSError, ValueError, IndexError, DecodeError):
        return None
    for weight in weights:
        tensor = model.graph.initializer[weight.initializer]
        if tensor.HasField("data_location") or tensor.external_data:
            return None
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", path.resolve().name), ("offset", weight.offset), ("length", weight.length)):
            tensor.external_data.add(key=key, value=str(value))
    return model


def _without_weights(data: mmap.mmap, weights: list[_Weight]) -> bytes:
    """The encoded model without the raw data of large initializers, which are added to ``weights``.

    Raises ``ValueError`` or ``IndexError`` for what is no encoded message.
    """
    parts: list[bytes] = []
    count = 0
    for field in _fields(data, 0, len(data)):
        if field.number != _GRAPH or field.contents is None:
            parts.append(data[field.start : field.end])
            continue
        inside: list[bytes] = []
        for part in _fields(data, field.contents, field.end):
            if part.number == _INITIALIZER and part.contents is not None:
                inside.append(_encoded(_INITIALIZER, _stripped(data, part, count, weights)))
                count += 1
            else:
                inside.append(data[part.start : part.end])
        parts.append(_encoded(_GRAPH, b"".join(inside)))
    return b"".join(parts)


def _stripped(data: mmap.mmap, tensor: _Field, position: int, weights: list[_Weight]) -> bytes:
    assert tensor.contents is not None
    kept: list[bytes] = []
    for field in _fields(data, tensor.contents, tensor.end):
        if field.number == _RAW_DATA and field.contents is not None and field.end - field.contents >= LEAST_BYTES:
            weights.append(_Weight(position, field.contents, field.end - field.contents))
        else:
            kept.append(data[field.start : field.end])
    return b"".join(kept)


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[_Field]:
    at = start
    while at < end:
        begin = at
        tag, at = _varint(data, at)
        contents = None
        match tag & 7:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 2:
                length, contents = _varint(data, at)
                at = contents + length
            case 5:
                at += 4
            case kind:
                raise ValueError(f"no field is encoded as {kind}")
        if at > end:
            raise ValueError("a field ends behind its message")
        yield _Field(tag >> 3, begin, at, contents)


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = 0
    for shift in range(0, 7 * _MAX_VARINT, 7):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise ValueError(f"a number is longer than {_MAX_VARINT} bytes")


def _encoded(number: int, contents: bytes) -> bytes:
    """A field with a length."""
    return _encoded_number(number << 3 | 2) + _encoded_number(len(contents)) + contents


def _encoded_number(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
