"""What the type relations of several families need: arguments' types, and the rules of broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ...base.errors import TypeInferenceError
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr

FLOAT_KINDS = ("float", "bfloat")
INTEGER_KINDS = ("int", "uint")
NUMBER_KINDS = (*FLOAT_KINDS, *INTEGER_KINDS)


def tensor_argument(kind: Type, name: str) -> TensorType:
    """The type of an argument that must be a tensor. Raises ``TypeInferenceError``, with the argument's name, if it
    is none."""
    if not isinstance(kind, TensorType):
        raise TypeInferenceError(f"{name} must be a tensor, found a {kind}")
    return kind


class ExtentsDiffer(TypeInferenceError):  # noqa: N818  what it says, rather than that it is an error
    """Two extents that have to be one number are the numbers ``left`` and ``right``."""

    def __init__(self, left: Expr, right: Expr, message: str) -> None:
        super().__init__(message)
        self.left = left
        self.right = right

    def about(self, text: str) -> Self:
        """The same error with another message."""
        return type(self)(self.left, self.right, text)


class AssumptionFails(ExtentsDiffer):
    """Two extents are not one number, of which each run is to check that they are."""


def same_extent(a: Expr, b: Expr, message: str) -> Expr:
    """The extent that two stand for which have to be equal: the number, if one is known, else the first.

    Two that are open may be different dimensions here: the compiler makes them one, or has each run compare them.
    Raises ``ExtentsDiffer`` with the message for two numbers.
    """
    if a is b or const_int(b) is None:
        return a
    if const_int(a) is None:
        return b
    raise ExtentsDiffer(a, b, message)


class ExtentExceeds(TypeInferenceError):  # noqa: N818  what it says, as above
    """An extent is a number that is larger than another may let it be. Of open ones the extent rule of the operator has
    each run check that."""


class ExtentUndecided(TypeInferenceError):  # noqa: N818  what it says, as above
    """An extent is what others leave of no elements, which may be any number. That of open ones is a formula."""


def check_within(indices: Sequence[Expr], data: Sequence[Expr], axis: int) -> None:
    """Check that indices along an axis of data are on rows that these have: along no other axis are there more of them.

    Raises ``ExtentExceeds`` for numbers; ``left_of_rows`` is what is asked of others.
    """
    for k, (extent, wanted) in enumerate(zip(data, indices, strict=True)):
        has, needs = const_int(extent), const_int(wanted)
        if k != axis and has is not None and needs is not None and needs > has:
            raise ExtentExceeds(f"indices have extent {needs} on axis {k}, where data has {has}")


def left_of_rows(indices: Sequence[Expr], data: Sequence[Expr], axis: int) -> list[Expr]:
    """How many more rows data have than indices, along the axes but one; must not be negative."""
    pairs = enumerate(zip(data, indices, strict=True))
    return [has - needs for k, (has, needs) in pairs if k != axis and has is not needs]


def broadcast_shapes(shapes: Sequence[tuple[Expr, ...]], names: Sequence[str] = ()) -> tuple[Expr, ...]:
    """The shape that numpy's rules give: aligned at the right, an extent of 1 stretches; what else meets has to be
    equal. ``names`` are those of the arguments, for the ``ExtentsDiffer`` of two numbers that are not."""
    rank = max((len(s) for s in shapes), default=0)
    return tuple(_broadcast_extent(shapes, names, dim) for dim in range(-rank, 0))


def _broadcast_extent(shapes: Sequence[tuple[Expr, ...]], names: Sequence[str], dim: int) -> Expr:
    """The extent at a position that is counted from the end."""
    result, decides = ONE, 0
    for k, shape in enumerate(shapes):
        if len(shape) < -dim or shape[dim] is ONE:
            continue
        if result is not ONE:
            a, b = (f"{shapes[n][dim]}{f' of {names[n]}' if names else ''}" for n in (decides, k))
            found = same_extent(result, shape[dim], f"extents {a} and {b} do not broadcast")
        else:
            found = shape[dim]
        result, decides = found, k if found is shape[dim] else decides
    return result


def stretched_to(shape: Sequence[Expr], own: Sequence[Expr], names: tuple[str, str], message: str) -> tuple[Expr, ...]:
    """A shape that another one, of a tensor's ``own``, stretches to by numpy's rules, with the numbers that either
    tells: aligned at the right, and equal but for extents of 1 of the other. ``names`` are those of the two tensors.

    Raises ``TypeInferenceError`` with the message where it does not, ``ExtentsDiffer`` for two numbers.
    """
    missing = len(shape) - len(own)
    if missing < 0:
        raise TypeInferenceError(message)
    found = list(shape[:missing])
    for a, b in zip(shape[missing:], own, strict=True):
        problem = message if a is ONE else f"extents {a} of {names[0]} and {b} of {names[1]} do not broadcast"
        found.append(a if b is ONE else same_extent(a, b, problem))
    return tuple(found)


def normalize_axis(axis: int, rank: int) -> int:
    """An axis counted from the end if negative. Raises ``TypeInferenceError`` if there is none such."""
    if not -rank <= axis < rank:
        raise TypeInferenceError(f"axis {axis} is not one of a tensor of rank {rank}")
    return axis % rank


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from 0, ascending. Raises ``TypeInferenceError`` for one that is not there, or twice."""
    made = sorted(normalize_axis(axis, rank) for axis in axes)
    if len(set(made)) != len(made):
        raise TypeInferenceError(f"axes {tuple(axes)} name an axis twice")
    return tuple(made)


def same_dtype(types: Sequence[TensorType], names: Sequence[str]) -> None:
    """Check that all arguments have one dtype. Raises ``TypeInferenceError`` that names the first that differs."""
    for kind, name in zip(types[1:], names[1:], strict=True):
        if kind.dtype is not types[0].dtype:
            raise TypeInferenceError(f"{names[0]} is {types[0].dtype}, but {name} is {kind.dtype}")
