"""concatenate: tensors one after the other along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Expr
from ...ir.functions import are_costly
from ...ir.simplify import simplify
from ...lowering.schedule import LoopView, Schedule, StageView
from ...schedules.around import schedule_around
from ...schedules.blocks import largest_divisor
from ...schedules.default_schedule import pointwise_lanes
from ...te.tensor import Tensors
from ..definition.arguments import axis_of, tensors_of
from ..definition.attrs import Attrs, attr
from ..definition.condition import clause
from ..definition.layout_rule import ValueLayout, follow_axes
from ..definition.memory_view import RunsOfResult
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import injective_schedule
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis, same_dtype, same_extent, tensor_argument
from ..definition.strategy import OpStrategy, register_strategy

GROUP = OpGroup.PARTS

SHORT_PIECE = 32
"""Pieces of at most so many elements in a row, on average, are not worth vectors that choose among them."""
FEW_ALIKE, FEW_OTHERS = 4, 8
"""More pieces are not either: of a common divisor, or of others."""
FEW_ELEMENTS = 8
"""Pieces of fewer elements without a common divisor are not either, however few."""
LEAST_RUN, LONGEST_RUN = 4, 128
"""Fewer elements are no vector; more fill all registers."""
MOST_RUNS, MOST_COLUMNS = 128, 384
"""So many vectors of a row at most are instructions of their own, or so many elements."""
BLOCK = 1024
"""So many elements are copied before functions are computed of them, which do not leave the first cache."""


@dataclass(frozen=True)
class ConcatenateAttrs(Attrs):
    """The attributes of ``concatenate``."""

    axis: int = attr("the axis along which the tensors follow each other, 0 or more")


def _relation(types: Sequence[Type], attrs: ConcatenateAttrs) -> Type:
    tensors = [tensor_argument(t, f"tensor {k}") for k, t in enumerate(types)]
    same_dtype(tensors, [f"tensor {k}" for k in range(len(tensors))])
    first = tensors[0]
    normalize_axis(attrs.axis, first.ndim)
    extents = list(first.shape)
    for tensor in tensors[1:]:
        if tensor.ndim != first.ndim:
            raise TypeInferenceError(f"tensors of rank {first.ndim} and {tensor.ndim} cannot follow each other")
        for axis, extent in enumerate(tensor.shape):
            own = extents[axis]
            extents[axis] = (
                own + extent
                if axis == attrs.axis
                else same_extent(own, extent, f"the tensors have extents {own} and {extent} on axis {axis}")
            )
    return TensorType(tuple(simplify(e) for e in extents), first.dtype)


def _starts(extents: Sequence[Expr]) -> list[Expr]:
    """Where each tensor begins on the axis that they follow each other on."""
    starts: list[Expr] = [ZERO]
    for extent in extents[:-1]:
        starts.append(simplify(starts[-1] + extent))
    return starts


def _compute(attrs: ConcatenateAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    axis = attrs.axis
    starts = _starts([x.shape[axis] for x in inputs])

    def element(*i: te.Axis) -> Expr:
        def read(k: int) -> Expr:
            return inputs[k][(*i[:axis], i[axis] - starts[k], *i[axis + 1 :])]

        def choose(first: int, end: int) -> Expr:
            if end - first == 1:
                return read(first)
            middle = (first + end) // 2
            return te.if_then_else(i[axis] < starts[middle], choose(first, middle), choose(middle, end))

        return choose(0, len(inputs))

    return te.compute(tensor_argument(result, "result").shape, element, name="concatenate")


def _in_layout(attrs: ConcatenateAttrs, given: ValueLayout) -> ConcatenateAttrs:
    """Blocks that divide all tensors follow each other as their elements do."""
    return ConcatenateAttrs(given.layout.position(given.primal.axes[attrs.axis].name))


def _in_memory(call: Call) -> RunsOfResult | None:
    """Where the axis is the outermost one that has several elements, the tensors follow each other in memory."""
    shape = tensor_of(call).shape
    if any(const_int(extent) != 1 for extent in shape[: call.attrs.axis]):
        return None
    stride = math.prod(shape[call.attrs.axis + 1 :], start=ONE)
    starts = _starts([tensor_of(x).shape[call.attrs.axis] for x in call.args])
    return RunsOfResult(tuple(simplify(start * stride) for start in starts))


CONCATENATE = register_op(
    "concatenate",
    "tensors one after the other along an axis",
    [("x", "tensors that differ in the extent of that axis at most")],
    _relation,
    OpPattern.INJECTIVE,
    ConcatenateAttrs,
    variadic=True,
    support_level=1,
    layout_rule=follow_axes(_in_layout),
    memory_rule=_in_memory,
)


def _is_of_short_pieces(types: Sequence[Type], axis: int) -> bool:
    """Whether a vector of a row of the result would be of several tensors, and no more of them than can be written out
    run by run, or element by element."""
    widths = _widths(types, axis)
    if widths is None or not (total := sum(widths)):
        return False
    average, run = total / len(widths), _run(widths)
    if run >= LEAST_RUN:
        return (average <= SHORT_PIECE or len(widths) > FEW_ALIKE) and total <= MOST_RUNS * run
    is_short = average < FEW_ELEMENTS or (average <= SHORT_PIECE and len(widths) > FEW_OTHERS)
    return is_short and total <= MOST_COLUMNS


def _run(widths: Sequence[int]) -> int:
    """So many elements of a row are of one tensor at a time."""
    return largest_divisor(math.gcd(*widths), LONGEST_RUN)


def _widths(types: Sequence[Type], axis: int) -> list[int] | None:
    """How many elements in a row the tensors give to each row of the result, if that is known of all."""
    found = [_width(tensor_argument(kind, "x"), axis) for kind in types]
    known = [width for width in found if width is not None]
    return known if len(known) == len(found) else None


def _width(kind: TensorType, axis: int) -> int | None:
    """How many elements in a row a tensor gives to each row of the result, if that is known."""
    return const_int(simplify(math.prod(kind.shape[axis:], start=ONE)))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The schedule of short pieces, of which a row of the result has ``run`` elements from one tensor at a time: each
    such run is written by an instruction of its own, which knows the tensor that it comes from."""

    run: int

    def schedule(self, attrs: ConcatenateAttrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        """The schedule for some of these outputs. What functions make of single elements is computed in vectors, from a
        copy of some rows."""
        (result,) = anchor
        schedule, main = schedule_around(result, outputs, [], target)
        if main is not result and self.run < LEAST_RUN and are_costly(schedule[main].bodies):
            schedule, main = schedule_around(result, outputs, [result], target)
            block = _vectors_of_rows(schedule[main], attrs.axis, target)
            schedule[result].compute_at(schedule[main], block)
            self._write_columns(schedule[result], attrs.axis)
        else:
            stage = schedule[main]
            self._write_columns(stage, attrs.axis)
            stage.parallel(stage.fuse(*stage.loops[: attrs.axis]))
        return schedule

    def _write_columns(self, stage: StageView, axis: int) -> None:
        column = stage.fuse(*stage.loops[axis:])
        if self.run >= LEAST_RUN:
            column, lane = stage.split(column, factor=self.run)
            stage.vectorize(lane)
        stage.unroll(column)


def _vectors_of_rows(stage: StageView, axis: int, target: Target) -> LoopView:
    """Vectors of the elements of some rows, whatever columns these are of; gives the loop over such blocks of rows."""
    extents = [const_int(each.extent) for each in stage.computes[0].axis]
    rows = -(-BLOCK // math.prod(extent or 1 for extent in extents[axis:]))
    block, row = stage.split(stage.loops[axis - 1], factor=min(rows, extents[axis - 1] or rows))
    outer = [*stage.loops[: axis - 1], block]
    _, lane = stage.split(stage.fuse(row, *stage.loops[axis + 1 :]), factor=pointwise_lanes(stage, None, target))
    stage.vectorize(lane)
    task = stage.fuse(*outer)
    stage.parallel(task)
    return task


@register_strategy(CONCATENATE)
def _strategy(attrs: ConcatenateAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    if attrs.axis > 0:
        columns = _Columns(_run(_widths(inputs, attrs.axis) or [1]))
        with strategy.specialized(clause("short pieces", _is_of_short_pieces(inputs, attrs.axis))):
            strategy.add_implementation(_compute, columns.schedule, "concatenate.columns")
    strategy.add_implementation(_compute, injective_schedule.for_target(target), "concatenate.generic")
    return strategy


def concatenate(tensors: Sequence[Node] | Node, axis: int = 0) -> Call:
    """The tensors, at least one, one after the other along an axis. A tuple stands for its members."""
    parts = tensors_of("concatenate", tensors)
    if not parts:
        raise TypeInferenceError("concatenate needs at least one tensor")
    return CONCATENATE(*parts, attrs=ConcatenateAttrs(axis_of("concatenate", parts[0], axis)))
