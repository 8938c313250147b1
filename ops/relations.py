"""What the type relations of several families need: arguments' types, and the rules of broadcasting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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


def broadcast_shapes(shapes: Sequence[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """The shape that numpy's rules give: aligned at the right, an extent of 1 stretches.

    A symbolic extent against another one must be the same expression; against a number other than 1, the number holds.
    """
    rank = max((len(s) for s in shapes), default=0)
    result: list[Expr] = []
    for dim in range(-rank, 0):
        extents = [s[dim] for s in shapes if len(s) >= -dim]
        chosen = extents[0]
        for extent in extents[1:]:
            chosen = _broadcast_extent(chosen, extent)
        result.append(chosen)
    return tuple(result)


def _broadcast_extent(a: Expr, b: Expr) -> Expr:
    if a is b or const_int(b) == 1:
        return a
    if const_int(a) == 1:
        return b
    if (const_int(a) is not None and const_int(b) is not None) or (const_int(a) is None and const_int(b) is None):
        raise TypeInferenceError(f"extents {a} and {b} do not broadcast")
    return b if const_int(a) is None else a


def normalize_axis(axis: int, rank: int) -> int:
    """An axis counted from the end if negative. Raises ``TypeInferenceError`` if there is none such."""
    if not -rank <= axis < rank:
        raise TypeInferenceError(f"axis {axis} is not one of a tensor of rank {rank}")
    return axis % rank


def same_dtype(types: Sequence[TensorType], names: Sequence[str]) -> None:
    """All arguments must have one dtype."""
    for kind, name in zip(types[1:], names[1:], strict=True):
        if kind.dtype is not types[0].dtype:
            raise TypeInferenceError(f"{names[0]} is {types[0].dtype}, but {name} is {kind.dtype}")


@contextmanager
def naming(operator: str) -> Iterator[None]:
    """Where arguments are normalised, before there is a call: what does not fit is told with the operator's name."""
    try:
        yield
    except TypeInferenceError as error:
        raise TypeInferenceError(f"{operator}: {error}") from None
