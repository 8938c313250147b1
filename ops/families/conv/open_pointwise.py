"""Convolutions with windows of one element whose positions are open: products of matrices.

The result at a position needs x at that position only, so that an image is one row, whose tiles go on from the end of
one of its rows to the next. The last tile begins earlier: all are full, and x is read where it is, or, where the window
moves by several elements, of a copy of those that it stands at. Tiles are those of ``open_blocked`` where channels are
in blocks, else those of ``open_rows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import mul

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import TensorType, Type
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.row_major import ravel_index, unravel_index
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.default_schedule import schedule_stage
from ....schedules.machine import CORE
from ....te.tensor import Tensor, Tensors
from ...definition.cost import moved, multiplied
from ...definition.implementation import ScheduleFunction
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from ..window import spatial_axes
from .attrs import Conv1DAttrs, ConvAttrs
from .definition import DefinedStages, Terms, definition
from .open_blocked import OpenBlocked, schedule_tile_of_sums
from .open_rows import OpenRows, schedule_vectors_of_sums
from .problem import ConvProblem

MOST_FILTERS = 12
"""Of a tile of plain layouts: weights of so many rows are few beside x, of which there is no window here."""
FEW_TASKS = 2
"""Stripes of filters, of which each is a task, that are worth a smaller tile."""


def add_open_pointwise(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer it where ``open_blocked`` or ``open_rows`` serves, and the window has one element, of x itself."""
    if not problem.is_pointwise or any(problem.attrs.padding):
        return

    def offer(schedule: ScheduleFunction, name: str, efficiency: float) -> None:
        cost = multiplied(problem.products, problem.dtype, problem.target, efficiency) + moved(problem.types)
        strategy.add_implementation(one_row_definition, schedule, name, cost=cost)

    if (blocked := OpenBlocked.of(problem)) is not None:
        offer(InBlocks(blocked).schedule, "conv.open_pointwise", CORE.shares.open_pointwise)
    if (rows := OpenRows.of(problem)) is not None:
        offer(InRows(rows).schedule, "conv.open_pointwise_rows", CORE.shares.open_rows)


def one_row_definition(attrs: ConvAttrs, inputs: Tensors, result: Type, terms: Terms | None = None) -> DefinedStages:
    """The definition, of images that are one row."""
    x, weight = inputs
    kind = tensor_argument(result, "result")
    extents = _spatial(kind.shape, attrs.rank)
    source = _stood_at(x, attrs.strides, extents) if any(stride != 1 for stride in attrs.strides) else x
    data, kernel, out = (str(e).replace(spatial_axes(attrs.rank), "W") for e in (attrs.data, attrs.kernel, attrs.out))
    of_rows = Conv1DAttrs(groups=attrs.groups, data_layout=data, kernel_layout=kernel, out_layout=out)
    row = TensorType(_in_one_row(kind.shape, attrs.rank), kind.dtype)
    summed = definition(of_rows, (_row_of(source, attrs.rank), _row_of(weight, attrs.rank)), row, terms)

    def element(*index: Axis) -> Expr:
        n, k, *rest = map(as_index, index)
        return summed.result[(n, k, ravel_index(rest[: attrs.rank], extents), *rest[attrs.rank :])]

    return replace(summed, result=te.compute(kind.shape, element, name="conv.image"), x=x, weight=weight, source=source)


def _spatial(shape: Sequence[Expr], rank: int) -> Sequence[Expr]:
    """The extents of the spatial axes, which stand behind those of images and channels."""
    return shape[2 : 2 + rank]


def _in_one_row(shape: Sequence[Expr], rank: int) -> tuple[Expr, ...]:
    """The shape with one axis in place of the spatial ones."""
    return (*shape[:2], reduce(mul, _spatial(shape, rank)), *shape[2 + rank :])


def _stood_at(x: Tensor, strides: Sequence[int], outputs: Sequence[Expr]) -> Tensor:
    """The elements of x that windows of one element stand at."""
    rank = len(strides)

    def element(n: Axis, c: Axis, *rest: Axis) -> Expr:
        at = (o * stride for o, stride in zip(rest, strides, strict=False))
        return x[(n, c, *at, *rest[rank:])]

    return te.compute((*x.shape[:2], *outputs, *x.shape[2 + rank :]), element, name="conv.strided")


def _row_of(tensor: Tensor, rank: int) -> Tensor:
    """A tensor with one axis in place of the spatial ones."""
    extents = _spatial(tensor.shape, rank)

    def element(a: Axis, b: Axis, position: Axis, *blocks: Axis) -> Expr:
        return tensor[(a, b, *unravel_index(as_index(position), extents), *blocks)]

    return te.compute(_in_one_row(tensor.shape, rank), element, name=f"{tensor.name}.row")


@dataclass(frozen=True, slots=True)
class InBlocks:
    """The schedule of a convolution of blocked channels, whose ``tiles`` are those of such ones."""

    tiles: OpenBlocked

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run stripes of blocks in parallel; each computes tiles of sums, and their epilogue."""
        schedule, core, main = _around(anchor, outputs, target)
        columns, side = self.tiles.decide_tile(schedule, FEW_TASKS)
        stage = schedule[main]
        n, block, *positions, lane = stage.loops[: main.ndim]
        stripe, part = stage.split(block, factor=side)
        across, column = stage.split(_fused(stage, positions), factor=columns, tail="shift")
        stage.reorder(n, stripe, across, column, part, lane)
        stage.vectorize(lane)
        stage.parallel(stage.fuse(n, stripe))
        schedule[core].compute_at(stage, across)
        step = schedule_tile_of_sums(schedule[core])
        if attrs.data.is_blocked:  # else the last loop is that of the window, of one element
            self.tiles.fetch_weights(schedule[core], anchor.weight, step, side)
        return schedule


@dataclass(frozen=True, slots=True)
class InRows:
    """The schedule of a convolution of plain layouts, whose ``tiles`` are those of such ones."""

    tiles: OpenRows

    def schedule(self, attrs: ConvAttrs, anchor: DefinedStages, outputs: Tensors, target: Target) -> Schedule:
        """Run strips of filters in parallel; each computes tiles of sums, and their epilogue."""
        return self.schedule_sums(anchor, outputs, target)

    def schedule_sums(
        self, anchor: DefinedStages, outputs: Tensors, target: Target, keep: Sequence[Tensor] = ()
    ) -> Schedule:
        """The schedule of ``schedule``, but for the stages in ``keep``."""
        schedule, core, main = _around(anchor, outputs, target, keep)
        lanes = target.lanes(anchor.sums.dtype)
        side, columns = self.tiles.decide_tile(schedule, lanes, target, MOST_FILTERS, FEW_TASKS)
        stage = schedule[main]
        n, filters, *positions = stage.loops[: main.ndim]
        strip, part = stage.split(filters, factor=side)
        across, column = stage.split(_fused(stage, positions), factor=columns, tail="shift")
        vector, lane = stage.split(column, factor=lanes)
        stage.reorder(n, strip, across, part, vector, lane)
        stage.vectorize(lane)
        stage.parallel(stage.fuse(n, strip))
        schedule[core].compute_at(stage, across)
        schedule_vectors_of_sums(schedule[core], lanes)
        return schedule


def _around(
    anchor: DefinedStages, outputs: Tensors, target: Target, keep: Sequence[Tensor] = ()
) -> tuple[Schedule, Tensor, Tensor]:
    """The schedule around the sums, with what computes them and what is tiled; copies of x are made before."""
    schedule, core, main = schedule_around_sums(anchor.result, anchor.sums, outputs, [*anchor.copies, *keep], target)
    for copy in anchor.copies:
        schedule_stage(schedule[copy], target)
    return schedule, core, main


def _fused(stage: StageView, loops: Sequence[LoopView]) -> LoopView:
    """The loop that several become, which stand directly inside each other."""
    return reduce(stage.fuse, loops)
