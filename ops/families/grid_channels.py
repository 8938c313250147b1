"""grid_sample of an image whose channels are its last axis: all channels of a position are read together, in vectors.

The elements and weights of a position are computed once, in vectors of positions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import reduce

from ... import te
from ...base.dataclass import dataclass
from ...base.target import Target
from ...graph.types import Type
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...ir.row_major import ravel_index, unravel_index
from ...ir.simplify import simplify
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...te.tensor import Tensor, Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.relations import tensor_argument
from ..definition.strategy import Stages
from .grid_line import TAPS, GridLine, GridSampleAttrs, all_of, weighted

POSITIONS = 64
"""Positions in a block, whose taps stay in the first cache."""


@dataclass(frozen=True, slots=True)
class SampledChannels(Stages):
    """The ``taps`` of each position of a grid: along each axis of the image elements, which are -1 beyond it where that
    counts as 0, and weights; and the result, which is made of them."""

    taps: tuple[Tensor, ...]


def compute_channels(attrs: GridSampleAttrs, inputs: Tensors, result: Type) -> SampledChannels:
    """The definition, in stages. Positions are one axis, as they lie in the grid."""
    x, grid = inputs
    kind = accumulator(x.dtype)
    lines = [GridLine(extent, attrs, kind) for extent in attrs.parts(x.shape)[2]]
    shape = tensor_argument(result, "result").shape
    batch, _, positions = attrs.parts(shape)
    made = [_taps(line, grid, axis, batch, positions) for axis, line in enumerate(lines)]

    def element(*index: Axis) -> Expr:
        n, c, at = attrs.parts([as_index(i) for i in index])
        place = n, ravel_index(at, positions)
        parts: list[Expr] = []
        for corner in itertools.product(*made):
            read = [as_index(number[place]) for number, _ in corner]
            inside = [te.minimum(te.maximum(e, 0), line.extent - 1) for e, line in zip(read, lines, strict=True)]
            value = widened(x[attrs.ordered(n, c, inside)])
            if attrs.padding == "zeros":
                value = te.select(all_of([e >= 0 for e in read]), value, te.const(0, kind))
            parts.append(weighted(value, [weight[place] for _, weight in corner if weight is not None]))
        return te.cast(sum(parts[1:], start=parts[0]), x.dtype)

    stages = [stage for of_line in made for tap in of_line for stage in tap if stage is not None]
    return SampledChannels(te.compute(shape, element, name="grid_sample"), tuple(stages))


def _taps(
    line: GridLine, grid: Tensor, axis: int, batch: Expr, positions: Sequence[Expr]
) -> list[tuple[Tensor, Tensor | None]]:
    """The elements that are read along an axis of the image, and their weights, unless it is the nearest one."""
    rank, zeros = len(positions), line.attrs.padding == "zeros"
    shape = (batch, simplify(reduce(lambda a, b: a * b, positions)))

    def tap(k: int, n: Axis, j: Axis) -> tuple[Expr, Expr | None]:
        coordinate = grid[(n, *unravel_index(as_index(j), positions), rank - 1 - axis)]
        return line.taps(line.position(te.cast(coordinate, line.kind)))[k]

    def number(k: int, n: Axis, j: Axis) -> Expr:
        found = tap(k, n, j)[0]
        read = te.cast(line.index(found), "int32")
        return te.select(line.inside(found), read, te.const(-1, "int32")) if zeros else read

    def weight(k: int, n: Axis, j: Axis) -> Expr:
        found = tap(k, n, j)[1]
        assert found is not None  # there are several
        return found

    def stage(k: int, of_tap: Callable[[int, Axis, Axis], Expr], name: str) -> Tensor:
        return te.compute(shape, lambda n, j: of_tap(k, n, j), name=f"grid_sample.{name}{axis}{k}")

    count = TAPS[line.attrs.mode]
    return [(stage(k, number, "element"), stage(k, weight, "weight") if count > 1 else None) for k in range(count)]


def schedule_channels(attrs: GridSampleAttrs, anchor: SampledChannels, outputs: Tensors, target: Target) -> Schedule:
    """Run blocks of positions in parallel: their taps, in vectors of positions, and then the channels of each."""
    schedule, main = schedule_around(anchor.result, outputs, anchor.taps, target)
    stage, lanes = schedule[main], target.lanes("float32")
    n, *at, c = stage.loops
    block, position = stage.split(reduce(stage.fuse, at), factor=POSITIONS)
    vector, lane = stage.split(c, factor=lanes)
    task = stage.fuse(n, block)
    stage.reorder(task, position, vector, lane)
    stage.vectorize(lane)
    stage.parallel(task)
    for tensor in anchor.taps:
        tap = schedule[tensor]
        tap.compute_at(stage, task)
        _, lane = tap.split(tap.loops[-1], factor=lanes)
        tap.vectorize(lane)
    return schedule
