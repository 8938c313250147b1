"""The constants of a model as one image: a mark, then each constant on a cache line. It lies in the object or beside.

An assembler could put a file into an object, but LLVM has one here for the host alone. So the object is emitted with a
hole behind the mark, which is found by that and filled; which works for all forms of objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.aligned import ARENA_ALIGNMENT
from ...base.dataclass import dataclass
from ...base.errors import InternalError

MARK_BYTES = 64
"""Of the mark: a SHA-256 digest of the constants, in hex."""

_PIECE = 1 << 22
MAX_INSIDE = 1 << 30
"""Bytes. Code reaches 2 GiB of its object."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightsImage:
    """``offsets`` says where each constant begins, in bytes from the mark's begin; ``size`` counts the mark too."""

    arrays: tuple[npt.NDArray[Any], ...]
    offsets: tuple[int, ...]
    size: int
    mark: bytes

    def parts(self) -> list[tuple[int, memoryview]]:
        """What stands where, the mark first; zeros stand between."""
        views = (np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in self.arrays)
        return [(0, memoryview(self.mark)), *zip(self.offsets, views, strict=True)]

    def sum(self) -> int:
        """The sum modulo 2⁶⁴ of all words of 8 bytes, word k taken 2k + 1 times: any changed word changes it. The
        code of an export computes it in a few lines, which a digest would not be."""
        total = 0
        for offset, view in self.parts():
            for begin in range(0, view.nbytes, _PIECE):
                piece = bytes(view[begin : begin + _PIECE])
                words = np.frombuffer(piece + bytes(-len(piece) % 8), "<u8")
                first = (offset + begin) // 8
                odd = np.arange(2 * first + 1, 2 * (first + len(words)) + 1, 2, dtype=np.uint64)
                total += int(np.dot(words, odd))
        return total % (1 << 64)

    def fill(self, code: bytes) -> bytearray:
        """Object code with the constants in the hole that it has for them."""
        begin = code.find(self.mark)
        if begin < 0 or code.find(self.mark, begin + 1) >= 0:
            raise InternalError("the object has no place for the weights, or several")
        filled = bytearray(code)
        for offset, view in self.parts():
            filled[begin + offset : begin + offset + view.nbytes] = view
        return filled


def weights_image(constants: Sequence[npt.NDArray[Any]]) -> WeightsImage:
    """Lay constants out. Their bytes are not copied."""
    digest = hashlib.sha256()
    offsets = []
    end = MARK_BYTES
    for array in constants:
        begin = -(-end // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        offsets.append(begin)
        end = begin + array.nbytes
        digest.update(f"{begin} ".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return WeightsImage(tuple(constants), tuple(offsets), end, digest.hexdigest().encode())
