"""A fully connected layer whose weight is of few bits, in blocks that have a zero point and a scale each:
``nn.blockwise_dense``, for weights that are quantized and activations that are not.

The weight is turned into real numbers where it is multiplied, in float32, so that memory gives a few bits for each. A
constant one stands packed into words, in panels (``packed_blockwise.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import FLOAT32, UINT8
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Constant, Node
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.open_extents import MANY_ROWS
from ....te.tensor import Tensors
from ...definition.accumulate import check_contraction, narrowed, widened
from ...definition.attrs import Attrs, attr, one_of, positive
from ...definition.cost import elements_of
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from .joined_rows import computing, join_rows
from .packed_blockwise import decoded, packed_blockwise_candidates
from .paneled import add_paneled
from .panels import ProductStages, matrix_product

TERM_CYCLES = 3.0
"""What a term takes by the definition, one at a time."""

# 1. Attributes.


@dataclass(frozen=True)
class BlockwiseDenseAttrs(Attrs):
    """The attributes of ``nn.blockwise_dense``."""

    bits: int = attr("how many bits a code has", check=one_of(1, 2, 4, 8))
    block: int = attr("how many neighbours along the reduction have one zero point and one scale", check=positive)


# 2. Type relation.


def _relation(types: Sequence[Type], attrs: BlockwiseDenseAttrs) -> Type:
    names = ("x", "codes", "zeros", "scales")
    x, codes, zeros, scales = (tensor_argument(t, name) for t, name in zip(types, names, strict=True))
    if not x.dtype.is_float or x.dtype.storage_bits > FLOAT32.storage_bits:
        raise TypeInferenceError(f"x is of floats of 32 bits at most, found {x}")
    if codes.dtype is not UINT8 or zeros.dtype is not UINT8 or not scales.dtype.is_float:
        raise TypeInferenceError(
            f"codes and zeros are of uint8 and scales of floats, found {codes}, {zeros} and {scales}"
        )
    if x.ndim < 1 or any(t.ndim != 2 for t in (codes, zeros, scales)):
        raise TypeInferenceError(
            f"x needs an axis to multiply over, codes, zeros and scales two, found {x}, {codes}, {zeros} and {scales}"
        )
    check_contraction(x.shape[-1], codes.shape[1], "x", "codes")
    if codes.static_shape is None:
        raise TypeInferenceError(f"the extents of codes must be known, found {codes}")
    columns, terms = codes.static_shape
    for name, kind in (("zeros", zeros), ("scales", scales)):
        if kind.static_shape != (columns, -(-terms // attrs.block)):
            raise TypeInferenceError(f"{name} need an element for each block of {attrs.block} of {codes}, found {kind}")
    return TensorType((*x.shape[:-1], codes.shape[0]), x.dtype)


# 3. Computes.


def _compute(attrs: BlockwiseDenseAttrs, inputs: Tensors, result: Type) -> ProductStages:
    x, codes, zeros, scales = inputs
    kind = tensor_argument(result, "result")
    k = te.reduce_axis((0, x.shape[-1]), name="k")

    def number(column: Axis, k: Axis) -> Expr:
        block, low_bits = (column, k // attrs.block), te.const((1 << attrs.bits) - 1, "uint8")
        return decoded(codes[column, k] & low_bits, zeros[block], scales[block])

    def element(*axes: Axis) -> Expr:
        return te.sum(widened(x[(*axes[:-1], k)]) * weight[axes[-1], k], axis=k)

    weight = te.compute(codes.shape, number, name="blockwise_dense.weight")
    sums = te.compute(kind.shape, element, name="blockwise_dense")
    return ProductStages(narrowed(sums, kind.dtype, "blockwise_dense.narrow"), sums, x, weight)


# 4. Registration.


def _packed(call: Call, given: ValueLayout | None, target: Target) -> Iterator[LayoutCandidate]:
    """The layout rule: constants are packed into panels."""
    if given is not None or not all(isinstance(argument, Constant) for argument in call.args[1:]):
        return
    left, codes, zeros, scales = (tensor_argument(argument.type, "argument") for argument in call.args)
    product = matrix_product([left, codes], call.type, transposed=True)
    if product is not None and not product.is_open:
        yield packed_blockwise_candidates(product, zeros, scales, call.attrs.bits, call.attrs.block, target)


BLOCKWISE_DENSE = register_op(
    "nn.blockwise_dense",
    "A fully connected layer: the last axis of x times a weight of few bits, (codes - zeros) · scales, where "
    "neighbours along the reduction, a block of them, have one zero and one scale",
    [
        ("x", "[…, K], of floats of at most 32 bits"),
        ("codes", "[N, K], uint8"),
        ("zeros", "[N, ⌈K / block⌉], uint8"),
        ("scales", "[N, ⌈K / block⌉], floats"),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    BlockwiseDenseAttrs,
    support_level=2,
    layout_rule=_packed,
)


@register_strategy(BLOCKWISE_DENSE)
def _strategy(attrs: BlockwiseDenseAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    x, codes, kind = (tensor_argument(t, "argument") for t in (*inputs[:2], result))
    terms = elements_of(kind.shape) * (const_int(codes.shape[1]) or MANY_ROWS)
    strategy.add_implementation(_compute, schedule_default, "blockwise_dense.direct", cost=TERM_CYCLES * terms)
    product = matrix_product([x, replace(codes, dtype=FLOAT32)], kind, transposed=True)
    if product is not None:
        joined = join_rows(product)
        add_paneled(strategy, computing(joined, _compute), joined, target)
    return strategy


def blockwise_dense(x: Node, codes: Node, zeros: Node, scales: Node, bits: int, block: int) -> Call:
    """x · Wᵀ for W = (codes - zeros) · scales, in float32, where ``block`` neighbours along the reduction have one zero
    point and one scale, and of each code the lowest ``bits`` count, 1, 2, 4 or 8."""
    return BLOCKWISE_DENSE(x, codes, zeros, scales, attrs=BlockwiseDenseAttrs(bits, block))
