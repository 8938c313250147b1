"""Pools axis by axis: windows are folded down their columns first, then along rows, for ``nn.max_pool`` and its like.

A window of 3 by 3 takes four operations in place of eight, its elements are loaded in order, and what is outside of the
tensor is told apart once, when columns are folded: the folded row has the padding in it. Of windows with three axes,
planes are folded into one before, so that 5 by 5 by 5 takes 12 operations in place of 124.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

from ... import te
from ...base.dataclass import dataclass
from ...base.target import Target
from ...graph.layout import Layout
from ...graph.types import TensorType
from ...ir.constants import const_int
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...lowering.relations import Tail
from ...lowering.schedule import LoopView, Schedule, StageView
from ...schedules.around import schedule_around
from ...schedules.blocks import MANY_TASKS
from ...te.tensor import Tensors
from ..definition.attrs import Attrs
from ..definition.cost import elements, moved
from ..definition.implementation import Stages
from .window import inside, spatial_axes

MOST_TAPS = 16
"""Elements that are folded by one expression; longer windows are left to loops."""
MOST_VECTORS = 8
"""A tile has at most so many vectors: their code is written one by one."""
OPEN_ROW = 2
"""Vectors that rows of an open length are taken to have."""
SHORT_ROW = 8
"""Rows of an open length up to this have vectors of so many lanes, where others are longer: these take less to load."""
SHUFFLES = 3
"""Instructions that every second, third … element of a row takes, for one that neighbours take."""


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """How a window's elements make one: ``term`` of each, joined; ``finish`` gives the result at a place."""

    identity: Expr
    term: Callable[[Expr], Expr]
    join: Callable[[Expr, Expr], Expr]
    finish: Callable[[Expr, Sequence[Axis]], Expr]


@dataclass(frozen=True, slots=True, eq=False)
class PooledStages(Stages):
    """The result, the folded ``columns``, the ``windows`` that are folded of these, and the folded ``planes``, which
    columns are of: x, if planes are not folded by themselves."""

    planes: te.Tensor
    columns: te.Tensor
    windows: te.Tensor


@dataclass(frozen=True, slots=True)
class SeparablePool:
    """The numbers of a pool in a layout, by spatial axis. Vectors are of neighbours in a row where rows are innermost
    in ``layout``, else of channels. ``outputs`` is how many of the result are in a row, 0 if that is open; or how many
    at most, if only such rows are served."""

    layout: Layout
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil_mode: bool
    outputs: int
    lanes: int

    @property
    def row(self) -> int:
        """Where the axis of rows stands in the layout."""
        return self.layout.position("W")

    @property
    def along_rows(self) -> bool:
        """Whether rows are the innermost axis, so that vectors are of neighbours in a row."""
        return self.row == len(self.layout.axes) - 1

    @property
    def reach(self) -> int:
        """How many elements of a row a window spans."""
        return (self.window[-1] - 1) * self.dilation[-1] + 1

    @property
    def has_short_windows(self) -> bool:
        """Whether a column of the window, and a row of it, are each few enough elements for one expression."""
        return self.window[-1] <= MOST_TAPS and max(self._taps_of_planes, math.prod(self._column)) <= MOST_TAPS

    @property
    def folds_planes(self) -> bool:
        """Whether planes are folded by themselves, of windows with three axes: if a column has too many elements for
        one expression, or if it takes fewer operations for an element of it, with a load and a store of the plane."""
        if len(self.window) < 3:
            return False
        depth, height, _ = self.window
        return depth * height > min(MOST_TAPS, self.strides[1] * (depth + 2) + height)

    @property
    def _taps_of_planes(self) -> int:
        return self.window[0] if self.folds_planes else 1

    @property
    def _column(self) -> tuple[int, ...]:
        """The extents of what is folded as a column."""
        return self.window[1:-1] if self.folds_planes else self.window[:-1]

    def cost(self, x: TensorType, result: TensorType) -> float:
        """Cycles: of memory, of folding planes, and columns for each element of rows, and of folding these."""
        stride = math.prod(self.strides[:-1])
        columns = elements(x) / stride * math.prod(self._column)
        if self.folds_planes:
            columns += elements(x) / self.strides[0] * (self._taps_of_planes + 2)
        apart = SHUFFLES if self.along_rows and self.strides[-1] > 1 else 1
        rows = elements(result) * self.window[-1] * apart
        row = self.outputs or self.lanes
        wasted = math.ceil(row / self.lanes) * self.lanes / row if self.along_rows else 1
        return moved([x, result]) + 2 * wasted * (columns + rows) / self.lanes

    def compute(self, x: te.Tensor, result: TensorType, fold: Fold) -> PooledStages:
        """The columns of windows, folded, and the windows folded of these."""
        planes = self._fold_planes(x, result, fold) if self.folds_planes else x
        columns = self._fold_columns(planes, result, fold)

        def window(*axes: Axis) -> Expr:
            index = [*map(as_index, axes)]
            begin = index[self.row] * self.strides[-1]
            taps = (begin + tap * self.dilation[-1] for tap in range(self.window[-1]))
            read: list[Expr] = [columns[(*index[: self.row], at, *index[self.row + 1 :])] for at in taps]
            return reduce(fold.join, read)

        windows = te.compute(result.shape, window, name="pool.windows")
        pooled = te.compute(result.shape, lambda *i: fold.finish(windows[i], i), name="pool")
        return PooledStages(pooled, planes, columns, windows)

    def _fold_planes(self, x: te.Tensor, result: TensorType, fold: Fold) -> te.Tensor:
        """``[…, plane of the result, row of x, position in the row, …]``."""
        at = self.layout.position("D")
        shape = list(x.shape)
        shape[at] = result.shape[at]
        before, after = self.padding[0], self.padding[len(self.window)]

        def element(*index: Axis) -> Expr:
            def tap(number: int) -> Expr:
                read = [as_index(i) for i in index]
                read[at] = read[at] * self.strides[0] + number * self.dilation[0] - before
                valid = inside([read[at]], [x.shape[at]], [before, after], [self.ceil_mode])
                return te.if_then_else(valid, fold.term(x[tuple(read)]), fold.identity)

            return reduce(fold.join, map(tap, range(self.window[0])))

        return te.compute(shape, element, name="pool.planes")

    def _fold_columns(self, source: te.Tensor, result: TensorType, fold: Fold) -> te.Tensor:
        """``[…, row of the result, position in the padded row, …]``, of x or of its folded planes."""
        axes = spatial_axes(len(self.window))
        positions = [self.layout.position(axis) for axis in axes]
        extents = [source.shape[at] for at in positions]
        shape = list(result.shape)
        begins = (result.shape[self.row] - 1) * self.strides[-1]
        shape[self.row] = simplify(begins + self.reach)
        exceeds = [self.ceil_mode] * (len(axes) - 1) + [True]
        folded = len(axes) - 1 - len(self._column)  # axes along which there is nothing left to fold
        padding = [0 if d % len(axes) < folded else pad for d, pad in enumerate(self.padding)]
        exceeds[:folded] = [False] * folded

        def element(*index: Axis) -> Expr:
            def tap(taps: Sequence[int]) -> Expr:
                moves = zip(own[folded:-1], self.strides[folded:], taps, self.dilation[folded:], strict=False)
                place = [*own[:folded], *(i * s + t * d for i, s, t, d in moves), own[-1]]
                place = [at - pad if pad else at for at, pad in zip(place, padding, strict=False)]
                read = [as_index(i) for i in index]
                for at, where in zip(positions, place, strict=True):
                    read[at] = where
                valid = inside(place, extents, padding, exceeds)
                value = source[tuple(read)]
                return te.if_then_else(valid, value if folded else fold.term(value), fold.identity)

            own = [as_index(index[at]) for at in positions]
            return reduce(fold.join, map(tap, product(*map(range, self._column))))

        return te.compute(shape, element, name="pool.columns")

    @property
    def vectors(self) -> int:
        """How many vectors of a row make a tile: so many that the fewest vectors of columns are folded, of which those
        of a tile share some. Rows that are open, and may be short, are taken to have ``OPEN_ROW`` of them; one where
        windows move by several elements."""
        step, shared = self.strides[-1], math.ceil(max(0, self.reach - self.strides[-1]) / self.lanes)
        row = math.ceil(self.outputs / self.lanes) or (OPEN_ROW if step == 1 else 1)
        return min(range(1, MOST_VECTORS + 1), key=lambda n: (math.ceil(row / n) * (n * step + shared), n))

    def schedule(self, attrs: Attrs, anchor: PooledStages, outputs: Tensors, target: Target) -> Schedule:
        """Compute rows of the result one by one, some channels or rows to a task. Vectors of channels read columns that
        stay in cache; a tile of a row has the columns of its windows in registers, whole vectors of them."""
        columns, windows, planes = anchor.columns, anchor.windows, [anchor.planes] if self.folds_planes else []
        schedule, main = schedule_around(anchor.result, outputs, [windows, columns, *planes], target)
        stage = schedule[main]
        tile, lane = stage.split(stage.loops[-1], factor=self.lanes * self.vectors if self.along_rows else self.lanes)
        task, within = self._tasks(stage, main, stage.loops[: self.row])
        stage.parallel(task)
        if self.along_rows:
            self._vectorize(stage)
            for part in (windows, columns):
                schedule[part].compute_at(stage, tile)
                self._vectorize(schedule[part], tail="round_up")
        else:
            stage.vectorize(lane)
            schedule[windows].compute_inline()
            schedule[columns].compute_at(stage, within)
            _, lane = schedule[columns].split(schedule[columns].loops[-1], factor=self.lanes)
            schedule[columns].vectorize(lane)
        for each in (schedule[plane] for plane in planes):
            each.compute_at(stage, task)
            _, lane = each.split(each.loops[-1], factor=target.lanes(anchor.planes.dtype))
            each.vectorize(lane)
        return schedule

    def _vectorize(self, stage: StageView, tail: Tail = "guard") -> None:
        """Make the innermost loop, over part of a row, vectors one by one."""
        vector, lane = stage.split(stage.loops[-1], factor=self.lanes, tail=tail)
        stage.vectorize(lane)
        stage.unroll(vector)

    def _tasks(self, stage: StageView, main: te.Tensor, outer: Sequence[LoopView]) -> tuple[LoopView, LoopView]:
        """The loop of tasks, and the one whose iterations are rows: planes by themselves, if there are enough."""
        if len(outer) == 1 or len(self.window) == 1:
            fused = stage.fuse(*outer)
            return fused, fused
        *planes, row = outer
        count = math.prod(const_int(extent) or MANY_TASKS for extent in main.shape[: len(planes)])
        if count >= MANY_TASKS:
            return stage.fuse(*planes), row
        part, row = stage.split(row, nparts=math.ceil(MANY_TASKS / max(count, 1)))
        return stage.fuse(*planes, part), row
