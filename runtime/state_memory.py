"""The memory of one state: what the last run has left, with room for what the next ones write.

Mutable: belongs to one session.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..base.aligned import aligned_empty
from ..base.errors import OutOfMemoryError
from ..base.state import State
from .arrays import Array
from .dimensions import Shape

Claim: TypeAlias = Callable[[int], None]
"""Asks for so many bytes more, before they are allocated; or gives them back, if the number is negative. Raises
``OutOfMemoryError``."""
_BYTES = np.dtype(np.uint8)


class StateMemory:
    """``value`` is the state as native code has it; None before the first run, unless it was set. ``room`` gives memory
    for the next one, ``keep`` makes that the state. ``copied`` counts the bytes of it that were moved so far: only
    where the memory of a state that lies in place becomes too small, which then doubles, and where ``truncate`` has to.

    A state that is not written in place has two memories, which take turns.
    """

    def __init__(self, name: str, state: State, kind: np.dtype[Any], claim: Claim) -> None:
        self.name = name
        self.state = state
        self.kind = kind
        self.copied = 0
        self.shape: Shape | None = None
        self._claim = claim
        self._own = np.empty(0, np.uint8)
        self._next = np.empty(0, np.uint8)

    @property
    def nbytes(self) -> int:
        """The memory that is held."""
        return self._own.nbytes + self._next.nbytes

    @property
    def used(self) -> int:
        """The bytes of the state."""
        return 0 if self.shape is None else self._size(self.shape)

    @property
    def value(self) -> Array | None:
        """The state, a view of its memory."""
        return None if self.shape is None else self._view(self._own, self.shape)

    def clear(self) -> None:
        """Be as before the first run; the memory stays."""
        self.shape = None

    def begin(self, shape: Shape) -> Array:
        """Be zeros of this shape."""
        self._reserve(self._size(shape), kept=0)
        self.shape = shape
        value = self._view(self._own, shape)
        value[...] = np.zeros((), self.kind)
        return value

    def set(self, value: Array) -> None:
        """Be a copy of a value, in the order of native code's axes."""
        self._reserve(value.nbytes, kept=0)
        self.shape = value.shape
        self._view(self._own, value.shape)[...] = value

    def room(self, shape: Shape) -> Array:
        """Memory for the next state, of this shape; of one in place, that of the state, which begins it."""
        size = self._size(shape)
        if self.state.in_place:
            self._reserve(size, kept=self.used)
            return self._view(self._own, shape)
        if self._next.nbytes < size:
            self._claim(-self._next.nbytes)
            self._next = np.empty(0, np.uint8)
            self._next = self._memory(size)
        return self._view(self._next, shape)

    def keep(self, shape: Shape) -> None:
        """Make what was written to the last ``room`` the state."""
        self.shape = shape
        if not self.state.in_place:
            self._own, self._next = self._next, self._own

    def adopt(self, value: Array) -> None:
        """Make an array the state that a run has allocated itself."""
        self._claim(value.nbytes - self._own.nbytes)
        self._own, self.shape = value.reshape(-1).view(np.uint8), value.shape

    def truncate(self, length: int) -> None:
        """Leave the first ``length`` of what stands along the axis that grows."""
        axis = self.state.axis
        if self.shape is None or axis is None:
            return
        at = 0 if self.state.in_place else axis
        shape = (*self.shape[:at], length, *self.shape[at + 1 :])
        if math.prod(self.shape[:at]) > 1:  # what is left does not lie at the beginning
            left = self._view(self._own, self.shape)[(*[slice(None)] * at, slice(length))].copy()
            self._view(self._own, shape)[...] = left
            self.copied += 2 * left.nbytes
        self.shape = shape

    @property
    def length(self) -> int | None:
        """How much there is along the axis that grows; None for a state of fixed shape."""
        axis = self.state.axis
        if axis is None:
            return None
        return 0 if self.shape is None else self.shape[0 if self.state.in_place else axis]

    def _reserve(self, size: int, kept: int) -> None:
        """Have so many bytes, of which the first ``kept`` are as they were."""
        if self._own.nbytes >= size:
            return
        try:
            made = self._memory(max(size, 2 * self._own.nbytes))
        except OutOfMemoryError:  # there may be room for this run, if for none behind it
            made = self._memory(size)
        made[:kept] = self._own[:kept]
        self.copied += kept
        self._claim(-self._own.nbytes)
        self._own = made

    def _memory(self, size: int) -> Array:
        self._claim(size)
        try:
            return aligned_empty((size,), _BYTES)
        except MemoryError:
            self._claim(-size)
            raise OutOfMemoryError(f"there is no memory for {size} bytes of the state {self.name}") from None

    def _size(self, shape: Shape) -> int:
        return math.prod(shape) * self.kind.itemsize

    def _view(self, memory: Array, shape: Shape) -> Array:
        view: Array = memory[: self._size(shape)].view(self.kind).reshape(shape)
        return view
