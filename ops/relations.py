"""What the type relations of several families need: arguments' types, and the rules of broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.types import TensorType, Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import Expr, const_int

FLOAT_KINDS = ("float", "bfloat")
INTEGER_KINDS = ("int", "uint")
NUMBER_KINDS = (*FLOAT_KINDS, *INTEGER_KINDS)


def tensor_argument(kind: Type, name: str) -> TensorType:
    """The type of an argument that must be a tensor."""
    if not isinstance(kind, TensorType):
        raise TypeInferenceError(f"{name} must be a tensor, found a {kind}")
    return kind


def broadcast_shapes(shapes: Sequence[tuple[Expr, ...]], names: Sequence[str] = ()) -> tuple[Expr, ...]:
    """The shape that numpy's rules give: aligned at the right, an extent of 1 stretches.

    A symbolic extent against another one must be the same expression; against a number other than 1, the number holds.
    ``names`` are those of the arguments, for errors.
    """
    rank = max((len(s) for s in shapes), default=0)
    result: list[Expr] = []
    for dim in range(-rank, 0):
        having = [k for k, s in enumerate(shapes) if len(s) >= -dim]
        decides = having[0]
        for k in having[1:]:
            chosen = _broadcast_extent(shapes[decides][dim], shapes[k][dim])
            if chosen is None:
                a, b = (f"{shapes[n][dim]}{f' of {names[n]}' if names else ''}" for n in (decides, k))
                raise TypeInferenceError(f"extents {a} and {b} do not broadcast")
            decides = k if chosen is shapes[k][dim] else decides
        result.append(shapes[decides][dim])
    return tuple(result)


def _broadcast_extent(a: Expr, b: Expr) -> Expr | None:
    if a is b or const_int(b) == 1:
        return a
    if const_int(a) == 1:
        return b
    if (const_int(a) is None) == (const_int(b) is None):
        return None
    return b if const_int(a) is None else a


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
    """All arguments must have one dtype."""
    for kind, name in zip(types[1:], names[1:], strict=True):
        if kind.dtype is not types[0].dtype:
            raise TypeInferenceError(f"{names[0]} is {types[0].dtype}, but {name} is {kind.dtype}")
