"""Constants whose values are made when they are first asked for, as weights are packed while functions are compiled."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from ..ir.constants import const_int
from .node import Constant, tensor_of
from .types import TensorType

Array = npt.NDArray[Any]


class DeferredConstant(Constant):
    """A constant of a known type, whose value ``make`` gives, once, to whichever thread asks first."""

    __slots__ = ("_once",)
    _once: _Once

    def __init__(self, make: Callable[[], Array], kind: TensorType, name: str) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_once", _Once(make))
        self._set_type(kind)

    @property
    def value(self) -> Array:
        """The array of this type, read-only; whoever asks first waits until it is made. Raises what making it does."""
        return self._once.made().value

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(extent for extent in map(const_int, tensor_of(self).shape) if extent is not None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Constant, (self.value, self.name)


class _Once:
    """A constant that is made when it is first asked for. Mutable, under a lock."""

    def __init__(self, make: Callable[[], Array]) -> None:
        self._lock = threading.Lock()
        self._make: Callable[[], Array] | None = make
        self._made: Constant | None = None

    def made(self) -> Constant:
        with self._lock:
            if self._make is not None:
                self._made = Constant(self._make())
                self._make = None  # what it is made of needs its memory no longer
            assert self._made is not None
            return self._made
