"""The implementation of nn.matmul and nn.dense for few rows or few columns whose factors lie along the reduction.

Each element of the result is a sum over neighbours in memory, so the *reduction axis* has the lanes: nothing is
copied into another order first, and the large factor is read once, as it lies. This takes the order of sums from the
definition.
"""

from __future__ import annotations

from typing import Any

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.blocks import largest_divisor
from ....schedules.default_schedule import schedule_freely
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import accumulator, is_byte, widened
from ...definition.cost import elements_of, moved
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from .panels import MatrixProduct, batch_index

FEW_ROWS = 16
"""With more rows, a copy of the right factor in panels, which costs as much as 30 products of a row, is used enough."""
FEW_OPEN_ROWS = 4
"""The same where the number of columns is open: their sums are made one after the other."""
FEW_ROWS_OF_BYTES = 8
"""Of bytes, these are copied as words, and their products are faster in panels."""
LANES_PER_COLUMN = 6
"""With more columns than one for so many lanes, vectors of columns are full enough for some rows, or for none."""
LANES_PER_COLUMN_OF_ROWS = 2
"""The same where so many rows are known that it is worth it to turn the right factor over."""
LOADED = 3.0
"""How much longer a product takes whose factors are both loaded for it."""
FOLDED = 20.0
"""Cycles that it takes to add the lanes of a sum at its end, where those of neighbours are added as vectors."""
FOLDED_ALONE = 45.0
"""The same of rows of some columns, fewer than a vector has lanes."""
ROWS_TO_TURN_FOR = 16
"""How many rows these are."""
LEAST_VECTORS = 2
"""Fewer vectors along the reduction than this are hardly worth the sum over lanes at their end."""


@dataclass(frozen=True, slots=True)
class Dots:
    """[…, M, K] · [batch…, N, K]: ``rows`` × ``columns`` sums at a time, each in a vector of ``lanes``.

    The second factor is [batch…, K, N] unless ``transposed``; then, N is small, and it is turned over first.
    """

    rows: int
    columns: int
    lanes: int
    transposed: bool

    def compute(self, attrs: Any, inputs: Tensors, result: Type) -> Tensor:
        """The result over its sums, by the definition; a second factor that is [batch…, K, N] is transposed in a stage
        of its own."""
        a, b = inputs
        kind = tensor_argument(result, "result")
        if not self.transposed:
            given = b
            shape = (*given.shape[:-2], given.shape[-1], given.shape[-2])
            b = te.compute(shape, lambda *i: given[(*i[:-2], i[-1], i[-2])], name="matmul.turned")
        k = te.reduce_axis((0, a.shape[-1]), name="k")

        def element(*axes: Axis) -> Expr:
            *batch, row, column = axes
            left = a[(*batch_index(a.shape[:-2], batch), row, k)]
            right = b[(*batch_index(b.shape[:-2], batch), column, k)]
            return te.sum(widened(left, kind.dtype) * widened(right, kind.dtype), axis=k)

        sums = te.compute(kind.shape, element, name="matmul.sums")
        return te.compute(kind.shape, lambda *i: te.cast(sums[i], kind.dtype), name="matmul")

    def schedule(self, attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``compute``: each sum is kept as one vector of partial sums (``rfactor``), tile by tile, and
        its lanes are added at the end."""
        (sums,) = anchor[0].op.inputs
        turned = [t for t in sums.op.inputs if t.op.name == "matmul.turned"]
        schedule, main = schedule_around(anchor[0], outputs, [sums, *turned], target)
        for tensor in turned:
            schedule_freely(schedule, schedule[tensor].name, target)
        stage, total = schedule[main], schedule[sums]
        _, lane = total.split(total.loops[-1], factor=self.lanes)
        partial = schedule.rfactor(sums, lane, factor_axis=-1)
        block = self._tiles(stage)
        total.compute_at(stage, block)
        *_, row, column, _ = total.loops
        total.vectorize(row if self.columns == 1 else column)
        schedule[partial].compute_at(stage, block)
        _keep_in_registers(schedule[partial])
        return schedule

    def _tiles(self, stage: StageView) -> LoopView:
        """Cut the result into tiles, of the large side in parallel; gives the loop of a tile."""
        *outer, row, column = stage.loops
        rows, row = stage.split(row, factor=self.rows)
        columns, column = stage.split(column, factor=self.columns)
        large, small = (columns, rows) if self.transposed else (rows, columns)
        stage.reorder(*outer, large, small, row, column)
        stage.vectorize(row if self.columns == 1 else column)
        stage.parallel(stage.fuse(*outer, large))
        return small


def _keep_in_registers(stage: StageView) -> None:
    """Vectors of the tile's sums, while the reduction runs."""
    *outer, row, column, lane, terms = stage.loops
    stage.reorder(*outer, terms, row, column, lane)
    stage.unroll(row)
    stage.unroll(column)
    stage.vectorize(lane)


def add_dots(strategy: OpStrategy, product: MatrixProduct, target: Target) -> None:
    """Offer it for few rows, or where the right factor is not turned over already, for few columns."""
    kind = product.result.dtype
    lanes = target.lanes(accumulator(kind))
    terms = const_int(product.left.shape[-1])
    if terms is None or terms < LEAST_VECTORS * lanes or (product.is_open and not product.transposed):
        return
    rows, columns = product.left.shape[-2], product.result.shape[-1]
    few, many = (rows, columns) if product.transposed else (columns, rows)
    small, large = _tile(const_int(few), const_int(many), product.transposed, target)
    tile = (small, large) if product.transposed else (large, small)
    dots = Dots(*tile, lanes, product.transposed)
    cost = _cost(product, lanes, target)
    with strategy.specialized(few <= _most(product, lanes)):
        strategy.add_implementation(
            dots.compute, dots.schedule, "matmul.dots", keeps_order=not kind.is_float, cost=cost
        )


def _cost(product: MatrixProduct, lanes: int, target: Target) -> float:
    """Cycles: those of one row, or column, hide behind its memory traffic; those of others do not, and take longer than
    in panels, as each sum loads what it multiplies. Of an open number, which has guards, one counts."""
    large = product.right if product.transposed else product.left
    count = const_int(product.left.shape[-2] if product.transposed else product.result.shape[-1])
    if count is None:
        return moved([large])
    sums = elements_of(product.result.shape)
    shown = sums // count * (count - 1)
    is_wide = not product.transposed and count > max(1, lanes // LANES_PER_COLUMN)
    folded = FOLDED_ALONE * sums if is_wide else FOLDED * shown
    return product.moved() + folded + LOADED * shown * product.reduction_extent / (lanes * target.fma_per_cycle)


def _most(product: MatrixProduct, lanes: int) -> int:
    """How many rows, or columns, are few."""
    if not product.transposed:
        turns = (const_int(product.left.shape[-2]) or 0) >= ROWS_TO_TURN_FOR
        return max(1, lanes // (LANES_PER_COLUMN_OF_ROWS if turns else LANES_PER_COLUMN))
    if product.is_open:
        return FEW_OPEN_ROWS
    return FEW_ROWS_OF_BYTES if is_byte(product.right.dtype) else FEW_ROWS


def _tile(few: int | None, many: int | None, transposed: bool, target: Target) -> tuple[int, int]:
    """Extents that divide those of the result; its sums take a quarter of the registers, those of few columns half of
    them, so that a row is read once."""
    sums = target.vector_registers // (4 if transposed else 2)
    small = largest_divisor(few, sums // 2)
    return small, largest_divisor(many, sums // small)
