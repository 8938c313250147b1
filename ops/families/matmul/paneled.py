"""The implementation of nn.matmul and nn.dense for floats: the right factor in panels, as wide as a register tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .... import te
from ....base.target import Target
from ....graph.types import Type
from ....lowering.schedule import Schedule
from ....schedules.product import PACKED_USES
from ....te.tensor import Tensors
from ...definition.cost import moved
from ...definition.strategy import Compute, OpStrategy, ScheduleFunction
from ...definition.tile_config import configured_panels
from .blocking import Blocking, choose_blocking, copying, pack_panels, packed_by_chunks, schedule_blocked, with_tile
from .panels import FEW_ROWS, MatrixProduct, few_rows_tile, sum_in_panels

TERM_BY_TERM = "term by term"
"""The order of the sums, with any tile: each is in one lane from the first term to the last."""
SCATTERED = 0.5
"""How much longer it takes, in times through its memory, to read a factor a few neighbours at a time, row by row."""
PACKED = 4.0
"""How long it takes to copy a factor to panels: it is written where it was not in cache, and read again."""


@dataclass(frozen=True, slots=True)
class Paneled:
    """[…, M, K] · [batch…, K, N], or · [batch…, N, K] if ``transposed``."""

    product: MatrixProduct
    blocking: Blocking
    pack: bool
    target: Target

    def compute(self, attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
        return sum_in_panels(inputs, result, self.blocking.tile.columns, self.product.transposed)

    def schedule(self, attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        _, panels = anchor[0].op.inputs[0].op.inputs
        schedule = schedule_blocked(anchor[0], panels, outputs, self.blocking, target, [panels] if self.pack else [])
        if self.pack:
            pack_panels(schedule[panels], self.blocking)
        return schedule

    def configure(self, config: Mapping[str, Any]) -> tuple[Compute, ScheduleFunction]:
        """With the ``rows``, ``vectors`` and ``pack`` of a tuning record."""
        tile, pack = configured_panels(config, self.blocking.tile, self.pack)
        made = _paneled(self.product, with_tile(self.product, tile, self.target), pack, self.target)
        return made.compute, made.schedule


def _paneled(product: MatrixProduct, blocking: Blocking, pack: bool, target: Target) -> Paneled:
    return Paneled(product, packed_by_chunks(product, blocking, target) if pack else blocking, pack, target)


def add_paneled(strategy: OpStrategy, product: MatrixProduct, target: Target) -> None:
    """Offer it where sums are in the dtype of the result; without a copy of a right factor that few rows use, or that
    stays in the first cache."""
    kind = product.result.dtype
    if not kind.is_float or kind.storage_bits < 32 or product.left.dtype is not kind:
        return
    blocking = choose_blocking(product, target)
    pack = product.transposed or (
        product.rows >= PACKED_USES * blocking.tile.rows and product.right_bytes > target.l1_bytes // 2
    )
    paneled = _paneled(product, blocking, pack, target)
    strategy.add_implementation(
        paneled.compute,
        paneled.schedule,
        "matmul.paneled",
        plevel=15,
        configure=paneled.configure,
        cost=product.cycles(blocking.tile, target.fma_per_cycle)
        + product.moved()
        + copying(product, blocking)
        + (PACKED if paneled.pack else SCATTERED) * moved([product.right]),
        sums=TERM_BY_TERM,
    )
    if not product.transposed:
        tile = few_rows_tile(product, target)
        in_place = Paneled(product, with_tile(product, tile, target), False, target)
        with strategy.specialized(product.left.shape[-2] <= FEW_ROWS):
            strategy.add_implementation(
                in_place.compute,
                in_place.schedule,
                "matmul.few_rows",
                plevel=16,
                configure=in_place.configure,
                cost=product.cycles(tile, target.fma_per_cycle) + product.moved() + SCATTERED * moved([product.right]),
                sums=TERM_BY_TERM,
            )
