"""The implementations of nn.matmul and nn.dense for float16 and bfloat16: sums in float32.

The factors are widened to float32 before they are multiplied, once each. Where the target multiplies pairs of bfloat16
(AVX512-BF16), words of two neighbouring terms are multiplied instead, by ``te.dot2``: half the memory, and up to twice
the speed of float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import BFLOAT16, INT32, DType
from ....base.target import Target
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr, ExprLike
from ....ir.makers import as_index
from ....ir.simplify import simplify
from ....lowering.schedule import Schedule
from ....schedules.default_schedule import schedule_freely
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import accumulator
from ...definition.cost import moved
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from .blocking import Blocking, BlockingPlan, blocking_plan, choose_blocking, schedule_blocked, with_tile
from .joined_rows import computing
from .paneled import Paneled
from .panels import (
    FEW_ROWS,
    TERM_BY_TERM,
    MatrixProduct,
    ProductCompute,
    ProductStages,
    RightLayout,
    apart,
    few_rows_tile,
    right_layout,
    sum_of_products,
)

PAIR_BY_PAIR = "pair by pair"
"""The order of the sums of products of pairs, with any tile."""


@dataclass(frozen=True, slots=True, eq=False)
class Widened:
    """[…, M, K] · [batch…, K, N], or · [batch…, N, K] if ``transposed``: products of factors in float32."""

    plan: BlockingPlan
    reduction_extent: ExprLike
    transposed: bool

    def count(self) -> Expr:
        """How many products make a sum."""
        return as_index(self.reduction_extent)

    def factor(self, value: Callable[[Expr], Expr], at: Expr) -> Expr:
        """What is multiplied, number ``at`` of those that ``value`` gives the terms of."""
        term = value(at)
        return te.cast(term, accumulator(term.dtype))

    def multiply(self, left: Expr, right: Expr) -> Expr:
        """The product of two factors, which are of float32 already."""
        return left * right

    def compute(self, attrs: Any, inputs: Tensors, result: Type) -> ProductStages:
        """The result over sums of factors in float32, which are stages of their own, and rounded once at the end."""
        a, b = apart(*inputs)
        count = self.count()

        def of_column(*index: Axis) -> Expr:
            *batch, at, column = index
            return self.factor(lambda k: b[(*batch, k, column)], as_index(at))

        if self.transposed:
            right = self._factors_of_rows(b, "matmul.columns")
        else:
            right = te.compute((*b.shape[:-2], count, b.shape[-1]), of_column, name="matmul.columns")
        return self._summed(a, right, right_layout(self.transposed), result)

    def compute_in_panels(self, attrs: Any, inputs: Tensors, result: Type) -> ProductStages:
        """The product by a right operand that stands in panels."""
        a, panels = inputs
        return self._summed(a, panels, "panels", result)

    def _summed(self, a: Tensor, right: Tensor, layout: RightLayout, result: Type) -> ProductStages:
        kind, rows = tensor_argument(result, "result"), self._factors_of_rows(a, "matmul.rows")
        sums = sum_of_products(rows, right, layout, replace(kind, dtype=accumulator(kind.dtype)), self.multiply)
        rounded = te.compute(kind.shape, lambda *i: te.cast(sums[i], kind.dtype), name="matmul")
        return ProductStages(rounded, sums, rows, right)

    def _factors_of_rows(self, x: Tensor, name: str) -> Tensor:
        shape = (*x.shape[:-1], self.count())
        return te.compute(shape, lambda *i: self.factor(lambda k: x[(*i[:-1], k)], as_index(i[-1])), name=name)

    def schedule(self, attrs: Any, anchor: ProductStages, outputs: Tensors, target: Target) -> Schedule:
        """Schedule it as products of float32 are; factors are made first, those of rows as rows are copied."""
        columns = [anchor.right] if self.transposed else []
        schedule = schedule_blocked(anchor, outputs, self.plan, target, right_layout(self.transposed), columns)
        for tensor in columns:
            schedule_freely(schedule, schedule[tensor].name, target)
        return schedule

    def schedule_in_panels(self, attrs: Any, anchor: ProductStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``compute_in_panels``."""
        return schedule_blocked(anchor, outputs, self.plan, target, "panels")


class Pairs(Widened):
    """Products of words of two neighbouring terms, a term beyond the last of which is 0."""

    __slots__ = ()

    def count(self) -> Expr:
        return simplify((as_index(self.reduction_extent) + 1) // 2)

    def factor(self, value: Callable[[Expr], Expr], at: Expr) -> Expr:
        return pair_of(value, at, self.reduction_extent)

    def multiply(self, left: Expr, right: Expr) -> Expr:
        """The sum of both products of two words, in float32."""
        return te.dot2(left, right)


def count_pairs(terms: int) -> int:
    """How many words hold so many terms; the last one is filled up with a zero."""
    return -(-terms // 2)


def pair_of(value: Callable[[Expr], Expr], at: Expr, terms: ExprLike) -> Expr:
    """Word number ``at`` of a sequence of ``terms`` numbers, of which ``value`` gives each."""
    low, high = value(at * 2), value(at * 2 + 1)
    if const_int(simplify(as_index(terms) % 2)) != 0:
        high = te.if_then_else(at * 2 + 1 < terms, high, te.const(0, high.dtype))
    return te.pair(low, high)


def multiplies_pairs(target: Target) -> bool:
    """Whether the target has an instruction for it."""
    return target.arch == "x86_64" and target.has("avx512bf16", "avx512vl")


def of_factors(product: MatrixProduct, terms: ExprLike, kind: DType) -> MatrixProduct:
    """The product that is summed: of ``terms`` factors of dtype ``kind``."""

    def factors(x: TensorType, axis: int) -> TensorType:
        shape = list(x.shape)
        shape[axis] = as_index(terms)
        return TensorType(tuple(shape), kind)

    sums = TensorType(product.result.shape, accumulator(product.left.dtype))
    right = factors(product.right, -1 if product.transposed else -2)
    return MatrixProduct(factors(product.left, -1), right, sums, product.transposed)


def factor_blocking(product: MatrixProduct, target: Target, vectors: int | None = None) -> Blocking:
    """The blocking of a product of factors, which are made, where others may be copied."""
    return replace(choose_blocking(product, target, vectors), copies_rows=True)


def factor_plan(product: MatrixProduct, tile: RegisterTile, pack: bool, target: Target) -> BlockingPlan:
    """The plan of a product of factors."""
    return BlockingPlan(tile, pack, lambda tile, _: replace(with_tile(product, tile, target), copies_rows=True))


def factor_cycles(product: MatrixProduct, tile: RegisterTile, made: Sequence[TensorType], target: Target) -> float:
    """What a product of factors takes, those of ``made`` included."""
    return product.cycles(tile, target.fma_per_cycle) + product.moved() + CORE.copies.factors * moved(made)


def add_halves(strategy: OpStrategy, compute: ProductCompute, product: MatrixProduct, target: Target) -> None:
    """Offer them for factors of one half-precision dtype. Few rows come before them, by the definition, ``compute``:
    they widen the right factor in registers, where they read it. Those by a factor of open extents are left to the
    definition's own schedule, as ``add_paneled`` leaves them, unless it is transposed."""
    kind, terms = product.left.dtype, product.left.shape[-1]
    sums = accumulator(kind)
    if not kind.is_float or kind is sums or product.right.dtype is not kind:
        return
    offers = [("matmul.widened", Widened, of_factors(product, terms, sums))]
    if kind is BFLOAT16 and multiplies_pairs(target) and not product.is_open:
        pairs = of_factors(product, count_pairs(product.reduction_extent), INT32)
        offers.insert(0, ("matmul.pairs", Pairs, pairs))  # preferred where both cost as much
    if not (product.is_open or product.transposed):
        widened = of_factors(product, terms, sums)
        tile = few_rows_tile(widened, target)
        in_place = Paneled(blocking_plan(widened, tile, False, target), transposed=False)
        cost = factor_cycles(widened, tile, [], target) + CORE.copies.scattered * moved([widened.right])
        panels = factor_blocking(widened, target).tile
        cost = min(cost, factor_cycles(widened, panels, [product.left, product.right], target))
        with strategy.specialized(product.left.shape[-2] <= FEW_ROWS):
            strategy.add_implementation(compute, in_place.schedule, "matmul.few_rows", cost=cost, sums=TERM_BY_TERM)
    left_out = product.is_open and not product.transposed
    with strategy.specialized(*([product.left.shape[-2] > FEW_ROWS] if left_out else [])):
        for name, implementation, factors in offers:
            tile = factor_blocking(factors, target).tile
            plan = factor_plan(factors, tile, True, target)
            made = implementation(plan, terms, product.transposed)
            strategy.add_implementation(
                computing(product, made.compute),
                made.schedule,
                name,
                keeps_order=implementation is Widened,
                cost=factor_cycles(factors, tile, [product.left, product.right], target),
                sums=TERM_BY_TERM if implementation is Widened else None,
            )
