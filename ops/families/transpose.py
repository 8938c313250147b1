"""transpose: a tensor with its axes in another order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ... import te
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.row_major import ravel_index, unravel_index
from ...ir.simplify import simplify
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...schedules.register_transpose import schedule_transposed, transposed
from ...te.tensor import Tensors
from ..definition.arguments import axis_of, integer_list, naming
from ..definition.attrs import Attrs, attr
from ..definition.condition import clause
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import injective_schedule
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import OpStrategy, register_strategy

GROUP = OpGroup.SHAPES

MOST_LANES = 16
"""Of narrow elements, vectors are shorter than they could be: tiles of whole ones would be many instructions."""

MOST_INTERLEAVED = 4
"""So many vectors at most are shuffled into each one that is written."""


@dataclass(frozen=True)
class TransposeAttrs(Attrs):
    axes: tuple[int, ...] = attr("for each axis of the result, the axis of the argument that it is")


def _relation(types: Sequence[Type], attrs: TransposeAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if sorted(attrs.axes) != list(range(x.ndim)):
        raise TypeInferenceError(f"axes {attrs.axes} are not the {x.ndim} axes of x in some order")
    return TensorType(tuple(x.shape[axis] for axis in attrs.axes), x.dtype)


def _compute(attrs: TransposeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    position = {axis: k for k, axis in enumerate(attrs.axes)}

    def element(*i: te.Axis) -> Expr:
        return x[tuple(i[position[axis]] for axis in range(x.ndim))]

    return te.compute([x.shape[axis] for axis in attrs.axes], element, name="transpose")


@dataclass(frozen=True, slots=True)
class TiledTranspose:
    """Square tiles of ``lanes`` vectors, which are read along the rows of the source, transposed in registers, and
    written along those of the result. ``runs`` are the axes of the result in runs that are neighbours in the source
    too: each counts as one axis.
    """

    runs: tuple[range, ...]
    axes: tuple[int, ...]
    lanes: int

    def fills(self, result: TensorType) -> bool:
        """Whether both sides of a tile are as long as vectors, as far as is known."""
        sides = (self._in_order_of_source()[-1], self.runs[-1])
        known = (const_int(simplify(math.prod(_extents(result, run), start=ONE))) for run in sides)
        return all(extent is None or extent >= self.lanes for extent in known)

    def _in_order_of_source(self) -> list[range]:
        return sorted(self.runs, key=lambda run: self.axes[run[0]])

    def compute(self, attrs: TransposeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
        (x,) = inputs
        kind = tensor_argument(result, "result")
        source, size = self._in_order_of_source(), self.lanes * self.lanes
        read, last = self.runs.index(source[-1]), len(self.runs) - 1
        extents = [math.prod(_extents(kind, run)) for run in self.runs]
        tiles = [(e + (self.lanes - 1)) // self.lanes if k in (read, last) else e for k, e in enumerate(extents)]

        def load(*index: te.Axis) -> Expr:
            *place, element = map(as_index, index)
            place[read] = place[read] * self.lanes + element % self.lanes
            place[last] = place[last] * self.lanes + element // self.lanes
            indices = {run: unravel_index(i, _extents(kind, run)) for run, i in zip(self.runs, place, strict=True)}
            value = x[tuple(i for run in source for i in indices[run])]
            inside = te.all(place[read] < extents[read], place[last] < extents[last])
            return te.if_then_else(inside, value, te.const(0, x.dtype))

        rows = te.compute((*tiles, size), load, name="transpose.rows")
        tile, *_ = transposed(rows, self.lanes, "transpose")

        def element(*i: te.Axis) -> Expr:
            place = [ravel_index([as_index(i[k]) for k in run], _extents(kind, run)) for run in self.runs]
            within = place[read] % self.lanes * self.lanes + place[last] % self.lanes
            place[read], place[last] = place[read] // self.lanes, place[last] // self.lanes
            return tile[(*place, within)]

        return te.compute(kind.shape, element, name="transpose")

    def schedule(self, attrs: TransposeAttrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        stages = [*anchor[0].op.inputs]
        while stages[-1].op.name != "transpose.rows":
            stages.append(*stages[-1].op.inputs)
        schedule, main = schedule_around(anchor[0], outputs, stages, target)
        stage = schedule[main]
        loops = [stage.fuse(*(stage.loops[run[0] : run[0] + len(run)])) for run in reversed(self.runs)][::-1]
        last = loops.pop()
        read = self.runs.index(self._in_order_of_source()[-1])
        loops[read], along = stage.split(loops[read], factor=self.lanes)
        block, across = stage.split(last, factor=self.lanes)
        stage.reorder(*loops, block, along, across)
        stage.unroll(along)
        stage.vectorize(across)
        stage.parallel(stage.fuse(*loops))
        schedule_transposed(schedule, stages, stage, block, self.lanes)
        return schedule


@dataclass(frozen=True, slots=True)
class InterleavedTranspose:
    """Few long rows become the elements of many short ones, as channels of an image do: a vector of each row is read,
    and as many vectors are written, whose elements come from all of them in turn. ``runs`` are as in TiledTranspose;
    the last one of the result is the one of the rows, and the last but one runs along them.
    """

    runs: tuple[range, ...]
    axes: tuple[int, ...]
    lanes: int

    def serves(self, result: TensorType) -> bool:
        if len(self.runs) < 2 or self.axes[self.runs[-2][-1]] != len(self.axes) - 1:
            return False
        length, rows = (const_int(simplify(math.prod(_extents(result, run), start=ONE))) for run in self.runs[-2:])
        return rows is not None and 1 < rows <= MOST_INTERLEAVED and (length is None or length >= self.lanes)

    def compute(self, attrs: TransposeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
        (x,) = inputs
        kind = tensor_argument(result, "result")
        order = sorted(self.runs, key=lambda run: self.axes[run[0]])
        *outer, length, rows = (math.prod(_extents(kind, run), start=ONE) for run in self.runs)

        def load(*index: te.Axis) -> Expr:
            *place, block, element = map(as_index, index)
            place += [block * self.lanes + element % self.lanes, element // self.lanes]
            indices = {run: unravel_index(i, _extents(kind, run)) for run, i in zip(self.runs, place, strict=True)}
            value = x[tuple(i for run in order for i in indices[run])]
            return te.if_then_else(place[-2] < length, value, te.const(0, x.dtype))

        shape = (*outer, (length + (self.lanes - 1)) // self.lanes, rows * self.lanes)
        vectors = te.compute([simplify(extent) for extent in shape], load, name="transpose.rows")

        def element(*i: te.Axis) -> Expr:
            *place, at, row = (ravel_index([as_index(i[k]) for k in run], _extents(kind, run)) for run in self.runs)
            return vectors[(*place, at // self.lanes, row * self.lanes + at % self.lanes)]

        return te.compute(kind.shape, element, name="transpose")

    def schedule(self, attrs: TransposeAttrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        (rows,) = anchor[0].op.inputs
        schedule, main = schedule_around(anchor[0], outputs, [rows], target)
        stage = schedule[main]
        first = self.runs[-2][0]
        outer, inner = stage.loops[:first], stage.loops[first:]
        block, within = stage.split(stage.fuse(*inner), factor=const_int(rows.shape[-1]))
        vector, lane = stage.split(within, factor=self.lanes)
        stage.unroll(vector)
        stage.vectorize(lane)
        task = stage.fuse(*outer, block)
        stage.parallel(task)
        read = schedule[rows]
        read.compute_at(stage, task)
        vector, lane = read.split(read.loops[-1], factor=self.lanes)
        read.unroll(vector)
        read.vectorize(lane)
        return schedule


def _extents(result: TensorType, run: range) -> list[Expr]:
    return [result.shape[k] for k in run]


def _runs(axes: Sequence[int]) -> tuple[range, ...]:
    """The axes of the result in the longest runs that are neighbours, in order, in the source."""
    starts = [k for k in range(len(axes)) if k == 0 or axes[k] != axes[k - 1] + 1]
    return tuple(range(a, b) for a, b in zip(starts, [*starts[1:], len(axes)], strict=True))


TRANSPOSE = register_op(
    "transpose",
    "the axes in another order",
    [("x", "any shape")],
    _relation,
    OpPattern.INJECTIVE,
    TransposeAttrs,
    support_level=3,
)


@register_strategy(TRANSPOSE)
def _strategy(attrs: TransposeAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_compute, injective_schedule.for_target(target), "transpose.generic")
    kind = tensor_argument(result, "result")
    if attrs.axes and attrs.axes[-1] != len(attrs.axes) - 1:
        tiled = TiledTranspose(_runs(attrs.axes), attrs.axes, min(target.lanes(kind.dtype), MOST_LANES))
        with strategy.specialized(clause("tiles fill vectors", tiled.fills(kind))):
            strategy.add_implementation(tiled.compute, tiled.schedule, "transpose.tiled", plevel=20)
        interleaved = InterleavedTranspose(tiled.runs, tiled.axes, tiled.lanes)
        with strategy.specialized(clause("few long rows", interleaved.serves(kind))):
            strategy.add_implementation(interleaved.compute, interleaved.schedule, "transpose.interleaved", plevel=20)
    return strategy


def transpose(x: Node, axes: Sequence[int] | None = None) -> Call:
    """x with axis k of the result being axis ``axes[k]`` of x; the axes reversed, if none are given."""
    reverse = reversed(range(tensor_of(x).ndim))
    with naming("transpose", x):
        given = integer_list(reverse if axes is None else axes, "axes")
    order = tuple(axis_of("transpose", x, axis) for axis in given)
    return TRANSPOSE(x, attrs=TransposeAttrs(order))
