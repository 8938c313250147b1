"""What the type relations of several families need: arguments' types, and the rules of broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import ExpressionError, TypeInferenceError
from ...graph.types import TensorType, Type
from ...ir.expr import Expr
from ...te.broadcasting import broadcast_shapes as te_broadcast_shapes

FLOAT_KINDS = ("float", "bfloat")
INTEGER_KINDS = ("int", "uint")
NUMBER_KINDS = (*FLOAT_KINDS, *INTEGER_KINDS)


def tensor_argument(kind: Type, name: str) -> TensorType:
    """The type of an argument that must be a tensor. Raises ``TypeInferenceError``, with the argument's name, if it
    is none."""
    if not isinstance(kind, TensorType):
        raise TypeInferenceError(f"{name} must be a tensor, found a {kind}")
    return kind


def broadcast_shapes(shapes: Sequence[tuple[Expr, ...]], names: Sequence[str] = ()) -> tuple[Expr, ...]:
    """The shape of a result by numpy's rules of broadcasting; ``names`` are those of the arguments, for errors.
    Raises ``TypeInferenceError`` where extents do not fit."""
    try:
        return te_broadcast_shapes(shapes, names)
    except ExpressionError as error:
        raise TypeInferenceError(str(error)) from None


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
