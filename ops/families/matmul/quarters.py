"""Products of matrices with an eighth fewer multiplications, as Strassen does it: what products and convolutions share.

Cut in halves both ways, a product of matrices is eight products of quarters. Seven are enough (V. Strassen, "Gaussian
Elimination is not Optimal", Numerische Mathematik 13, 1969):

    sums[s] = Σ LEFT[s][i][k] · left[i, k]         of quarters: half i of the rows, half k of the reduction
    planes[s] = Σ RIGHT[s][k][j] · right[k, j]     half j of the columns; made when the model is compiled
    products[s] = sums[s] · planes[s]
    result[i, j] = Σ RESULT[i][j][s] · products[s]

That pays where the products take far longer than the sums. The error is a share of the largest numbers, as that of
Winograd's convolutions; sums half as long make up for it, so that no more is lost than otherwise, for numbers of like
size. What is not finite in one row reaches a row of the other half: so this is for rows that belong to one sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.types import TensorType, tensor_type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.blocks import divisors, largest_divisor
from ....schedules.decide_tile import decide_tile
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile
from ....te.tensor import Tensor
from ..bilinear import chosen, weighted_sum

Factors: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
LeftFactor: TypeAlias = Callable[[Sequence[Axis], Expr, int, Axis, Axis], Expr]
"""The left factor, element by element: batch axes, row, half of the terms, block, term of it → value."""

LEFT: tuple[Factors, ...] = (
    ((1, 0), (0, 1)),
    ((0, 0), (1, 1)),
    ((1, 0), (0, 0)),
    ((0, 0), (0, 1)),
    ((1, 1), (0, 0)),
    ((-1, 0), (1, 0)),
    ((0, 1), (0, -1)),
)
RIGHT: tuple[Factors, ...] = (
    ((1, 0), (0, 1)),
    ((1, 0), (0, 0)),
    ((0, 1), (0, -1)),
    ((-1, 0), (1, 0)),
    ((0, 0), (0, 1)),
    ((1, 1), (0, 0)),
    ((0, 0), (1, 1)),
)
RESULT: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((1, 0, 0, 1, -1, 0, 1), (0, 0, 1, 0, 1, 0, 0)),
    ((0, 1, 0, 1, 0, 0, 0), (1, -1, 1, 0, 0, 1, 0)),
)
PRODUCTS = len(LEFT)

FAR = 3
"""How many times as long planes take that pass again as sums that do, which are no further than the third cache."""
ENOUGH_GROUPS = 4
"""So many groups keep the threads of a small machine busy."""
AHEAD = (0, 2048, 4096, 8192, 16384, 32768)
"""Bytes that planes may come ahead of their use."""
ENOUGH_TASKS = 24
"""So many tasks come out even between them."""


def left_sum(product: Axis, quarter: Callable[[int, int], Expr]) -> Expr:
    """The sum of quarters (i, k) of the left factor for a product, where its loop is unrolled."""
    sums = [weighted_sum([(f, quarter(i, k)) for i in (0, 1) for k in (0, 1) if (f := of[i][k])]) for of in LEFT]
    return chosen(product, sums)


def result_sum(quarter: Expr, product: Callable[[int], Expr]) -> Expr:
    """The sum of products for a quarter 2i + j of the result, where the loops over halves are unrolled."""
    factors = [RESULT[i][j] for i in (0, 1) for j in (0, 1)]
    return chosen(quarter, [weighted_sum([(f, product(s)) for s, f in enumerate(of) if f]) for of in factors])


@dataclass(frozen=True, slots=True)
class Planes:
    """Makes of a matrix, stored as [N, K] if ``transposed``, the sums of its quarters in panels of ``width`` columns:
    [N / 2 / width, 7, K / 2, width]. Computed in double precision, and rounded once. Further axes of 1 may follow."""

    width: int
    transposed: bool

    def __call__(self, matrix: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        plain = matrix.reshape(matrix.shape[:2])
        right = plain.T if self.transposed else plain
        terms, columns = len(right) // 2, len(right.T) // 2
        made = np.empty((columns // self.width, PRODUCTS, terms, self.width), matrix.dtype)
        for panel, planes in enumerate(made):  # one by one, for the sake of memory
            at = panel * self.width
            halves = [right[:, at + j * columns :][:, : self.width].astype(np.float64) for j in (0, 1)]
            quarters = [half[k * terms :][:terms] for k in (0, 1) for half in halves]
            for plane, of in zip(planes, RIGHT, strict=True):
                factors = (f for row in of for f in row)
                plane[:] = sum(f * quarter for f, quarter in zip(factors, quarters, strict=True) if f)
        return made

    def type_of(self, terms: int, columns: int, dtype: DType) -> TensorType:
        """The type of the planes of a matrix [terms, columns]: [columns / 2 / width, 7, terms / 2, width]."""
        return tensor_type((columns // 2 // self.width, PRODUCTS, terms // 2, self.width), dtype)


def known_planes(planes: TensorType) -> tuple[int, int, int]:
    """How many panels there are, terms in a quarter, and columns in a panel."""
    extents = [const_int(extent) or 0 for extent in planes.shape]
    if len(extents) != 4 or not all(extents) or extents[1] != PRODUCTS:
        raise TypeInferenceError(f"planes must be [panel, {PRODUCTS}, K / 2, column], all known, not 0, found {planes}")
    if not planes.dtype.is_float or planes.dtype.bits < 32:
        raise TypeInferenceError(f"planes must be of float32 or float64, found {planes}")
    return extents[0], extents[2], extents[3]


@dataclass(frozen=True, slots=True)
class ResultLoops:
    """The loops of a result: ``row`` is a row of each of both halves ``i``, ``panel`` a panel of each of both halves
    ``j``, which has ``vector`` of ``lane``."""

    outer: Sequence[LoopView]
    i: LoopView
    row: LoopView
    j: LoopView
    panel: LoopView
    vector: LoopView
    lane: LoopView


@dataclass(frozen=True, slots=True)
class Quartered:
    """The product of one sample, and its blocking: panels of ``width`` columns, in register tiles. The columns of a
    quarter fill panels, which tiles fill. Groups have ``group_rows``, or as many as suits the caches."""

    rows: int
    reduction_extent: int
    columns: int
    width: int
    tile: RegisterTile
    dtype: DType
    target: Target
    group_rows: int = 0

    @property
    def half(self) -> int:
        """Rows of a half; of an odd number, the last row of the second half is of zeros."""
        return math.ceil(self.rows / 2)

    @property
    def panels(self) -> int:
        """How many panels the columns of a quarter fill."""
        return self.columns // 2 // self.width

    @property
    def planes_bytes(self) -> int:
        """The memory of all seven planes, 7/4 of that of the matrix that they are made of."""
        return PRODUCTS * self.reduction_extent * self.columns // 4 * self.dtype.storage_bytes

    @property
    def group(self) -> int:
        """Rows of a group: all, or such that their sums stay in half of the second cache, or three quarters. More
        groups pass all planes more often; sums that do not stay there pass for each panel. Products of a panel take a
        quarter of it at most."""
        if self.group_rows:
            return self.group_rows
        row_bytes = PRODUCTS * self.dtype.storage_bytes
        sum_bytes, cache = row_bytes * self.reduction_extent // 2, self.target.l2_bytes
        most = cache // 4 // (row_bytes * self.width)
        parts = (self._even(min(share // sum_bytes, most)) for share in (cache // 2, cache * 3 // 4))
        near = next((part for part in parts if part * sum_bytes <= cache * 3 // 4), None)
        whole = self._even(most)
        passing = FAR * self.planes_bytes
        if near is None or near == whole:
            return whole
        few = math.ceil(self.half / whole) * passing + self.panels * sum_bytes * self.half
        return near if math.ceil(self.half / near) * passing < few else whole

    @property
    def _part(self) -> int:
        """Rows of a group that a task takes, if it is not all."""
        part = self._even(self.half * self.panels // ENOUGH_TASKS)
        return part if self.group % part == 0 else self.group

    def _even(self, most: int) -> int:
        """Groups of equal size, at most so large; all rows if there are no such but far smaller ones."""
        groups = math.ceil(self.half / max(most, self.tile.rows))
        size = largest_divisor(self.half, self.half // groups)
        return size if self.half // size <= 2 * groups else self.half

    def cost(self, samples: int, multiplications: float) -> float:
        """Cycles of so many samples, given those that the multiplications of one take: with the sums of quarters and of
        products, what planes are more than the factor they are made of, and one passage through that and the rest."""
        taken, made = (4 + PRODUCTS) * self.reduction_extent // 2, 2 * PRODUCTS * self.columns // 2
        size, factor = self.dtype.storage_bytes, self.reduction_extent * self.columns * self.dtype.storage_bytes
        near = self.half * (taken + made) * size / CORE.summed_bytes
        ahead = (self.planes_bytes - factor) / CORE.ahead_bytes
        far = self.rows * (self.reduction_extent + self.columns) * size / CORE.copied_bytes
        return samples * (multiplications + near + ahead + far) + factor / CORE.copied_bytes

    def sums(self, outer: Sequence[Expr], block: int, left: LeftFactor) -> Tensor:
        """The sums of quarters of the left factor, [outer…, s, block, row, term], whose terms are in blocks of so
        many."""

        def element(*axes: Axis) -> Expr:
            *batch, s, at, row, term = axes

            def quarter(i: int, k: int) -> Expr:
                r = row + i * self.half
                value = left(batch, r, k, at, term)
                beyond = i == 1 and self.rows % 2 == 1
                return te.if_then_else(r < self.rows, value, te.const(0, value.dtype)) if beyond else value

            return left_sum(s, quarter)

        shape = (*outer, PRODUCTS, self.reduction_extent // 2 // block, self.half, block)
        return te.compute(shape, element, name="strassen.sums")

    def products(self, sums: Tensor, planes: Tensor) -> Tensor:
        """The products of sums and planes, [outer…, panel, s, row, column]."""
        *outer, _, blocks, _, block = sums.shape
        co, ci = te.reduce_axis((0, blocks), name="co"), te.reduce_axis((0, block), name="ci")

        def element(*axes: Axis) -> Expr:
            *batch, panel, s, row, column = axes
            return te.sum(sums[(*batch, s, co, row, ci)] * planes[panel, s, co * block + ci, column], axis=[co, ci])

        return te.compute((*outer, self.panels, PRODUCTS, self.half, self.width), element, name="strassen.products")

    def result(self, products: Tensor, batch: Sequence[Axis], row: Expr, column: Expr) -> Expr:
        """An element of the result."""
        half = self.columns // 2
        panel, within = column % half // self.width, column % half % self.width
        quarter = row // self.half * 2 + column // half
        return result_sum(quarter, lambda s: products[(*batch, panel, s, row % self.half, within)])

    def decided(self, schedule: Schedule) -> Quartered:
        """The blocking by the decisions of a schedule, none of which changes the order of a sum: the height of tiles,
        and the rows of a group. What runs in parallel, and how far planes come ahead, is decided by ``schedule``."""
        tile = decide_tile(schedule, self.tile, self.half, self.columns // 2, self.target, keeps_width=True)
        made = replace(self, tile=tile)
        return replace(made, group_rows=schedule.decide("group", divisors(self.half), made.group))

    def schedule(self, schedule: Schedule, stage: StageView, loops: ResultLoops, products: Tensor) -> None:
        """Compute group by group of each sample, and in a group panel by panel: the products, then the result. Enough
        groups run in parallel, and make their own sums; else these are made before, and the tasks are parts of a group
        and a panel."""
        sums, planes = products.op.inputs
        samples = math.prod(const_int(extent) or 1 for extent in products.shape[:-4])
        enough = samples * self.half // self.group >= ENOUGH_GROUPS
        by_group = schedule.decide("by_group", [False, True], enough)
        group, row = stage.split(loops.row, factor=self.group)
        part, row = stage.split(row, factor=self.group if by_group else self._part)
        stage.reorder(*loops.outer, group, loops.panel, part, row, loops.vector, loops.i, loops.j, loops.lane)
        stage.vectorize(loops.lane)
        stage.unroll(loops.i)
        stage.unroll(loops.j)
        task = stage.fuse(*loops.outer, group) if by_group else stage.fuse(*loops.outer, group, loops.panel, part)
        stage.parallel(task)
        schedule[products].compute_at(stage, part if by_group else task)
        if by_group:
            schedule[sums].compute_at(stage, task)
        self._schedule_sums(schedule[sums], not by_group)
        block, term = self._schedule_products(schedule[products])
        step_bytes = CORE.steps_unrolled * self.width * self.dtype.storage_bytes
        ahead = schedule.decide("ahead", AHEAD, CORE.ahead_distance)
        if ahead:
            fetch_ahead(schedule[products], planes, term, math.ceil(ahead / step_bytes))
        if const_int(sums.shape[-3]) != 1:
            fetch_ahead(schedule[products], sums, block, 1)

    def _schedule_sums(self, stage: StageView, parallel: bool) -> None:
        """A vector of each quarter at a time, which all sums share. Long rows are an odd number of vectors apart, so as
        not to evict each other from the first cache."""
        (sums,) = stage.op.outputs
        length, line = const_int(sums.shape[-1]) or 1, self.target.lanes(self.dtype)
        if length > line:
            stage.storage_align(sums.ndim - 2, 2 * line, line)
        *outer, s, block, row, term = stage.loops
        vector, lane = stage.split(term, factor=min(length, line))
        group, row = stage.split(row, factor=self.group)
        stage.reorder(*outer, group, block, row, vector, s, lane)
        stage.vectorize(lane)
        stage.unroll(s)
        if parallel:
            stage.parallel(stage.fuse(*outer, group, block, row))

    def _schedule_products(self, stage: StageView) -> tuple[LoopView, LoopView]:
        """Product by product, tile by tile of sums, which stay in registers while the terms go by. Gives the loops over
        blocks of terms, and terms of a block."""
        *outer, row, column, block, term = stage.loops
        part, column = stage.split(column, factor=self.tile.columns)
        vector, lane = stage.split(column, factor=self.tile.lanes)
        tile, row = stage.split(row, factor=self.tile.rows)
        term, step = stage.split(term, factor=CORE.steps_unrolled)
        stage.reorder(*outer, part, tile, block, term, step, row, vector, lane)
        stage.vectorize(lane)
        for loop in (step, row, vector):
            stage.unroll(loop)
        return block, term
