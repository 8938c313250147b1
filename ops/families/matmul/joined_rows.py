"""Products by one matrix of many that have few rows each: their rows are those of one.

    [T, 1, K] · [K, N], as of a sequence whose batch comes second   →   [T, K] · [K, N]

Matrices that fill tiles by themselves stay apart: what is fused behind their product has their axes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import mul
from typing import Any

from .... import te
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.row_major import ravel_index, unravel_index
from ....ir.simplify import simplify
from ....te.tensor import Tensors
from ...definition.relations import tensor_argument
from .panels import MatrixProduct, ProductCompute, ProductStages

ENOUGH_ROWS = 32
"""So many rows of a matrix fill tiles well enough, whatever their height."""


def join_rows(product: MatrixProduct) -> MatrixProduct:
    """The product of all rows of the left matrices, of which one right matrix multiplies all, where there are several
    and they have few rows, or who knows how many; else the product as it is."""
    outer = product.left.shape[:-2]
    rows = const_int(product.left.shape[-2])
    if (rows is not None and rows >= ENOUGH_ROWS) or const_int(_count(outer)) == 1:
        return product
    count = _count(product.left.shape[:-1])
    left = replace(product.left, shape=(count, product.left.shape[-1]))
    result = replace(product.result, shape=(count, product.result.shape[-1]))
    return replace(product, left=left, result=result, joins_rows=True)


def computing(product: MatrixProduct, compute: ProductCompute) -> ProductCompute:
    """What computes a product that may join rows, made of what computes one of two matrices."""
    return _Joined(compute) if product.joins_rows else compute


class _Joined:
    """A compute of a product, over the rows of all matrices."""

    def __init__(self, compute: ProductCompute) -> None:
        self._compute = compute

    def __call__(self, attrs: Any, inputs: Tensors, result: Type) -> ProductStages:
        a, *right = inputs
        kind, outer = tensor_argument(result, "result"), a.shape[:-1]
        count = _count(outer)
        rows = te.compute((count, a.shape[-1]), lambda row, k: a[(*unravel_index(row.var, outer), k)], name="rows")
        stages = self._compute(attrs, (rows, *right), TensorType((count, kind.shape[-1]), kind.dtype))

        def element(*axes: Axis) -> Expr:
            return stages.result[ravel_index([axis.var for axis in axes[:-1]], outer), axes[-1]]

        return replace(stages, result=te.compute(kind.shape, element, name=f"{stages.result.op.name}.apart"))


def _count(extents: tuple[Expr, ...]) -> Expr:
    return simplify(reduce(mul, extents)) if extents else te.const(1, "index")
