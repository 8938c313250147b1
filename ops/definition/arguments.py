"""What users give, as attributes have it: for the last step of an operator, the function that makes its calls.

A number becomes a tuple, a negative axis one from 0, None what it stands for. What does not fit is told with the
operator's name and the argument, as relations do.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from ...base.dtype import dtype
from ...base.errors import ExpressionError, TypeInferenceError
from ...graph.node import Node, Tuple, TupleGet, check_node, tensor_of
from ...graph.types import TupleType
from .relations import normalize_axes, normalize_axis

PerAxis: TypeAlias = int | Sequence[int]
"""A number for each axis concerned, or one for all."""


@contextmanager
def naming(op: str, x: Node | None = None, name: str = "x") -> Iterator[None]:
    """Where arguments are normalised, before there is a call: what does not fit is told with the operator's name."""
    try:
        yield
    except TypeInferenceError as error:
        argument = f"({name}: {x.type})" if isinstance(x, Node) else ""
        raise TypeInferenceError(f"{op}{argument}: {error}") from None


def tensors_of(op: str, given: object) -> tuple[Node, ...]:
    """What an operator of any number of tensors is given: a list of nodes, in which a tuple stands for its members, or
    a tuple by itself."""
    values = (given,) if isinstance(given, Node) else given
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeInferenceError(f"{op}: expected a list of nodes, found {given!r}")
    with naming(op):
        return tuple(member for value in values for member in _members(value))


def _members(value: object) -> Iterator[Node]:
    node = check_node(value)
    if not isinstance(node.type, TupleType):
        yield node
        return
    numbers = range(len(node.type.fields))
    for field in node.fields if isinstance(node, Tuple) else (TupleGet(node, number) for number in numbers):
        yield from _members(field)


def integer(value: object, name: str) -> int:
    """A whole number, of Python or numpy."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ExpressionError):
        raise TypeInferenceError(f"{name} must be an integer, found {value!r}") from None


def real(value: object, name: str) -> float:
    """A number, of Python or numpy."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise TypeInferenceError(f"{name} must be a number, found {value!r}") from None


def flag(value: object, name: str) -> bool:
    """A flag that is given as a bool, or as a number in its place."""
    if not isinstance(value, (bool, int, np.bool_)):
        raise TypeInferenceError(f"{name} must be True or False, found {value!r}")
    return bool(value)


def dtype_name(kind: object) -> str:
    """A dtype by its name; that of the operator's own choice, which is none, is empty."""
    return "" if kind is None or (isinstance(kind, str) and not kind) else str(dtype(kind))  # type: ignore[arg-type]


def integer_list(values: object, name: str) -> tuple[int, ...]:
    """Whole numbers, of which there may be none; one by itself is none."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeInferenceError(f"{name} must be a list of integers, as in [2, 3], found {values!r}")
    return tuple(integer(value, name) for value in values)


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
    """An axis of an argument, counted from 0, of one that may be negative. Raises ``TypeInferenceError``, with the
    operator and the argument, for one that is not there."""
    with naming(op, x, name):
        return normalize_axis(integer(axis, "axis"), tensor_of(x).ndim)


def axes_of(op: str, x: Node, axes: PerAxis | None, name: str = "x") -> tuple[int, ...]:
    """Axes of an argument, counted from 0, ascending; None means all. Raises ``TypeInferenceError``, with the
    operator and the argument, for an axis that is not there, or is given twice."""
    with naming(op, x, name):
        rank = tensor_of(x).ndim
        return tuple(range(rank)) if axes is None else normalize_axes(integers(axes, "axes"), rank)
