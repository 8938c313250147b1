"""The memory of a model's stages: what its entry asks for while it runs, since nobody knows the sizes before.

Small outputs are written to memory that stays, and copied from there, which takes less than to have memory of their
own; a larger one is memory of its own, that the entry asks for at each run.

Mutable: belongs to one executor, whose runs come one after the other. ``codegen/stage_entry.py`` has the form of the
table that it shares with the entry, which calls Python only where something is larger than in all runs before, and for
large outputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from ..artifact.memory_table import NEEDED, OutputMode, output_word, stage_word, table_words
from ..artifact.model import CompiledModel
from ..base.addresses import address_of
from ..base.aligned import ARENA_ALIGNMENT, aligned_empty
from ..base.errors import OutOfMemoryError
from ..base.weak_method import while_alive
from .arrays import Array
from .dimensions import Shape

_GROW = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
SMALL, LEAST_KEPT = 64 << 10, 4 << 10
"""The bytes of the largest output that is copied from memory that stays, and of the least such memory. For memory of
its own an output asks Python, which takes as long as copying more than that."""
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
        self._kinds = [model.outputs[number].dtype.to_numpy() for number in self._outputs]
        self._kept: list[Array | None] = [None] * len(self._outputs)
        self._large: list[Array | None] = [None] * len(self._outputs)
        self._granted = [0] * len(self._outputs)
        self._are_new = False
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
        return self._kept_bytes + sum(segment.nbytes for segment in self._segments.values())

    @property
    def used(self) -> int:
        """What of that the last run needed."""
        needed = (self._words[stage_word(number) + NEEDED] for number in self._segments)
        return self._kept_bytes + sum(size + ARENA_ALIGNMENT for size in needed)

    @property
    def _kept_bytes(self) -> int:
        """What is kept for small outputs, all of which counts as used."""
        return sum(memory.nbytes for memory in self._kept if memory is not None)

    def drop(self) -> None:
        """Give back the memory of all stages, and what new outputs may take."""
        for number in range(self._stages):
            self._forget(number)
        for place in range(len(self._outputs)):
            self._kept[place], self._granted[place] = None, 0
        self._are_new = False

    def give(self, buffers: Sequence[Array | None]) -> None:
        """Say where the outputs of the next run are to be, by the numbers of all outputs of the model: None is for a
        new one."""
        self._are_new = all(buffers[number] is None for number in self._outputs)
        for place, number in enumerate(self._outputs):
            buffer = buffers[number]
            if buffer is None:
                self._set_kept(place)
            else:
                self._set(self._word(place), address_of(buffer), buffer.nbytes, OutputMode.GIVEN)

    def give_new(self) -> None:
        """Say that all outputs of the next run are to be new, as they most often were in the one before."""
        if not self._are_new:
            for place in range(len(self._outputs)):
                self._set_kept(place)
            self._are_new = True

    def taken(self, place: int, shape: Shape) -> Array:
        """The new output at a position among those that stages allocate, of the shape that the run has given it."""
        large, kept = self._large[place], self._kept[place]
        if large is not None:
            self._large[place] = None
            self._set_kept(place)
            return large.view(self._kinds[place]).reshape(shape)
        if kept is None:  # without elements
            return np.empty(shape, self._kinds[place])
        part = kept[: shape[0]] if len(shape) == 1 else kept[: prod(shape)].reshape(shape)
        return part.copy()

    def forget_large(self) -> None:
        """Let go of outputs that nobody gets, since the run has failed."""
        for place, large in enumerate(self._large):
            if large is not None:
                self._large[place] = None
                self._set_kept(place)

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
        """The address of memory for a stage, or for an output."""
        if number >= self._stages:
            return self._grown_output(number - self._stages, size)
        self._forget(number)
        self._claim(self.claimed + size + ARENA_ALIGNMENT)
        try:
            self._segments[number] = segment = np.empty(size + ARENA_ALIGNMENT, np.uint8)
        except MemoryError:
            raise OutOfMemoryError(f"{self._name}: there is no memory for {size} bytes of intermediates") from None
        begin = -(-address_of(segment) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        self._set(stage_word(number), begin, size, size, 0)
        return begin

    def _grown_output(self, place: int, size: int) -> int:
        """Memory for one output, or what is kept for small ones: then these copies count, too."""
        is_small = size <= SMALL
        room = max(LEAST_KEPT, 1 << (size - 1).bit_length()) if is_small else size
        more = max(room - self._granted[place], 0)
        if more or is_small:
            self._claim(self.claimed + more + (room if is_small else 0))
            self._granted[place] += more
        try:
            memory = aligned_empty((room,), np.dtype(np.uint8))
        except MemoryError:
            raise OutOfMemoryError(f"{self._name}: there is no memory for {size} bytes of an output") from None
        if is_small:
            self._kept[place] = memory.view(self._kinds[place])
            self._set_kept(place)
        else:
            self._large[place] = memory
            self._set(self._word(place), address_of(memory), size, OutputMode.GROWS)
        return address_of(memory)

    def _set_kept(self, place: int) -> None:
        """Have the entry write an output to the memory that is kept for it, where it fits, and ask for more else."""
        kept = self._kept[place]
        begin, size = (self.table, 0) if kept is None else (address_of(kept), kept.nbytes)
        self._set(self._word(place), begin, size, OutputMode.GROWS)

    def _word(self, place: int) -> int:
        return output_word(self._stages, place)

    def _forget(self, number: int) -> None:
        self._set(stage_word(number), 0, 0, 0, 0)
        self._segments.pop(number, None)

    def _set(self, first: int, *words: int) -> None:
        for number, word in enumerate(words, first):
            self._words[number] = word

    @property
    def claimed(self) -> int:
        """The bytes of stages, and those that outputs may have."""
        return self.nbytes + sum(self._granted)
