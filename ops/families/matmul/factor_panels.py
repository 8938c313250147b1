"""What the products by a constant in panels share: when they serve, and how those of made factors are offered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....schedules.register_tile import RegisterTile
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from .blocking import BlockingPlan
from .halves import Widened, factor_blocking, factor_cycles, factor_plan
from .joined_rows import computing, join_rows
from .open_rows import offer_by_rows
from .panels import MatrixProduct, matrix_product


def product_in_panels(inputs: Sequence[Type], result: Type, lanes: int) -> tuple[MatrixProduct, int] | None:
    """The product of a matrix and of panels, with the vectors that a panel is wide; None where extents are open but for
    the rows, or panels are not of whole vectors."""
    width = const_int(tensor_argument(inputs[1], "panels").shape[-1]) or 1
    product = matrix_product(inputs, result, transposed=False)
    if product is None or product.is_open or width % lanes:
        return None
    return join_rows(product), width // lanes


def offer_factors(
    strategy: OpStrategy,
    name: str,
    product: MatrixProduct,
    factors: MatrixProduct,
    vectors: int,
    made: Callable[[BlockingPlan, int, bool], Widened],
    sums: str,
    target: Target,
) -> None:
    """Offer a product of ``factors`` that computes make of those of ``product``, for any number of rows: the right ones
    stand in panels so many vectors wide, and ``made`` gives compute and schedule, by which ``sums`` have one order."""

    def offer(name: str, plevel: int, tile: RegisterTile) -> None:
        scheduled = made(factor_plan(factors, tile, False, target), product.reduction_extent, False)
        compute = computing(product, scheduled.compute_in_panels)
        cost = factor_cycles(factors, tile, [product.left], target)
        strategy.add_implementation(compute, scheduled.schedule_in_panels, name, plevel, cost=cost, sums=sums)

    tile = factor_blocking(factors, target, vectors).tile
    offer_by_rows(strategy, product, name, tile, target, offer)
