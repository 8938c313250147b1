"""Operators that repeat elements along axes: broadcast_to, tile and repeat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Expr
from ...ir.makers import maximum, minimum
from ...ir.simplify import simplify
from ...lowering.schedule import LoopView, Schedule
from ...schedules.around import schedule_around
from ...schedules.default_schedule import pointwise_lanes
from ...te.tensor import Tensors
from ..definition.arguments import axis_of, integer_list
from ..definition.attrs import Attrs, attr
from ..definition.cost import elements, moved
from ..definition.extent_formulas import FORMULAS, as_formulas, extent_of_formula, no_number_negative
from ..definition.layout_rule import ValueLayout, follow_axes
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import injective_schedule
from ..definition.registry import OpPattern, register_op
from ..definition.relations import broadcast_shapes, normalize_axis, tensor_argument
from ..definition.strategy import OpStrategy, register_compute, register_strategy
from .concatenate import concatenate

GROUP = OpGroup.SHAPES

CYCLES_PER_ELEMENT = 8
"""Measured: of each element a remainder by an open extent is worked out, and it is loaded by itself."""
COPIED = 16
"""Elements of a row that are worth copying by themselves."""
CONCATENATED = (2, 3, 4)
"""How often rows are repeated by a concatenation; of more parts it takes longer."""


@dataclass(frozen=True)
class BroadcastToAttrs(Attrs):
    """The attributes of ``broadcast_to``."""

    shape: tuple[int | str, ...] = attr(f"the shape that x is broadcast with: {FORMULAS}", check=no_number_negative)
    open_ones: bool = attr(
        "whether an open extent of x that is not the shape's may be 1 in a run, and stretches then", default=False
    )


@dataclass(frozen=True)
class TileAttrs(Attrs):
    """The attributes of ``tile``."""

    repeats: tuple[int | str, ...] = attr(
        f"how often x is repeated along each axis: {FORMULAS}", check=no_number_negative
    )


@dataclass(frozen=True)
class RepeatAttrs(Attrs):
    """The attributes of ``repeat``."""

    axis: int = attr("the axis, 0 or more")
    times: int = attr("how often each of its elements comes", check=lambda n: None if n >= 0 else "must be 0 or more")


def _broadcast_to_relation(types: Sequence[Type], attrs: BroadcastToAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    shape = tuple(extent_of_formula(extent, types) for extent in attrs.shape)
    own = x.shape
    if attrs.open_ones:  # each run checks these
        own = tuple(ONE if a is not b else a for a, b in _met(own, shape))
    return TensorType(broadcast_shapes([own, shape], ("x", "the shape")), x.dtype)


def _met(own: Sequence[Expr], shape: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    """The extents of x, each with that of the shape, or with itself where the shape says nothing."""
    missing = len(own) - len(shape)
    said = [*own[: max(missing, 0)], *shape[max(-missing, 0) :]]
    return [(a, a if const_int(b) == 1 else b) for a, b in zip(own, said, strict=True)]


def _broadcast_to_compute(attrs: BroadcastToAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x, shape = inputs[0], tensor_argument(result, "result").shape

    def index(own: Expr, extent: Expr, i: te.Axis) -> Expr | te.Axis:
        if const_int(own) == 1:
            return ZERO
        return te.if_then_else(own == 1, 0, i) if attrs.open_ones and own is not extent else i

    def element(*i: te.Axis) -> Expr:
        behind = len(i) - x.ndim
        return x[tuple(index(*each) for each in zip(x.shape, shape[behind:], i[behind:], strict=True))]

    return te.compute(shape, element, name="broadcast_to")


def _asked_of_broadcast(call: Call) -> Sequence[Expr]:
    """An open extent differs by nothing from that of the result, or from 1."""
    own, extents = tensor_of(call.args[0]).shape, tensor_of(call).shape
    pairs = zip(own, extents[len(extents) - len(own) :], strict=True) if call.attrs.open_ones else ()
    return tuple(
        ZERO - minimum(maximum(a - b, b - a), maximum(a - 1, 1 - a)) for a, b in pairs if a is not b and a is not ONE
    )


def _tile_relation(types: Sequence[Type], attrs: TileAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if len(attrs.repeats) != x.ndim:
        raise TypeInferenceError(f"{len(attrs.repeats)} repeats are given for the {x.ndim} axes of x")
    extents = (simplify(e * extent_of_formula(r, types)) for e, r in zip(x.shape, attrs.repeats, strict=True))
    return TensorType(tuple(extents), x.dtype)


def _tile_compute(attrs: TileAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x = inputs[0]

    def index(axis: int, i: te.Axis) -> Expr | te.Axis:
        extent = const_int(x.shape[axis])
        if extent == 1:
            return ZERO
        return i if attrs.repeats[axis] == 1 or extent == 0 else i % x.shape[axis]

    return te.compute(
        tensor_argument(result, "result").shape, lambda *i: x[tuple(index(k, v) for k, v in enumerate(i))], name="tile"
    )


@dataclass(frozen=True, slots=True)
class TiledParts:
    """The schedule of a tensor that is repeated along axes of which only a run knows the extents: each of these is so
    many parts as it is repeated, or parts of its extent in x, so that no remainder finds the elements. ``parts`` are
    the numbers of parts, and ``extents`` those of x, by axis, where axes are cut by them."""

    parts: Mapping[int, int]
    extents: Mapping[int, int]

    @classmethod
    def of(cls, attrs: TileAttrs, x: TensorType) -> TiledParts:
        """The cuts of those axes of which one number is known, or both."""
        axes = [(a, const_int(e), n) for a, (e, n) in enumerate(zip(x.shape, attrs.repeats, strict=True))]
        parts = {axis: n for axis, extent, n in axes if extent is None and isinstance(n, int) and n > 1}
        return cls(parts, {axis: e for axis, e, n in axes if e is not None and e > 1 and n not in (0, 1)})

    @property
    def cut(self) -> list[int]:
        """The axes that are cut."""
        return sorted((*self.parts, *self.extents))

    def serves(self, attrs: TileAttrs) -> bool:
        """Whether only a run knows an extent or repeats of an axis that is cut."""
        return bool(self.parts) or any(isinstance(attrs.repeats[axis], str) for axis in self.extents)

    def schedule(self, attrs: TileAttrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        """What is behind the last cut is a row, which lies in x as it does in the result: its vectors are copied. The
        axes and parts around run in parallel, but the innermost parts."""
        (tiled,) = anchor
        schedule, main = schedule_around(tiled, outputs, [], target)
        stage = schedule[main]
        outer: list[LoopView] = []
        row: list[LoopView] = []
        for axis, loop in enumerate(stage.loops):
            if axis in self.cut:
                part, inner = stage.split(loop, nparts=self.parts.get(axis), factor=self.extents.get(axis))
                outer, row = [*outer, *row, part], [inner]
            else:
                row.append(loop)
        known = [const_int(extent) for extent in tiled.shape[self.cut[-1] + 1 :]]
        own = self.extents.get(self.cut[-1])
        length = own * math.prod(n for n in known if n) if own and all(known) else None
        vectors, lane = stage.split(stage.fuse(*row), factor=pointwise_lanes(stage, length, target))
        stage.vectorize(lane)
        around = outer[:-1] or outer
        stage.reorder(*outer, vectors, lane)
        stage.parallel(stage.fuse(*around))
        return schedule


def _repeat_relation(types: Sequence[Type], attrs: RepeatAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    axis = normalize_axis(attrs.axis, x.ndim)
    return TensorType((*x.shape[:axis], simplify(x.shape[axis] * attrs.times), *x.shape[axis + 1 :]), x.dtype)


def _repeat_compute(attrs: RepeatAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,), axis, times = inputs, attrs.axis, max(attrs.times, 1)
    shape = tensor_argument(result, "result").shape
    return te.compute(shape, lambda *i: x[(*i[:axis], i[axis] // times, *i[axis + 1 :])], name="repeat")


def _repeat_in_layout(attrs: RepeatAttrs, given: ValueLayout) -> RepeatAttrs | None:
    """The axis must not be cut into blocks."""
    axis = given.moved_axis(attrs.axis)
    return None if axis is None else replace(attrs, axis=axis)


BROADCAST_TO = register_op(
    "broadcast_to",
    "extents of 1 stretched, and axes added in front, as numpy broadcasts",
    [("x", "any shape; behind it tensors that open extents are computed from, whose elements are not read")],
    _broadcast_to_relation,
    OpPattern.BROADCAST,
    BroadcastToAttrs,
    variadic=True,
    support_level=3,
    extent_rule=_asked_of_broadcast,
)
TILE = register_op(
    "tile",
    "the tensor repeated along its axes",
    [("x", "any shape; behind it tensors that open repeats are computed from, whose elements are not read")],
    _tile_relation,
    OpPattern.INJECTIVE,
    TileAttrs,
    variadic=True,
    support_level=3,
)
REPEAT = register_op(
    "repeat",
    "each element of an axis several times in a row",
    [("x", "any shape")],
    _repeat_relation,
    OpPattern.INJECTIVE,
    RepeatAttrs,
    support_level=3,
    layout_rule=follow_axes(_repeat_in_layout),
)
register_compute(BROADCAST_TO, _broadcast_to_compute)
register_compute(REPEAT, _repeat_compute)


@register_strategy(TILE)
def _tile_strategy(attrs: TileAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy, movement = OpStrategy(), moved([inputs[0], result])
    made = TiledParts.of(attrs, tensor_argument(inputs[0], "x"))
    cost = CYCLES_PER_ELEMENT * elements(result) if made.serves(attrs) else movement
    strategy.add_implementation(_tile_compute, injective_schedule.for_target(target), "tile.generic", cost=cost)
    if made.serves(attrs):
        strategy.add_implementation(_tile_compute, made.schedule, "tile.parts", cost=movement)
    return strategy


def broadcast_to(x: Node, shape: Sequence[int]) -> Call:
    """x broadcast with a shape, as numpy has it: both may have extents of 1 that stretch."""
    return BROADCAST_TO(x, attrs=BroadcastToAttrs(integer_list(shape, "shape")))


def broadcast_to_extents(x: Node, shape: Sequence[int | Expr], of: Iterable[Node]) -> Call:
    """x broadcast with a shape whose extents may be formulas over dimensions that tensors among ``of`` have by
    themselves."""
    formulas, used = as_formulas(shape, of)
    return BROADCAST_TO(x, *used, attrs=BroadcastToAttrs(formulas))


def stretched_to_extents(x: Node, shape: Sequence[int | Expr], of: Iterable[Node]) -> Call:
    """The same where each extent of x that is not the shape's is 1 when a run computes it, or the shape's after all."""
    formulas, used = as_formulas(shape, of)
    return BROADCAST_TO(x, *used, attrs=BroadcastToAttrs(formulas, open_ones=True))


def tile(x: Node, repeats: Sequence[int]) -> Call:
    """x repeated along each axis; missing repeats, in front, are 1."""
    given = integer_list(repeats, "repeats")
    return _tiled(x, (1,) * (tensor_of(x).ndim - len(given)) + given, ())


def tile_by_extents(x: Node, repeats: Sequence[int | Expr], of: Iterable[Node]) -> Call:
    """x repeated along each axis, as often as numbers say, or formulas over dimensions that tensors among ``of`` have
    by themselves."""
    return _tiled(x, *as_formulas(repeats, of))


def _tiled(x: Node, repeats: tuple[int | str, ...], used: Sequence[Node]) -> Call:
    """Rows that are repeated a few times are a concatenation, whose elements no remainder finds; but long ones of an
    open number that is repeated, too, are copied part by part."""
    extents = [const_int(extent) for extent in tensor_of(x).shape]
    along = next((k for k in reversed(range(len(extents))) if extents[k] != 1), None)
    if along is None or len(repeats) != len(extents) or not extents[along] or repeats[along] not in CONCATENATED:
        return TILE(x, *used, attrs=TileAttrs(repeats))
    others = (*repeats[:along], 1, *repeats[along + 1 :])
    open_parts = any(extent is None and times != 1 for extent, times in zip(extents, others, strict=True))
    if open_parts and (extents[along] or 0) >= COPIED:
        return TILE(x, *used, attrs=TileAttrs(repeats))
    rows = concatenate([x] * int(repeats[along]), along)
    return rows if all(times == 1 for times in others) else TILE(rows, *used, attrs=TileAttrs(others))


def repeat(x: Node, times: int, axis: int) -> Node:
    """``numpy.repeat``: each element of an axis ``times`` times in a row."""
    return REPEAT(x, attrs=RepeatAttrs(axis_of("repeat", x, axis), times))
