"""The memory of a model's stages: what its entry asks for while it runs, since nobody knows the sizes before.

Mutable: belongs to one executor, whose runs come one after the other. ``codegen/stage_entry.py`` has the form of the
table that it shares with the entry, which calls Python only where something is larger than in all runs before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..artifact.memory_table import NEEDED, OutputMode, output_word, stage_word, table_words
from ..artifact.model import CompiledModel
from ..base.aligned import ARENA_ALIGNMENT
from ..base.errors import OutOfMemoryError
from ..base.weak_method import while_alive
from .arrays import Array, address_of

_GROW = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None
_NEW = OutputMode.NEW.value
Claim: TypeAlias = Callable[[int], None]
"""Asks for so many bytes for all stages and outputs, in the place of those they had."""


class StageSegments:
    """``table`` is the address of the table of memory. ``claim`` raises ``OutOfMemoryError`` where the model may not
    take so much, which ``take_error`` then has."""

    def __init__(self, model: CompiledModel, claim: Claim) -> None:
        self._name = model.name
        self._claim = claim
        self._stages = len(model.body.stages)
        self._outputs = [output.number for stage in model.body.stages for output in stage.outputs]
        table = np.zeros(table_words(self._stages, len(self._outputs)), np.int64)
        self.table = address_of(table)
        self._words = table.data  # whose elements are read and written faster than an array's
        self._segments: dict[int, Array] = {}
        self._error: BaseException | None = None
        grow = while_alive(self._grow)  # the callback must not keep what keeps it
        self._callback = _GROW(lambda owner, number, size: grow(number, size))
        self._words[0] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    @property
    def nbytes(self) -> int:
        """The memory that is held, whether a run is on or not."""
        return sum(segment.nbytes for segment in self._segments.values())

    @property
    def used(self) -> int:
        """What of that the last run needed."""
        needed = (self._words[stage_word(number) + NEEDED] for number in self._segments)
        return sum(size + ARENA_ALIGNMENT for size in needed)

    def drop(self) -> None:
        """Give back the memory of all stages, and what new outputs may take."""
        for number in range(self._stages):
            self._forget(number)
        for place in range(len(self._outputs)):
            self._set(output_word(self._stages, place), 0, 0, OutputMode.GIVEN)

    def give(self, buffers: Sequence[Array | None]) -> None:
        """Say where the outputs of the next run are to be, by the numbers of all outputs: None is for a new one."""
        for place, number in enumerate(self._outputs):
            word, buffer = output_word(self._stages, place), buffers[number]
            if buffer is not None:
                self._set(word, address_of(buffer), buffer.nbytes, OutputMode.GIVEN)
            elif self._words[word + 2] != _NEW:
                self._set(word, 0, 0, OutputMode.NEW)

    def take_error(self) -> BaseException | None:
        """Why memory was refused last."""
        error, self._error = self._error, None
        return error

    def _grow(self, number: int, size: int) -> int | None:
        try:
            return self._grown(number, size)
        except BaseException as error:  # none may cross native code: it is raised behind it
            self._error = error
            return None

    def _grown(self, number: int, size: int) -> int:
        """The address of memory for a stage; 1 for an output, whose memory the entry allocates when it is granted."""
        if number >= self._stages:
            word = output_word(self._stages, number - self._stages)
            self._claim(self.claimed - self._words[word + 1] + size)
            self._words[word + 1] = size
            return 1
        self._forget(number)
        self._claim(self.claimed + size + ARENA_ALIGNMENT)
        try:
            self._segments[number] = segment = np.empty(size + ARENA_ALIGNMENT, np.uint8)
        except MemoryError:
            raise OutOfMemoryError(f"{self._name}: there is no memory for {size} bytes of intermediates") from None
        begin = -(-address_of(segment) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        self._set(stage_word(number), begin, size, size, 0)
        return begin

    def _forget(self, number: int) -> None:
        self._set(stage_word(number), 0, 0, 0, 0)
        self._segments.pop(number, None)

    def _set(self, first: int, *words: int) -> None:
        for number, word in enumerate(words, first):
            self._words[number] = word

    @property
    def claimed(self) -> int:
        """The bytes of stages, and those that outputs may have."""
        words = (output_word(self._stages, place) for place in range(len(self._outputs)))
        granted = sum(self._words[w + 1] for w in words if self._words[w + 2] == _NEW)
        return self.nbytes + granted


class _Owned:
    """Memory of C, which goes when nobody has an array of it."""

    __slots__ = ("__array_interface__", "_address", "_free")

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str) -> None:
        self._address, self._free = address, _free
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": typestr, "data": (address, False)}

    def __del__(self) -> None:
        self._free(self._address)


def owned_array(address: int, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """The array at an address that ``aligned_alloc`` gave, which it frees in the end."""
    if kind.isbuiltin == 1:
        array: Array = np.asarray(_Owned(address, shape, kind.str))
        return array
    memory: Array = np.asarray(_Owned(address, (prod(shape) * kind.itemsize,), "|u1"))
    return memory.view(kind).reshape(shape)


def release(addresses: Sequence[int]) -> None:
    """Free memory of outputs that nobody gets."""
    for address in addresses:
        _free(address)
