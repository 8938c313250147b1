"""Strings as native code has them: UTF-8 bytes of many strings side by side, and a *span* of these for each string.

A span is one int64, ``offset * 2**32 + length``, both in bytes. So a tensor of strings is a tensor of spans, which is
moved as any other, and strings may share bytes. Bytes are filled up with zeros to a power of two, so that inputs of
much the same length are planned for once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import InternalError, RuntimeArgumentError

Array: TypeAlias = npt.NDArray[Any]
LENGTH_BITS = 32
LENGTHS = (1 << LENGTH_BITS) - 1
"""The bits of a span that are its length."""
MOST_BYTES = 1 << 31
"""Offsets are below this."""
LEAST_BYTES = 64
_FEW_TO_PACK = 20
_FEW_TO_CUT = 150
"""Up to so many strings Python's integers and slices take less than what calls of numpy begin with."""
_MUCH = 1024
"""Of more bytes for a string it is faster to read what each needs than to decode all."""
_SHORT = 96
"""Of fewer bytes for a string it is faster to look for separators among them than to ask for lengths."""
_SEPARATOR = "\x1f"
"""What ASCII has between units, and text hardly ever."""


def pack_strings(
    arrays: Sequence[Array], where: Callable[[int], str]
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.uint8]]:
    """The spans of the strings of some arrays, each of the shape of its array, and the bytes of all. ``where`` gives
    what errors call an array, by its number.

    Raises ``RuntimeArgumentError`` for elements that are no strings, and for strings of 2**31 bytes or more together.
    """
    strings: list[Any] = arrays[0].ravel().tolist()
    for array in arrays[1:]:
        strings += array.ravel().tolist()
    try:
        data, all_spans = _few_packed(strings) if len(strings) <= _FEW_TO_PACK else _packed(strings)
    except (TypeError, UnicodeEncodeError):
        raise _problem(arrays, where) from None
    size = max(LEAST_BYTES, 1 << (len(data) - 1).bit_length()) if data else LEAST_BYTES
    utf8 = np.frombuffer(data.ljust(size, b"\0"), np.uint8)
    if len(arrays) == 1:
        return [all_spans.reshape(arrays[0].shape)], utf8
    spans, first = [], 0
    for array in arrays:
        spans.append(all_spans[first : first + array.size].reshape(array.shape))
        first += array.size
    return spans, utf8


def _few_packed(strings: list[Any]) -> tuple[bytes, npt.NDArray[np.int64]]:
    """The bytes of strings side by side, and their spans."""
    encoded = [*map(str.encode, strings)]
    spans, begin = [], 0
    for each in encoded:
        spans.append(begin << LENGTH_BITS | len(each))
        begin += len(each)
    return b"".join(encoded), np.array(spans, np.int64)


def _packed(strings: list[Any]) -> tuple[bytes, npt.NDArray[np.int64]]:
    """The same with separators between the strings. Where these are short it takes less to find the separators than to
    ask each string for its length."""
    text = _SEPARATOR.join(strings)
    data = text.encode()
    if len(data) < _SHORT * len(strings):
        between = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(_SEPARATOR))
        if len(between) == len(strings) - 1:
            begins, ends = np.append(0, between + 1), np.append(between, len(data))
            return data, begins << LENGTH_BITS | (ends - begins)
    counts = _character_counts(strings)
    ends = (counts + 1).cumsum() - 1
    begins = ends - counts
    if len(data) != len(text):
        at = _character_ends(data)
        begins, ends = at[begins], at[ends]
    return data, begins << LENGTH_BITS | (ends - begins)


def _character_counts(strings: list[str]) -> npt.NDArray[np.int64]:
    """How many characters each string has; counts below 256 need no object of Python on their way."""
    try:
        return np.frombuffer(bytes(map(len, strings)), np.uint8).astype(np.int64)
    except ValueError:
        return np.fromiter(map(len, strings), np.int64, len(strings))


def _character_ends(data: bytes) -> npt.NDArray[np.int64]:
    """The byte behind the first k characters of UTF-8, for all k from 0: where the next one begins, whose first byte
    is none of those that continue a character."""
    continues = (np.frombuffer(data, np.uint8) & 0xC0) == 0x80
    return np.append(np.flatnonzero(~continues), len(data))


def _problem(arrays: Sequence[Array], where: Callable[[int], str]) -> RuntimeArgumentError:
    """The error for the first element that is no string, or has no UTF-8."""
    for number, array in enumerate(arrays):
        for k, string in enumerate(array.ravel().tolist()):
            if not isinstance(string, str):
                return RuntimeArgumentError(
                    f"{where(number)} should have strings for elements, found {string!r} as number {k}"
                )
            try:
                string.encode()
            except UnicodeEncodeError as error:
                return RuntimeArgumentError(f"{where(number)}: {string!r} has no UTF-8: {error.reason}")
    raise InternalError("strings that can be encoded could not be")


def unpack_strings(spans: npt.NDArray[np.int64], utf8: Array) -> Array:
    """The strings of spans, as an array of objects; bytes that are no UTF-8 become U+FFFD."""
    found = np.empty(spans.size, object)
    flat = spans.ravel()
    begins, lengths = flat >> LENGTH_BITS, flat & LENGTHS
    strings = _split_at_once(begins, lengths, utf8) if spans.size > _FEW_TO_CUT else None
    found[:] = _one_by_one(begins, lengths, utf8) if strings is None else strings
    return found.reshape(spans.shape)


def _one_by_one(begins: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], utf8: Array) -> list[str]:
    pairs = zip(begins.tolist(), (begins + lengths).tolist(), strict=True)
    if utf8.size > _MUCH * len(begins):
        view = utf8.data
        return [str(view[begin:end], "utf-8", "replace") for begin, end in pairs]
    data = utf8.tobytes()
    if data.isascii():
        text = data.decode("ascii")
        return [text[begin:end] for begin, end in pairs]
    return [data[begin:end].decode(errors="replace") for begin, end in pairs]


def _split_at_once(begins: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], utf8: Array) -> list[str] | None:
    """The strings as they are cut out of one text, in which each is followed by a separator; None where they have that
    themselves, or are no UTF-8. Offsets of 32 bits are moved in half the time of wider ones."""
    sizes = (lengths + 1).astype(np.int32)
    if lengths.sum() + lengths.size >= MOST_BYTES:
        return None
    ends = sizes.cumsum(dtype=np.int32)
    read = np.repeat(begins.astype(np.int32) - ends + sizes, sizes)
    read += np.arange(read.size, dtype=np.int32)
    read[ends - 1] = 0
    joined = utf8[read]
    joined[ends - 1] = ord(_SEPARATOR)
    try:
        strings = joined.tobytes().decode().split(_SEPARATOR)
    except UnicodeDecodeError:
        return None
    return strings[:-1] if len(strings) == begins.size + 1 else None
