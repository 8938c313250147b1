"""What users give, as attributes have it: for the last step of an operator, the function that makes its calls.

A number becomes a tuple, a negative axis one from 0, None what it stands for. What does not fit is told with the
operator's name and the argument, as relations do.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from ..graph.node import Node, NodeBase, tensor_of
from ..ir.errors import TypeInferenceError
from .relations import normalize_axes, normalize_axis

PerAxis: TypeAlias = int | Sequence[int]
"""A number for each axis concerned, or one for all."""


@contextmanager
def naming(op: str, x: Node | None = None, name: str = "x") -> Iterator[None]:
    """Where arguments are normalised, before there is a call: what does not fit is told with the operator's name."""
    try:
        yield
    except TypeInferenceError as error:
        argument = f"({name}: {x.type})" if isinstance(x, NodeBase) else ""
        raise TypeInferenceError(f"{op}{argument}: {error}") from None


def integer(value: object, name: str) -> int:
    """A whole number, of Python or numpy."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeInferenceError(f"{name} must be an integer, found {value!r}") from None


def integers(values: PerAxis, name: str) -> tuple[int, ...]:
    """Whole numbers; one by itself is a tuple of one."""
    if isinstance(values, Iterable):
        return tuple(integer(value, name) for value in values)
    return (integer(values, name),)


def per_axis(value: PerAxis, rank: int, name: str) -> tuple[int, ...]:
    """One number for each of ``rank`` spatial axes. Raises ``TypeInferenceError`` if there are more or fewer."""
    values = integers(value, name) if isinstance(value, Iterable) else (integer(value, name),) * rank
    if len(values) != rank:
        raise TypeInferenceError(f"{name} needs a number for each of the {rank} spatial axes, found {values}")
    return values


def axis_of(op: str, x: Node, axis: int, name: str = "x") -> int:
    """An axis of an argument, from 0."""
    with naming(op, x, name):
        return normalize_axis(integer(axis, "axis"), tensor_of(x).ndim)


def axes_of(op: str, x: Node, axes: PerAxis | None, name: str = "x") -> tuple[int, ...]:
    """Axes of an argument, from 0, ascending; None means all. One that is given twice does not fit."""
    with naming(op, x, name):
        rank = tensor_of(x).ndim
        return tuple(range(rank)) if axes is None else normalize_axes(integers(axes, "axes"), rank)
