"""Products of two batches of matrices, either of which may be stored transposed: ``nn.batch_matmul``.

Its implementations are those of nn.matmul, which ``matmul.py`` brings together, on the left factor by rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type
from ....ir.expr import Axis, Expr
from ....te.tensor import Tensors
from ...definition.accumulate import OUT_DTYPE, check_contraction, narrowed, product_dtype, widened
from ...definition.arguments import dtype_name
from ...definition.attrs import Attrs, attr
from ...definition.implementation import Compute, Computed
from ...definition.registry import OpPattern, register_op
from ...definition.relations import broadcast_shapes, tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from .cblas import add_cblas
from .matmul import add_products
from .panels import ProductStages, apart, batch_index, in_order, matrix_product

# 1. Attributes.


@dataclass(frozen=True)
class BatchMatmulAttrs(Attrs):
    """The attributes of ``nn.batch_matmul``."""

    transpose_a: bool = attr("whether the matrices of a are [K, M] rather than [M, K]", default=False)
    transpose_b: bool = attr("whether the matrices of b are [N, K] rather than [K, N]", default=False)
    out_dtype: str = attr(OUT_DTYPE, default="")


# 2. Type relation.


def _relation(types: Sequence[Type], attrs: BatchMatmulAttrs) -> Type:
    a, b = tensor_argument(types[0], "a"), tensor_argument(types[1], "b")
    kind = product_dtype([a, b], ["a", "b"], attrs.out_dtype)
    if a.ndim < 3 or b.ndim != a.ndim:
        raise TypeInferenceError(f"a and b are batches of matrices, which have 3 axes or more, found {a} and {b}")
    rows, left_extent = _turned(a, attrs.transpose_a).shape[-2:]
    right_extent, columns = _turned(b, attrs.transpose_b).shape[-2:]
    check_contraction(left_extent, right_extent, "a", "b")
    return TensorType((*broadcast_shapes([a.shape[:-2], b.shape[:-2]], ("a", "b")), rows, columns), kind)


def _turned(kind: TensorType, transposed: bool) -> TensorType:
    """The type with its last two axes as they are multiplied."""
    *batch, rows, columns = kind.shape
    return replace(kind, shape=(*batch, columns, rows)) if transposed else kind


# 3. Registration.

BATCH_MATMUL = register_op(
    "nn.batch_matmul",
    "The product of each matrix of a with that of b; a batch of one serves all of the other",
    [("a", "[…, M, K], or […, K, M] if transposed"), ("b", "[…, K, N], or […, N, K] if transposed")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    BatchMatmulAttrs,
    support_level=10,
)

# 4. Compute.


def _compute(attrs: BatchMatmulAttrs, inputs: Tensors, result: Type) -> ProductStages:
    a, b = apart(*inputs)
    kind = tensor_argument(result, "result")
    k = te.reduce_axis((0, a.shape[-2 if attrs.transpose_a else -1]), name="k")

    def element(*axes: Axis) -> Expr:
        *batch, row, column = axes
        left = (k, row) if attrs.transpose_a else (row, k)
        right = (column, k) if attrs.transpose_b else (k, column)
        factors = a[(*batch_index(a.shape[:-2], batch), *left)], b[(*batch_index(b.shape[:-2], batch), *right)]
        return te.sum(widened(factors[0], kind.dtype) * widened(factors[1], kind.dtype), axis=k)

    sums = te.compute(kind.shape, element, name="batch_matmul")
    return ProductStages(narrowed(sums, kind.dtype, "batch_matmul.narrow"), sums, a, b)


def _with_rows(compute: Compute) -> Compute:
    """The compute of a product, for a left factor that is stored transposed; what reads it inlines the turn."""

    def turned(attrs: BatchMatmulAttrs, inputs: Tensors, result: Type) -> te.Tensor | Computed:
        a, b = inputs
        *batch, extent, rows = a.shape
        by_rows = te.compute((*batch, rows, extent), lambda *i: a[(*i[:-2], i[-1], i[-2])], name="rows")
        return compute(attrs, (by_rows, b), result)

    return turned


# 5. Strategy; the schedules are those of nn.matmul.


@register_strategy(BATCH_MATMUL)
def _strategy(attrs: BatchMatmulAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_compute, schedule_default, "batch_matmul.direct", sums=in_order(result))
    products, left = OpStrategy(), _turned(tensor_argument(inputs[0], "a"), attrs.transpose_a)
    product = matrix_product((left, inputs[1]), result, attrs.transpose_b, attrs.transpose_a)
    add_products(products, _compute, product, target)
    for condition, made in products.candidates():
        turns = attrs.transpose_a and made.compute is not _compute
        compute = _with_rows(made.compute) if turns else made.compute
        with strategy.specialized(*(condition.clauses if condition is not None else ())):
            strategy.add_implementation(
                compute,
                made.schedule,
                f"batch_{made.name}",
                keeps_order=made.keeps_order,
                cost=made.cost,
                direct=made.direct,
                sums=made.sums,
            )
    add_cblas(strategy, inputs, result, target, "batch_matmul", attrs.transpose_a, attrs.transpose_b)
    return strategy


# 6. and 7. The call.


def batch_matmul(
    a: Node, b: Node, transpose_a: bool = False, transpose_b: bool = False, out_dtype: str | DType | None = None
) -> Call:
    """a[n] · b[n] for each n, or with aᵀ, bᵀ; of 8-bit integers, of either sign, in int32."""
    return BATCH_MATMUL(a, b, attrs=BatchMatmulAttrs(transpose_a, transpose_b, dtype_name(out_dtype)))
