"""Products by a constant, which is packed into panels when the model is compiled: ``nn.packed_matmul``.

The layout rule of nn.matmul and nn.dense, ``packed_candidates``, has them made so. A panel is as wide as a register
tile, and has the factors of a term side by side: panels[tile, k, j] = b[k, tile * width + j], 0 beyond the last column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass
from ....base.dtype import FLOAT16, DType
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type, tensor_type
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....lowering.schedule import Schedule
from ....schedules.register_tile import RegisterTile
from ....te.tensor import Tensors
from ...definition.accumulate import accumulator, check_contraction, narrowed, product_dtype, widened
from ...definition.attrs import Attrs, attr
from ...definition.layout_rule import LayoutCandidate, Packed
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from .blocking import BlockingPlan, blocking_plan, choose_blocking, copying, schedule_blocked, with_tile
from .factor_panels import offer_factors, product_in_panels
from .halves import Widened, factor_blocking, of_factors
from .joined_rows import computing
from .open_rows import offer_by_rows
from .panels import TERM_BY_TERM, MatrixProduct, ProductStages, sum_of_products

WORD_BYTES = 4

# 1. Attributes.


@dataclass(frozen=True)
class PackedMatmulAttrs(Attrs):
    """The attributes of ``nn.packed_matmul``."""

    columns: int = attr("how many columns the right factor has")


# 2. Type relation.


def _relation(types: Sequence[Type], attrs: PackedMatmulAttrs) -> Type:
    a, panels = tensor_argument(types[0], "a"), tensor_argument(types[1], "panels")
    kind = product_dtype([a, panels], ["a", "panels"])
    return product_by_panels(a, panels, lambda terms: terms, "a", attrs.columns, kind)


def product_by_panels(
    a: TensorType, panels: TensorType, rows_of: Callable[[Expr], Expr], counted: str, columns: int, kind: DType
) -> TensorType:
    """The type of a · panels, [tiles, rows, width], that have so many columns together; ``rows_of`` gives the rows of a
    panel for the terms of a, errors call them ``counted``. Raises ``TypeInferenceError`` for shapes that do not fit."""
    if a.ndim < 2 or panels.ndim != 3:
        raise TypeInferenceError(f"a needs two axes at least, and panels has three, found {a} and {panels}")
    tiles, rows, width = panels.shape
    check_contraction(rows_of(a.shape[-1]), rows, counted, "panels")
    if const_int(tiles) != math.ceil(columns / (const_int(width) or 1)):
        raise TypeInferenceError(f"{columns} columns do not fill {tiles} panels of {width}")
    return TensorType((*a.shape[:-1], *tensor_type((columns,), kind).shape), kind)


# 3. Registration.

PACKED_MATMUL = register_op(
    "nn.packed_matmul",
    "The product of matrices, of which the right one stands in panels of columns; what nn.matmul and nn.dense by a "
    "constant become",
    [("a", "[…, M, K]"), ("panels", "[tiles, K, width]; 0 beyond the last column")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    PackedMatmulAttrs,
    support_level=10,
)

# 4. Computes.


def _compute(attrs: PackedMatmulAttrs, inputs: Tensors, result: Type) -> ProductStages:
    a, panels = inputs
    kind = tensor_argument(result, "result")
    sums = sum_of_products(a, panels, "panels", kind, lambda x, y: widened(x) * widened(y), "packed_matmul")
    return ProductStages(narrowed(sums, kind.dtype, "packed_matmul.narrow"), sums, a, panels)


# 5. Schedule and strategy.


@dataclass(frozen=True, slots=True)
class PackedProduct:
    """How a product by panels is scheduled."""

    plan: BlockingPlan

    def schedule(self, attrs: Any, anchor: ProductStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of a product whose right factor stands in panels already."""
        return schedule_blocked(anchor, outputs, self.plan, target, "panels")


class PackedHalves(Widened):
    """A product of halves, whose panels are widened where they are read; they are as wide as its tile."""

    __slots__ = ()

    def multiply(self, left: Expr, right: Expr) -> Expr:
        """The product of a left factor of float32 and a right one, which is widened here."""
        return left * widened(right)


@register_strategy(PACKED_MATMUL)
def _strategy(attrs: PackedMatmulAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_compute, schedule_default, "packed_matmul.direct")
    kind = tensor_argument(result, "result").dtype
    sums = accumulator(kind)
    found = product_in_panels(inputs, result, target.lanes(sums)) if kind.is_float else None
    if found is None:
        return strategy
    product, vectors = found
    if kind is not sums:
        factors = of_factors(product, product.reduction_extent, sums)
        name = "packed_matmul.widened"
        offer_factors(strategy, name, product, factors, vectors, PackedHalves, TERM_BY_TERM, target)
        return strategy

    def offer(name: str, plevel: int, tile: RegisterTile) -> None:
        made = PackedProduct(blocking_plan(product, tile, False, target))
        copied = copying(product, with_tile(product, tile, target))
        cost = product.cycles(tile, target.fma_per_cycle) + product.moved() + copied
        strategy.add_implementation(
            computing(product, _compute), made.schedule, name, plevel, cost=cost, sums=TERM_BY_TERM
        )

    tile = choose_blocking(product, target, vectors).tile
    offer_by_rows(strategy, product, "packed_matmul.blocked", tile, target, offer)
    return strategy


# 6. and 7. Who calls it.


@dataclass(frozen=True, slots=True)
class Panels:
    """Packs a matrix, which is stored as [N, K] if ``transposed``."""

    width: int
    transposed: bool

    def __call__(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        by_terms = matrix.T if self.transposed else matrix
        terms, columns = by_terms.shape
        tiles = math.ceil(columns / self.width)
        padded = by_terms  # which may be large: it is not copied where it fits
        if columns % self.width:
            padded = np.zeros((terms, tiles * self.width), matrix.dtype)
            padded[:, :columns] = by_terms
        return padded.reshape(terms, tiles, self.width).swapaxes(0, 1)


@dataclass(frozen=True, slots=True)
class WordPanels:
    """Packs a matrix, of which some neighbouring terms fill words of 32 bits; it is stored as [N, K] if
    ``transposed``."""

    width: int
    transposed: bool

    def __call__(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        by_columns = matrix if self.transposed else matrix.T
        columns, terms = by_columns.shape
        whole = np.zeros((columns, terms + -terms % (WORD_BYTES // matrix.itemsize)), matrix.dtype)
        whole[:, :terms] = by_columns
        return Panels(self.width, transposed=True)(whole.view("<i4"))


def widens_quickly(kind: DType, target: Target) -> bool:
    """Whether a vector in a register is soon in the dtype that its sums have."""
    return kind is not FLOAT16 or target.arch in ("aarch64", "arm64") or target.has("f16c")


def packed_candidates(product: MatrixProduct, target: Target) -> Iterator[LayoutCandidate]:
    """The layout candidate of a product by a constant matrix of floats, which it packs."""
    kind = product.result.dtype
    if kind.is_float and product.left.dtype is kind and widens_quickly(kind, target):
        sums = accumulator(kind)
        blocking = (
            choose_blocking(product, target)
            if sums is kind
            else factor_blocking(of_factors(product, product.reduction_extent, sums), target)
        )
        width = blocking.tile.columns
        panels = tensor_type((math.ceil(product.columns / width), product.reduction_extent, width), kind)
        arguments = (None, Packed(Panels(width, product.transposed), panels))
        yield LayoutCandidate(arguments, PackedMatmulAttrs(product.columns), None, PACKED_MATMUL)


def packed_matmul(a: Node, panels: Node, columns: int) -> Call:
    """a · b of a matrix b with so many columns, in panels."""
    return PACKED_MATMUL(a, panels, attrs=PackedMatmulAttrs(columns))
