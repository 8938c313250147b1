"""The arrays of a model's constants, made in a thread of their own while functions are compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Self

import numpy.typing as npt

from ...base.aligned import aligned
from ...base.background import background_executor
from ...base.mapped import in_memory
from ...graph.node import Constant, Function
from ...graph.visit import post_order

Array = npt.NDArray[Any]


class ConstantArrays:
    """A block in which the constants of a function that is compiled become arrays in memory, on cache lines: weights
    are packed there, and those that lie in files are read. What is not done when the block ends in an error is left."""

    def __init__(self, function: Function) -> None:
        constants = [node for node in post_order(function.body) if isinstance(node, Constant) and node.size != 1]
        self._thread = background_executor()
        self._arrays: dict[Constant, Future[Array]] = {
            constant: self._thread.submit(_array, constant) for constant in constants
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    def finished(self, constants: Sequence[Constant]) -> tuple[Array, ...]:
        """The arrays of some of the constants, when they are made. Raises what making them does."""
        return tuple(self._arrays[c].result() if c in self._arrays else _array(c) for c in constants)

    def __iter__(self) -> Iterator[Array]:
        """All but those of one element, as they are made. Raises ``CancelledError`` when the block has ended."""
        return (array.result() for array in self._arrays.values())


def _array(constant: Constant) -> Array:
    return aligned(in_memory(constant.value))
