"""Matrix products: ``nn.matmul`` with numpy's rules for ranks and batches, ``nn.dense`` for a layer's weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Constant, Node
from ....graph.types import TensorType, Type
from ....ir.expr import Axis, Expr
from ....te.tensor import Tensors
from ...definition.accumulate import OUT_DTYPE, check_contraction, narrowed, product_dtype, widened
from ...definition.arguments import dtype_name, flag
from ...definition.attrs import Attrs, attr
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.registry import OpPattern, register_op
from ...definition.relations import broadcast_shapes, tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from .cblas import add_cblas
from .dots import add_dots
from .halves import add_halves
from .int8 import add_bytes
from .joined_rows import computing, join_rows
from .long import add_long
from .packed import packed_candidates
from .packed_bytes import packed_byte_candidates
from .packed_pairs import packed_pair_candidates
from .paneled import add_paneled
from .panels import MatrixProduct, ProductCompute, ProductStages, apart, batch_index, in_order, matrix_product
from .strassen import strassen_candidates
from .streamed import add_streamed

# What all products of matrices have.


def add_products(strategy: OpStrategy, compute: ProductCompute, product: MatrixProduct | None, target: Target) -> None:
    """Offer the implementations for products of matrices. Those of floats schedule the definition, ``compute``."""
    if product is not None:
        joined = join_rows(product) if product.right.ndim == 2 and not product.left_transposed else product
        computed = computing(joined, compute)
        add_paneled(strategy, computed, joined, target)
        add_dots(strategy, product, target)
        add_halves(strategy, computed, joined, target)
        if product.is_open:
            return
        add_bytes(strategy, joined, target)
        if not joined.joins_rows:
            add_long(strategy, compute, product, target)
            add_streamed(strategy, compute, product, target)


def _uses_of_constant(call: Call, given: ValueLayout | None, target: Target) -> Iterator[LayoutCandidate]:
    """The layout rule of products: a constant matrix on the right can be packed, as suits dtypes and extents."""
    a, b = call.args
    if given is not None or not isinstance(b, Constant):
        return
    product = matrix_product([a.type, b.type], call.type, call.attrs.transposed)
    if product is not None and product.right.ndim == 2 and not product.is_open:
        joined = join_rows(product)
        yield from packed_candidates(joined, target)
        yield from strassen_candidates(product, target)
        yield from packed_byte_candidates(joined, target)
        yield from packed_pair_candidates(joined, target)


# nn.matmul


@dataclass(frozen=True)
class MatmulAttrs(Attrs):
    """The attributes of ``nn.matmul``."""

    out_dtype: str = attr(OUT_DTYPE, default="")

    @property
    def transposed(self) -> bool:
        """The right factor is [K, N] always, as that of ``nn.dense`` need not be."""
        return False


def _matmul_relation(types: Sequence[Type], attrs: MatmulAttrs) -> Type:
    a, b = tensor_argument(types[0], "a"), tensor_argument(types[1], "b")
    kind = product_dtype([a, b], ["a", "b"], attrs.out_dtype)
    if a.ndim == 0 or b.ndim == 0:
        raise TypeInferenceError("a scalar has no axis to multiply over; use multiply")
    check_contraction(a.shape[-1], b.shape[-1] if b.ndim == 1 else b.shape[-2], "a", "b")
    rows = a.shape[-2:-1]
    columns = b.shape[-1:] if b.ndim > 1 else ()
    return TensorType((*broadcast_shapes([a.shape[:-2], b.shape[:-2]], ("a", "b")), *rows, *columns), kind)


def _matmul_compute(attrs: MatmulAttrs, inputs: Tensors, result: Type) -> ProductStages:
    a, b = apart(*inputs)
    kind = tensor_argument(result, "result")
    k = te.reduce_axis((0, a.shape[-1]), name="k")
    batch = kind.ndim - (a.ndim > 1) - (b.ndim > 1)

    def element(*axes: Axis) -> Expr:
        row, column = axes[batch : batch + (a.ndim > 1)], axes[kind.ndim - (b.ndim > 1) :]
        left = (*batch_index(a.shape[:-2], axes[:batch]), *row, k)
        right = (*batch_index(b.shape[:-2], axes[:batch]), k, *column)
        return te.sum(widened(a[left], kind.dtype) * widened(b[right], kind.dtype), axis=k)

    sums = te.compute(kind.shape, element, name="matmul")
    return ProductStages(narrowed(sums, kind.dtype, "matmul.narrow"), sums, a, b)


MATMUL = register_op(
    "nn.matmul",
    "The product of matrices, with numpy's rules: batch axes broadcast, a vector counts as a row on the left and as a "
    "column on the right",
    [("a", "[…, M, K] or [K]"), ("b", "[…, K, N] or [K]")],
    _matmul_relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    MatmulAttrs,
    support_level=1,
    layout_rule=_uses_of_constant,
)


@register_strategy(MATMUL)
def _matmul_strategy(attrs: MatmulAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_matmul_compute, schedule_default, "matmul.direct", sums=in_order(result))
    add_products(strategy, _matmul_compute, matrix_product(inputs, result, transposed=False), target)
    add_cblas(strategy, inputs, result, target, "matmul")
    return strategy


def matmul(a: Node, b: Node, out_dtype: str | DType | None = None) -> Call:
    """a @ b, as in numpy; but 8-bit integers, of either sign, are summed in int32, and give int32."""
    return MATMUL(a, b, attrs=MatmulAttrs(dtype_name(out_dtype)))


# nn.dense


@dataclass(frozen=True)
class DenseAttrs(Attrs):
    """The attributes of ``nn.dense``."""

    transposed: bool = attr("whether the weight is [N, K] rather than [K, N]", default=True)
    out_dtype: str = attr(OUT_DTYPE, default="")


def _dense_relation(types: Sequence[Type], attrs: DenseAttrs) -> Type:
    x, weight = tensor_argument(types[0], "x"), tensor_argument(types[1], "weight")
    kind = product_dtype([x, weight], ["x", "weight"], attrs.out_dtype)
    if x.ndim < 1 or weight.ndim != 2:
        raise TypeInferenceError(f"x needs an axis to multiply over and weight two axes, found {x} and {weight}")
    columns, reduction_extent = weight.shape if attrs.transposed else weight.shape[::-1]
    check_contraction(x.shape[-1], reduction_extent, "x", "weight")
    return TensorType((*x.shape[:-1], columns), kind)


def _dense_compute(attrs: DenseAttrs, inputs: Tensors, result: Type) -> ProductStages:
    x, weight = apart(*inputs)
    kind = tensor_argument(result, "result")
    k = te.reduce_axis((0, x.shape[-1]), name="k")

    def element(*axes: Axis) -> Expr:
        factor = weight[axes[-1], k] if attrs.transposed else weight[k, axes[-1]]
        return te.sum(widened(x[(*axes[:-1], k)], kind.dtype) * widened(factor, kind.dtype), axis=k)

    sums = te.compute(kind.shape, element, name="dense")
    return ProductStages(narrowed(sums, kind.dtype, "dense.narrow"), sums, x, weight)


DENSE = register_op(
    "nn.dense",
    "A fully connected layer: the last axis of x times a weight",
    [("x", "[…, K]"), ("weight", "[N, K], or [K, N] if not transposed")],
    _dense_relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    DenseAttrs,
    support_level=1,
    layout_rule=_uses_of_constant,
)


@register_strategy(DENSE)
def _dense_strategy(attrs: DenseAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_dense_compute, schedule_default, "dense.direct", sums=in_order(result))
    add_products(strategy, _dense_compute, matrix_product(inputs, result, attrs.transposed), target)
    add_cblas(strategy, inputs, result, target, "dense", transposed_b=attrs.transposed)
    return strategy


def dense(x: Node, weight: Node, transposed: bool = True, out_dtype: str | DType | None = None) -> Call:
    """x · weightᵀ, or x · weight if not ``transposed``; of 8-bit integers, of either sign, in int32."""
    return DENSE(x, weight, attrs=DenseAttrs(flag(transposed, "transposed"), dtype_name(out_dtype)))
