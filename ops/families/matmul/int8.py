"""The implementation of nn.matmul and nn.dense for 8-bit integers: sums in int32, four terms at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .... import te
from ....base.target import Target
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....lowering.schedule import Schedule
from ....schedules.blocks import MANY_TASKS, near_divisor
from ....schedules.default_schedule import schedule_freely
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.accumulate import is_byte
from ...definition.cost import moved
from ...definition.relations import tensor_argument
from ...definition.strategy import Compute, OpStrategy, ScheduleFunction
from ...definition.tile_config import configured_panels
from ..byte_words import BYTES, ByteProduct, count_words, word, words_of_rows
from .blocking import Blocking, pack_panels, schedule_blocked
from .panels import (
    FEW_ROWS,
    ROWS,
    MatrixProduct,
    batch_index,
    few_rows_tile,
    make_panels,
    read_sums,
    schedule_panels,
    sum_panels,
)

PACKED = 16.0
"""How long it takes to make words of a factor and to copy them to panels, in times through its memory."""


@dataclass(frozen=True, slots=True)
class BytePaneled:
    """Words of the left factor's rows times words of the right factor's columns, these in panels."""

    tile: RegisterTile
    terms: int
    transposed: bool
    pack: bool

    def compute(self, attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
        a, b = inputs
        kind = tensor_argument(result, "result")
        product = ByteProduct(a.dtype, b.dtype)
        columns = words_of_rows(b, "matmul.columns") if self.transposed else None

        def right(batch: Sequence[Axis], at: Axis, column: Expr) -> Expr:
            if columns is not None:
                return product.right_word(columns[(*batch, column, at)])
            return product.right_word(word(lambda k: b[(*batch, k, column)], as_index(at), self.terms))

        count = as_index(count_words(self.terms))
        panels = make_panels(right, b.shape[:-2], count, kind.shape[-1], self.tile.columns)
        return sum_words(a, panels, kind, product)

    def schedule(self, attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        return schedule_words(anchor, outputs, self.terms, self.tile, self.pack, target)

    def configure(self, config: Mapping[str, Any]) -> tuple[Compute, ScheduleFunction]:
        """With the ``rows``, ``vectors`` and ``pack`` of a tuning record."""
        tile, pack = configured_panels(config, self.tile, self.pack)
        made = replace(self, tile=tile, pack=pack)
        return made.compute, made.schedule


def sum_words(a: te.Tensor, panels: te.Tensor, kind: TensorType, product: ByteProduct) -> te.Tensor:
    """The product of the rows of a with panels of words that are shifted as ``product`` wants them."""
    core = sum_panels(words_of_rows(a, ROWS), panels, kind, product.multiply)
    row_sums = _row_sums(a)

    def element(*axes: Axis) -> Expr:
        sums = read_sums(core, axes)
        row = (*batch_index(a.shape[:-2], axes[:-2]), axes[-2])
        return sums + product.correction(row_sums[row]) if product.shifted else sums

    return te.compute(kind.shape, element, name="matmul")


def schedule_words(
    anchor: Tensors, outputs: Tensors, terms: int, tile: RegisterTile, pack: bool, target: Target
) -> Schedule:
    """Schedule what ``sum_words`` gives, with the stages that make words of the operands."""
    core, *row_sums = anchor[0].op.inputs
    (rows,) = (t for t in core.op.inputs if t.op.name == ROWS)
    (panels,) = (t for t in core.op.inputs if t is not rows)
    columns = [t for t in panels.op.inputs if t.op.name == "matmul.columns"]
    alone = [*row_sums, *columns, *([rows] if terms % BYTES else [])]  # whole words are read where they are
    if (const_int(core.shape[-3]) or 0) * terms > target.l2_bytes // 2:
        blocking = _word_blocking(core, terms, tile, target)
        schedule = schedule_blocked(anchor[0], panels, outputs, blocking, target, [*alone, *([panels] if pack else [])])
        if pack:
            pack_panels(schedule[panels], blocking)
    else:  # the left factor streams from the second cache, past each panel
        schedule = schedule_panels(anchor, pack, outputs, tile, target, keep=alone)
    for tensor in alone:
        schedule_freely(schedule, schedule[tensor].name, target)
    return schedule


def _word_blocking(core: te.Tensor, terms: int, tile: RegisterTile, target: Target) -> Blocking:
    """Cuts for a left factor that is larger than the second cache, and should come by seldom: once for each chunk of
    panels that stays there."""
    *batch, rows, panels, _ = (const_int(extent) or MANY_TASKS for extent in core.shape)
    tasks = math.prod(batch) * math.ceil(rows / tile.rows) * panels
    most = min(target.l2_bytes // 2 // (count_words(terms) * tile.columns * BYTES), tasks // MANY_TASKS)
    return Blocking(tile, near_divisor(panels, most), copies_rows=False, steps=1)


def byte_tile(product: MatrixProduct, target: Target, vectors: int | None = None) -> RegisterTile:
    """The register tile of a product of words; ``vectors`` is how wide the panels are, if that is given."""
    words = count_words(product.terms)
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
    paneled = BytePaneled(tile, product.terms, product.transposed, pack)
    strategy.add_implementation(
        paneled.compute,
        paneled.schedule,
        "matmul.bytes",
        15,
        configure=paneled.configure,
        cost=word_cycles(product, tile, target) + product.moved() + PACKED * moved([product.right]),
    )
    if not product.transposed:
        in_place = BytePaneled(few_rows_tile(product, target), product.terms, transposed=False, pack=False)
        with strategy.specialized(product.left.shape[-2] <= FEW_ROWS):
            strategy.add_implementation(
                in_place.compute, in_place.schedule, "matmul.bytes_few_rows", 16, configure=in_place.configure
            )
