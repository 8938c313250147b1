"""The implementation of nn.matmul and nn.dense for 8-bit integers: sums in int32, four terms at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....lowering.schedule import Schedule
from ....schedules.blocks import MANY_TASKS, near_divisor
from ....schedules.default_schedule import schedule_freely
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.accumulate import is_byte
from ...definition.cost import moved
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from ..byte_words import BYTES, ByteProduct, count_words, word, words_of_rows
from .blocking import Blocking, BlockingPlan, schedule_blocked
from .joined_rows import computing
from .panels import (
    FEW_ROWS,
    MatrixProduct,
    ProductStages,
    RightLayout,
    apart,
    batch_index,
    few_rows_tile,
    right_layout,
    sum_of_products,
)

EXACT = "exact"
"""The order of sums of integers, which gives the same bits as any other."""


@dataclass(frozen=True, slots=True)
class WordStages(ProductStages):
    """The stages of a product of words; ``before`` are sums and copies that it needs whole."""

    before: Tensors


@dataclass(frozen=True, slots=True)
class BytePaneled:
    """Words of the left factor's rows times words of the right factor's columns, these in panels."""

    tile: RegisterTile
    reduction_extent: int
    transposed: bool
    pack: bool

    def compute(self, attrs: Any, inputs: Tensors, result: Type) -> WordStages:
        """The result over sums of words in int32, with a correction by the sums of the left factor's rows where signs
        ask for it."""
        a, b = apart(*inputs)
        product = ByteProduct(a.dtype, b.dtype)
        if self.transposed:
            columns = words_of_rows(b, "matmul.columns")
            right = te.compute(columns.shape, lambda *i: product.right_word(columns[i]), name="right")
            return sum_words(a, right, right_layout(self.transposed), product, result, [columns])

        def of_column(*index: Axis) -> Expr:
            *outer, at, column = index
            return product.right_word(word(lambda k: b[(*outer, k, column)], as_index(at), self.reduction_extent))

        shape = (*b.shape[:-2], as_index(count_words(self.reduction_extent)), b.shape[-1])
        return sum_words(a, te.compute(shape, of_column, name="right"), right_layout(self.transposed), product, result)

    def schedule(self, attrs: Any, anchor: WordStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``compute``, as that of a product of floats, whose panels are copies if ``pack`` is set."""
        return schedule_words(
            anchor, outputs, self.reduction_extent, self.tile, target, right_layout(self.transposed), self.pack
        )


def sum_words(
    a: te.Tensor,
    right: te.Tensor,
    layout: RightLayout,
    product: ByteProduct,
    result: Type,
    before: Sequence[te.Tensor] = (),
    multiply: Callable[[Expr, Expr], Expr] | None = None,
) -> WordStages:
    """The product of the rows of a with words of columns, which are shifted as ``product`` wants them unless
    ``multiply`` does that. ``before`` are stages that these are made of."""
    kind, left = tensor_argument(result, "result"), words_of_rows(a, "matmul.rows")
    sums, row_sums = sum_of_products(left, right, layout, kind, multiply or product.multiply), _row_sums(a)

    def element(*axes: Axis) -> Expr:
        row = (*batch_index(a.shape[:-2], axes[:-2]), axes[-2])
        return sums[axes] + product.correction(row_sums[row]) if product.shifted else sums[axes]

    made = te.compute(kind.shape, element, name="matmul")
    return WordStages(made, sums, left, right, (*([row_sums] if product.shifted else []), *before))


def schedule_words(
    product: WordStages,
    outputs: Tensors,
    reduction_extent: int,
    tile: RegisterTile,
    target: Target,
    layout: RightLayout,
    pack: bool = False,
) -> Schedule:
    """Schedule a product of words, with the stages that these are made of."""
    made = [product.left] if reduction_extent % BYTES else []  # whole words are read where they are
    alone = [*product.before, *made]
    plan = BlockingPlan(tile, pack, partial(_word_blocking, product.sums, reduction_extent, target))
    schedule = schedule_blocked(product, outputs, plan, target, layout, alone)
    for tensor in alone:
        schedule_freely(schedule, schedule[tensor].name, target)
    return schedule


def _word_blocking(sums: te.Tensor, reduction_extent: int, target: Target, tile: RegisterTile, pack: bool) -> Blocking:
    """A left factor that is larger than the second cache comes by once for each chunk of panels that stays there. A
    smaller one stays there itself, and streams past each panel."""
    *batch, rows, columns = (const_int(extent) or MANY_TASKS for extent in sums.shape)
    panels, panel_bytes = math.ceil(columns / tile.columns), count_words(reduction_extent) * tile.columns * BYTES
    if rows * reduction_extent > target.l2_bytes // 2:
        tasks = math.prod(batch) * math.ceil(rows / tile.rows) * panels
        most = min(target.l2_bytes // 2 // panel_bytes, tasks // MANY_TASKS)
        return Blocking(tile, near_divisor(panels, most), copies_rows=False, steps=1)
    if panels < MANY_TASKS and rows > tile.rows:
        return Blocking(tile, panels, copies_rows=False, steps=1)
    packs_chunks = pack and not batch and panels * panel_bytes <= 4 * target.l2_bytes
    return Blocking(tile, 1, copies_rows=False, packs_chunks=packs_chunks, steps=1)


def byte_tile(product: MatrixProduct, target: Target, vectors: int | None = None) -> RegisterTile:
    """The register tile of a product of words; ``vectors`` is how wide the panels are, if that is given."""
    words = count_words(product.reduction_extent)
    return register_tile(product.rows, product.columns, target, product.result.dtype, words, vectors=vectors)


def word_cycles(product: MatrixProduct, tile: RegisterTile, target: Target) -> float:
    """What the sums take: a step is one word."""
    return product.cycles(tile, target.fma_per_cycle) / BYTES


def _row_sums(a: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, a.shape[-1]), name="k")
    return te.compute(a.shape[:-1], lambda *i: te.sum(te.cast(a[(*i, k)], "int32"), axis=k), name="matmul.row_sums")


def add_bytes(strategy: OpStrategy, product: MatrixProduct, target: Target) -> None:
    """Offer it for 8-bit integers."""
    if not (is_byte(product.left.dtype) and is_byte(product.right.dtype)):
        return
    tile = byte_tile(product, target)
    pack = product.transposed or product.rows > tile.rows
    paneled = BytePaneled(tile, product.reduction_extent, product.transposed, pack)
    moves = product.moved() + CORE.copies.words * moved([product.right])
    cost = word_cycles(product, tile, target) + moves
    if not product.transposed:  # before panels that cost as much
        tile = few_rows_tile(product, target)
        in_place = BytePaneled(tile, product.reduction_extent, transposed=False, pack=False)
        few = min(word_cycles(product, tile, target) + moves, cost)
        with strategy.specialized(product.left.shape[-2] <= FEW_ROWS):
            strategy.add_implementation(
                computing(product, in_place.compute), in_place.schedule, "matmul.bytes_few_rows", cost=few, sums=EXACT
            )
    strategy.add_implementation(
        computing(product, paneled.compute), paneled.schedule, "matmul.bytes", cost=cost, sums=EXACT
    )
