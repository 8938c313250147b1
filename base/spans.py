"""Strings as native code has them: UTF-8 bytes of many strings side by side, and a *span* of these for each string.

A span is one int64, ``offset * 2**32 + length``, both in bytes. So a tensor of strings is a tensor of spans, which is
moved as any other, and strings may share bytes. Bytes are filled up with zeros to a power of two, so that inputs of
much the same length are planned for once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
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
_FEW = 64


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
    data, lengths = _encoded(strings, arrays, where)
    if len(data) >= MOST_BYTES:
        raise RuntimeArgumentError(f"{where(0)}: strings have 2**31 bytes or more together, which is too many")
    size = max(LEAST_BYTES, 1 << (len(data) - 1).bit_length() if data else 0)
    all_spans = _spans_of(lengths)
    spans, first = [], 0
    for array in arrays:
        spans.append(all_spans[first : first + array.size].reshape(array.shape))
        first += array.size
    return spans, np.frombuffer(data.ljust(size, b"\0"), np.uint8)


def _spans_of(lengths: list[int]) -> npt.NDArray[np.int64]:
    """The spans of strings side by side. Of few, Python's integers make them faster than numpy."""
    if len(lengths) <= _FEW:
        begins = accumulate(lengths, initial=0)
        return np.array([b << LENGTH_BITS | n for b, n in zip(begins, lengths, strict=False)], np.int64)
    known = np.array(lengths, np.int64)
    return (known.cumsum() - known) << LENGTH_BITS | known


def _encoded(strings: list[Any], arrays: Sequence[Array], where: Callable[[int], str]) -> tuple[bytes, list[int]]:
    """The bytes of strings, and how many each has."""
    try:
        text = "".join(strings)
        if text.isascii():
            return text.encode(), [*map(len, strings)]
        encoded = [string.encode() for string in strings]
        return b"".join(encoded), [*map(len, encoded)]
    except (TypeError, UnicodeEncodeError):
        raise _problem(arrays, where) from None


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
    begins = (flat >> LENGTH_BITS).tolist()
    ends = ((flat >> LENGTH_BITS) + (flat & LENGTHS)).tolist()
    data = utf8.tobytes()
    if data.isascii():
        text = data.decode("ascii")
        found[:] = [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
    else:
        found[:] = [data[begin:end].decode(errors="replace") for begin, end in zip(begins, ends, strict=True)]
    return found.reshape(spans.shape)
