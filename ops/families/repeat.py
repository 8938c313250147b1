"""Operators that repeat elements along axes: broadcast_to, tile and repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ... import te
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ZERO, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition.arguments import axis_of, integer_list
from ..definition.attrs import Attrs, all_non_negative, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import broadcast_shapes, tensor_argument
from ..definition.strategy import register_compute
from .reshape import RESHAPE, ReshapeAttrs, expand_dims

GROUP = OpGroup.SHAPES


@dataclass(frozen=True)
class BroadcastToAttrs(Attrs):
    shape: tuple[int, ...] = attr("the shape that x is broadcast with", check=all_non_negative)


@dataclass(frozen=True)
class TileAttrs(Attrs):
    repeats: tuple[int, ...] = attr("how often x is repeated along each axis", check=all_non_negative)


def _broadcast_to_relation(types: Sequence[Type], attrs: BroadcastToAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    return TensorType(broadcast_shapes([x.shape, tuple(map(as_index, attrs.shape))], ("x", "the shape")), x.dtype)


def _broadcast_to_compute(attrs: BroadcastToAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    stretched = [const_int(e) == 1 for e in x.shape]

    def element(*i: te.Axis) -> Expr:
        own = i[len(i) - x.ndim :]
        return x[tuple(ZERO if one else index for one, index in zip(stretched, own, strict=True))]

    return te.compute(tensor_argument(result, "result").shape, element, name="broadcast_to")


def _tile_relation(types: Sequence[Type], attrs: TileAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if len(attrs.repeats) != x.ndim:
        raise TypeInferenceError(f"{len(attrs.repeats)} repeats are given for the {x.ndim} axes of x")
    extents = (simplify(e * r) for e, r in zip(x.shape, attrs.repeats, strict=True))
    return TensorType(tuple(extents), x.dtype)


def _tile_compute(attrs: TileAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs

    def index(axis: int, i: te.Axis) -> Expr | te.Axis:
        extent = const_int(x.shape[axis])
        if extent == 1:
            return ZERO
        return i if attrs.repeats[axis] == 1 or extent == 0 else i % x.shape[axis]

    return te.compute(
        tensor_argument(result, "result").shape, lambda *i: x[tuple(index(k, v) for k, v in enumerate(i))], name="tile"
    )


BROADCAST_TO = register_op(
    "broadcast_to",
    "extents of 1 stretched, and axes added in front, as numpy broadcasts",
    [("x", "any shape")],
    _broadcast_to_relation,
    OpPattern.BROADCAST,
    BroadcastToAttrs,
    support_level=3,
)
TILE = register_op(
    "tile",
    "the tensor repeated along its axes",
    [("x", "any shape")],
    _tile_relation,
    OpPattern.INJECTIVE,
    TileAttrs,
    support_level=3,
)
register_compute(BROADCAST_TO, _broadcast_to_compute)
register_compute(TILE, _tile_compute)


def broadcast_to(x: Node, shape: Sequence[int]) -> Call:
    """x broadcast with a shape, as numpy has it: both may have extents of 1 that stretch."""
    return BROADCAST_TO(x, attrs=BroadcastToAttrs(integer_list(shape, "shape")))


def tile(x: Node, repeats: Sequence[int]) -> Call:
    """x repeated along each axis; missing repeats, in front, are 1."""
    given = integer_list(repeats, "repeats")
    return TILE(x, attrs=TileAttrs((1,) * (tensor_of(x).ndim - len(given)) + given))


def repeat(x: Node, times: int, axis: int) -> Node:
    """``numpy.repeat``: each element of an axis ``times`` times in a row."""
    kind = tensor_of(x)
    at = axis_of("repeat", x, axis)
    stretched = broadcast_to(expand_dims(x, at + 1), (times, *(1,) * (kind.ndim - at - 1)))
    extents = [const_int(e) for e in kind.shape]
    if None in extents[at + 1 :]:
        raise TypeInferenceError(f"repeat of {kind} needs known extents after axis {at}")
    copied = tuple(axis for axis in range(at) if extents[axis] is None)
    own = extents[at]
    shape = [*(e or 0 for e in extents[:at]), -1 if own is None else own * times, *(e or 0 for e in extents[at + 1 :])]
    return RESHAPE(stretched, attrs=ReshapeAttrs(tuple(shape), copied))
