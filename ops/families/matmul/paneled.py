"""The implementation of nn.matmul and nn.dense for floats: the right factor in panels, as wide as a register tile."""

from __future__ import annotations

from typing import Any

from ....base.dataclass import dataclass
from ....base.target import Target
from ....ir.constants import const_int
from ....lowering.schedule import Schedule
from ....schedules.machine import CORE
from ....schedules.product import PACKED_USES
from ....te.tensor import Tensors
from ...definition.cost import moved
from ...definition.strategy import OpStrategy
from .blocking import BlockingPlan, blocking_plan, choose_blocking, copying, schedule_blocked
from .panels import FEW_ROWS, TERM_BY_TERM, MatrixProduct, ProductCompute, ProductStages, few_rows_tile, right_layout


@dataclass(frozen=True, slots=True)
class Paneled:
    """How a product of floats is scheduled; ``transposed`` tells how its right factor lies, which may be copied to
    panels as wide as the tile."""

    plan: BlockingPlan
    transposed: bool

    def schedule(self, attrs: Any, anchor: ProductStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the definition by panels, which ``schedule_blocked`` makes; whether they are copies is a
        decision."""
        return schedule_blocked(anchor, outputs, self.plan, target, right_layout(self.transposed))


def add_paneled(strategy: OpStrategy, compute: ProductCompute, product: MatrixProduct, target: Target) -> None:
    """Offer it for a product with this definition, where sums are in the dtype of the result; without a copy of a right
    factor that few rows use, or that stays in the first cache. One of open extents is copied, and few rows by it are
    left to the definition's own schedule, unless it is transposed. Few rows come before panels that cost as much."""
    kind = product.result.dtype
    if not kind.is_float or kind.storage_bits < 32 or product.left.dtype is not kind:
        return
    blocking = choose_blocking(product, target)
    pack = (
        product.transposed
        or const_int(product.result.shape[-1]) is None
        or (product.rows >= PACKED_USES * blocking.tile.rows and product.right_bytes > target.l1_bytes // 2)
    )
    paneled = Paneled(blocking_plan(product, blocking.tile, pack, target), product.transposed)
    cost = product.cycles(blocking.tile, target.fma_per_cycle) + product.moved() + copying(product, blocking)
    copies = CORE.copies.turned if product.transposed else CORE.copies.panels
    cost += (copies if pack else CORE.copies.scattered) * moved([product.right])
    if not (product.transposed or product.is_open):
        tile = few_rows_tile(product, target)
        in_place = Paneled(blocking_plan(product, tile, False, target), transposed=False)
        few = product.cycles(tile, target.fma_per_cycle) + product.moved()
        few += CORE.copies.scattered * moved([product.right])
        few = min(few, cost)  # a model of one step does not tell what a lower tile gains by its independent sums
        with strategy.specialized(product.left.shape[-2] <= FEW_ROWS):
            strategy.add_implementation(compute, in_place.schedule, "matmul.few_rows", cost=few, sums=TERM_BY_TERM)
    left_out = product.is_open and not product.transposed
    with strategy.specialized(*([product.left.shape[-2] > FEW_ROWS] if left_out else [])):
        strategy.add_implementation(compute, paneled.schedule, "matmul.paneled", cost=cost, sums=TERM_BY_TERM)
