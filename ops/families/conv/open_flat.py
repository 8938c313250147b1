"""Convolutions of plain layouts whose positions are open, with those of several rows as one axis: vectors are full in
short rows, too.

What windows read is a copy of x with its padding, in phases of the strides, copy[n, c, phase…, i…] = padded
x[n, c, i·s + phase]. Its rows are as wide as those of outputs plus the largest shift of a tap, r·dilation =
shift·s + phase. So a tap is at the same distance from all positions, read one after the other, and sums are those of
vectors of positions that go on from row to row. Positions between the end of an output row and the begin of the next
are summed, too, and needed by nobody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.contents import free_vars
from ....ir.expr import Axis, Binary, Expr
from ....ir.facts import nonnegative
from ....ir.makers import as_index, maximum
from ....ir.row_major import ravel_index, unravel_index
from ....ir.simplify import simplify
from ....lowering.schedule import Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.vector_rows import VECTORS_OF_ROW, vectorize_padded, vectorize_row
from ....te.tensor import Tensor, Tensors
from ...definition.relations import tensor_argument
from .attrs import ConvAttrs
from .byte_tiles import FilterTiles
from .definition import DefinedStages, Terms
from .open_rows import OpenRows

ROWS = 8
"""Rows of outputs that are summed together: many, so that few vectors are cut short at the end, and few, so that sums
stay in the first cache."""
VECTORS_ALONE, VECTORS_TOGETHER = 4, 16
"""Vectors of positions in a tile of a group's only filter, and of a row without rows beside it that are summed
together."""


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """How windows move along a spatial axis, in units of what divides both stride and dilation: they read positions at
    multiples of ``unit`` only. ``width`` is the extent of a phase, in which an output and all of its taps are."""

    stride: int
    dilation: int
    unit: int
    width: Expr

    @staticmethod
    def of(stride: int, dilation: int, window: int, outputs: Expr, alone: bool) -> _Steps:
        """The steps along an axis of so many outputs; ``alone`` where a window has one element, which is at the
        output's position. Other windows read rows by a quotient by their width, of which bounds are found where it is
        a dimension, or certain."""
        unit = stride if window == 1 else math.gcd(stride, dilation)
        stride, dilation = stride // unit, dilation // unit
        certain = window == 1 and _is_counted(outputs) and (alone or not isinstance(outputs, Binary))
        width = outputs if certain else _certain_width(outputs + (window - 1) * dilation // stride)
        return _Steps(stride, dilation, unit, width)


def _is_counted(outputs: Expr) -> bool:
    """Whether bounds tell that there are not fewer than 0; there is at least one then, since windows have to fit."""
    low = nonnegative(free_vars(outputs)).interval(outputs).low
    return low is not None and low >= 0


def _certain_width(width: Expr) -> Expr:
    """A width of so many positions, and of 1, at least, in a form that is not below 0 for any extents: so bounds tell
    the positions of different rows apart."""
    facts = nonnegative(free_vars(width))
    least = facts.interval(width).low or 0
    return maximum(simplify(width - min(least, 0), facts), 1)


def flat_definition(attrs: ConvAttrs, inputs: Tensors, result: Type, terms: Terms) -> DefinedStages:
    """The convolution by its definition, of a copy of x in phases, with positions as one axis."""
    x, weight = inputs
    kind = tensor_argument(result, "result")
    outputs, window = kind.shape[2:], [const_int(e) or 0 for e in weight.shape[2:]]
    moves = zip(attrs.strides, attrs.dilation, window, outputs, strict=True)
    steps = [_Steps.of(*move, alone=set(window) == {1}) for move in moves]
    widths = [step.width for step in steps]
    source = _phases(x, attrs, steps, terms)
    filters, channels = ((const_int(extent) or 0) for extent in weight.shape[:2])
    c = te.reduce_axis((0, channels), name="c")
    taps = [te.reduce_axis((0, w), name=f"r{d}") for d, w in enumerate(window)]

    def summed(n: Axis, k: Axis, j: Axis) -> Expr:
        moved = [tap * step.dilation for tap, step in zip(taps, steps, strict=True)]
        phases = [m % step.stride for m, step in zip(moved, steps, strict=True) if step.stride > 1]
        shift = ravel_index([m // step.stride for m, step in zip(moved, steps, strict=True)], widths)
        channel = c if attrs.groups == 1 else k // (filters // attrs.groups) * channels + c
        value = source[(n, channel, *phases, *unravel_index(j + shift, widths))]
        return te.sum(terms.multiply(value, weight[(k, c, *taps)]), axis=[c, *taps])

    length = 1 + ravel_index([o - 1 for o in outputs], widths)
    sums = te.compute((*kind.shape[:2], length), summed, name="conv")

    def element(n: Axis, k: Axis, *o: Axis) -> Expr:
        return terms.finish(sums[(n, k, ravel_index([as_index(i) for i in o], widths))], k)

    image = te.compute(kind.shape, element, name="conv.image")
    return DefinedStages(image, x, source, weight, sums, tuple(step.unit for step in steps))


def _phases(x: Tensor, attrs: ConvAttrs, steps: Sequence[_Steps], terms: Terms) -> Tensor:
    """x with its padding, in phases: [n, c, phases of the axes that have some…, positions…]."""
    strides = [step.stride for step in steps if step.stride > 1]

    def element(n: Axis, c: Axis, *rest: Axis) -> Expr:
        phases, at = iter(rest[: len(strides)]), rest[len(strides) :]
        place: list[Expr] = []
        for step, i, pad in zip(steps, at, attrs.padding, strict=False):
            of_phase = i * step.stride + next(phases) if step.stride > 1 else as_index(i)
            place.append(of_phase * step.unit - pad)
        inside = te.all(*(test for p, e in zip(place, x.shape[2:], strict=True) for test in (p >= 0, p < e)))
        return terms.prepare(te.if_then_else(inside, x[(n, c, *place)], te.const(0, x.dtype)))

    return te.compute((*x.shape[:2], *map(as_index, strides), *(s.width for s in steps)), element, name="conv.padded")


@dataclass(frozen=True, slots=True)
class OpenFlat:
    """The schedule of a convolution with so many filters in a group; of these, the channels of a tap lie side by side
    where sums take them one after the other, ``taps_outside``. With ``tiles``, words of bytes are summed in these."""

    filters: int
    taps_outside: bool = False
    tiles: FilterTiles | None = None

    def schedule_sums(
        self, anchor: DefinedStages, outputs: Tensors, target: Target, keep: Sequence[Tensor] = ()
    ) -> Schedule:
        """Run strips of filters in parallel, and blocks of the rows of each; a block computes tiles of sums, and then
        their epilogue. Where no other strip reads the same channels, their copy is part of the task, whose blocks
        follow each other. The stages in ``keep`` are the caller's to schedule."""
        schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, [anchor.source, *keep], target)
        lanes = target.lanes(anchor.sums.dtype)
        side, columns = (
            OpenRows(self.filters).decide_tile(schedule, lanes, target, vectors_alone=VECTORS_ALONE)
            if self.tiles is None
            else (self.tiles.block.rows, self.tiles.block.columns)
        )
        stage, alone = schedule[main], side == self.filters
        n, filters, *outer, column = stage.loops[: main.ndim]
        strip, part = stage.split(filters, factor=side)
        inside = []
        if outer and anchor.source.shape[-1] is main.shape[-1]:
            block, column = stage.split(stage.fuse(outer.pop(), column), factor=columns)
        elif outer:
            block, row = stage.split(outer.pop(), factor=ROWS)
            inside = [row]
        else:
            block, column = stage.split(column, factor=VECTORS_TOGETHER * lanes)
        vector, lane = stage.split(column, factor=lanes)
        stage.reorder(n, strip, *outer, block, part, *inside, vector, lane)
        stage.vectorize(lane)
        if not inside:
            stage.unroll(vector)
        task = reduce(stage.fuse, [n, strip, *([] if alone else [*outer, block])])
        stage.parallel(task)
        stage.annotate(task, "partition", False)
        source = schedule.cache_read(anchor.source, "local" if alone else "global", [core], pad=0)
        schedule[anchor.source].compute_inline()
        at = block if alone else task
        if self.tiles is None:
            schedule[core].compute_at(stage, at)
            _schedule_tiles(schedule, core, lanes, columns, self.taps_outside)
        else:
            self.tiles.sum(schedule, core, main, at)
        if alone:
            schedule[source].compute_at(stage, task)
            _schedule_own_copy(schedule[source], anchor.x, lanes)
        else:
            vectorize_padded(schedule[source], False, target)
        return schedule


def _schedule_own_copy(stage: StageView, x: Tensor, lanes: int) -> None:
    """Vectors along the rows of a copy, or, where short rows are as long as those of x, along all of its positions:
    what of these is padding is known beforehand then, since all are unrolled."""
    (copy,) = stage.op.outputs
    _, *outer, row, column = stage.loops
    height, width = (const_int(extent) or math.inf for extent in copy.shape[-2:])
    short = 2 * width <= lanes and height * width <= VECTORS_OF_ROW * lanes
    if len(outer) == 1 and short and copy.shape[-1] is x.shape[-1]:
        vector, lane = stage.split(stage.fuse(row, column), factor=lanes)
        stage.vectorize(lane)
        stage.unroll(vector)
        stage.unroll(outer[0])
    else:
        vectorize_row(stage, lanes)


def _schedule_tiles(schedule: Schedule, core: Tensor, lanes: int, columns: int, taps_outside: bool) -> None:
    """Tiles of so many positions, the last one of which goes on beyond the end, times all filters of a strip."""
    stage = schedule[core]
    n, filters, position = stage.loops[: core.ndim]
    channel, *taps = stage.loops[core.ndim :]
    reductions = [*taps, channel] if taps_outside else [channel, *taps]
    at, column = stage.split(position, factor=columns, tail="round_up")
    vector, lane = stage.split(column, factor=lanes)
    stage.reorder(n, at, *reductions, vector, filters, lane)
    stage.vectorize(lane)
    stage.unroll(vector)
    stage.unroll(filters)
