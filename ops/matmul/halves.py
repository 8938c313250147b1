"""The implementations of nn.matmul and nn.dense for float16 and bfloat16: sums in float32.

The factors are widened to float32 before they are multiplied, once each. Where the target multiplies pairs of bfloat16
(AVX512-BF16), words of two neighbouring terms are multiplied instead, by ``te.dot2``: half the memory, and twice the
speed of float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ... import te
from ...graph.types import TensorType, Type
from ...ir.dtype import BFLOAT16
from ...ir.expr import Axis, Expr, as_index
from ...ir.target import Target
from ...lowering.default_schedule import schedule_freely
from ...lowering.register_tile import RegisterTile, register_tile
from ...lowering.schedule import Schedule
from ...te.tensor import Tensor
from ..accumulate import accumulator
from ..relations import tensor_argument
from ..strategy import OpStrategy, Tensors
from .panels import MatrixProduct, make_panels, read_sums, schedule_panels, sum_panels


@dataclass(frozen=True, slots=True)
class Widened:
    """[…, M, K] · [batch…, K, N], or · [batch…, N, K] if ``transposed``: products of factors in float32."""

    tile: RegisterTile
    terms: int
    transposed: bool

    def count(self) -> int:
        """How many products make a sum."""
        return self.terms

    def factor(self, value: Callable[[Expr], Expr], at: Expr) -> Expr:
        """What is multiplied, number ``at`` of those that ``value`` gives the terms of."""
        term = value(at)
        return te.cast(term, accumulator(term.dtype))

    def multiply(self, left: Expr, right: Expr) -> Expr:
        return left * right

    def compute(self, attrs: Any, inputs: Tensors, result: Type) -> Tensor:
        a, b = inputs
        kind = tensor_argument(result, "result")
        columns = self._factors_of_rows(b, "matmul.columns") if self.transposed else None

        def right(batch: Sequence[Axis], at: Axis, column: Expr) -> Expr:
            if columns is not None:
                return columns[(*batch, column, at)]
            return self.factor(lambda k: b[(*batch, k, column)], as_index(at))

        panels = make_panels(right, b.shape[:-2], as_index(self.count()), kind.shape[-1], self.tile.columns)
        sums = TensorType(kind.shape, accumulator(kind.dtype))
        core = sum_panels(self._factors_of_rows(a, "matmul.rows"), panels, sums, self.multiply)
        return te.compute(kind.shape, lambda *axes: te.cast(read_sums(core, axes), kind.dtype), name="matmul")

    def _factors_of_rows(self, x: Tensor, name: str) -> Tensor:
        shape = (*x.shape[:-1], self.count())
        return te.compute(shape, lambda *i: self.factor(lambda k: x[(*i[:-1], k)], as_index(i[-1])), name=name)

    def schedule(self, attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        """As products of float32 are; the factors of rows are made first."""
        core = anchor[0].op.inputs[0]
        (panels,) = (t for t in core.op.inputs if t.op.name == "panels")
        made = (*core.op.inputs, *panels.op.inputs)
        rows = [t for t in made if t.op.name in ("matmul.rows", "matmul.columns")]
        schedule = schedule_panels(anchor, True, outputs, self.tile, target, keep=rows)
        for tensor in rows:
            schedule_freely(schedule, schedule[tensor].name, target)
        return schedule


class Pairs(Widened):
    """The same of words of two terms; a term beyond the last is 0."""

    __slots__ = ()

    def count(self) -> int:
        return -(-self.terms // 2)

    def factor(self, value: Callable[[Expr], Expr], at: Expr) -> Expr:
        low, high = value(at * 2), value(at * 2 + 1)
        if self.terms % 2:
            high = te.if_then_else(at * 2 + 1 < self.terms, high, te.const(0, high.dtype))
        return te.pair(low, high)

    def multiply(self, left: Expr, right: Expr) -> Expr:
        return te.dot2(left, right)


def add_halves(strategy: OpStrategy, product: MatrixProduct, target: Target) -> None:
    """Offer them for factors of one half-precision dtype."""
    kind = product.left.dtype
    sums = accumulator(kind)
    if not kind.is_float or kind is sums or product.right.dtype is not kind:
        return
    widened = Widened(_tile(product, product.terms, target), product.terms, product.transposed)
    strategy.add_implementation(widened.compute, widened.schedule, "matmul.widened", plevel=15)
    if kind is BFLOAT16 and target.arch == "x86_64" and target.has("avx512bf16", "avx512vl"):
        pairs = Pairs(_tile(product, -(-product.terms // 2), target), product.terms, product.transposed)
        strategy.add_implementation(pairs.compute, pairs.schedule, "matmul.pairs", plevel=16, keeps_order=False)


def _tile(product: MatrixProduct, terms: int, target: Target) -> RegisterTile:
    return register_tile(product.rows, product.columns, target, accumulator(product.left.dtype), terms)
