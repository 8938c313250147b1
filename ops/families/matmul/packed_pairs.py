"""Products of bfloat16 by a constant, packed into panels of words at compile time: ``nn.packed_pair_matmul``.

What ``packed.py`` is for float32, on targets that multiply pairs. A word has two terms of a column, as ``te.dot2``
takes them; a panel, as wide as a register tile, has the words of two terms side by side:
panels[tile, t, j] = b[2t … 2t + 1, tile * width + j].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import BFLOAT16, INT32, DType, dtype
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node
from ....graph.types import Type, tensor_type
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.simplify import simplify
from ....te.tensor import Tensors
from ...definition.attrs import Attrs, attr
from ...definition.layout_rule import LayoutCandidate, Packed
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from .factor_panels import offer_factors, product_in_panels
from .halves import (
    PAIR_BY_PAIR,
    Pairs,
    count_pairs,
    factor_blocking,
    multiplies_pairs,
    of_factors,
    pair_of,
)
from .packed import WordPanels, product_by_panels
from .panels import MatrixProduct

# 1. Attributes.


@dataclass(frozen=True)
class PackedPairMatmulAttrs(Attrs):
    """The attributes of ``nn.packed_pair_matmul``."""

    columns: int = attr("how many columns the right factor has")
    out_dtype: str = attr("dtype of the result: bfloat16 or float32", default="bfloat16")


# 2. Type relation.


def _relation(types: Sequence[Type], attrs: PackedPairMatmulAttrs) -> Type:
    a, panels = tensor_argument(types[0], "a"), tensor_argument(types[1], "panels")
    if a.dtype is not BFLOAT16 or panels.dtype is not INT32 or attrs.out_dtype not in ("bfloat16", "float32"):
        raise TypeInferenceError(
            f"bfloat16 is multiplied by pairs in int32, to bfloat16 or float32; found {a}, {panels}, {attrs.out_dtype}"
        )
    return product_by_panels(a, panels, _words, "words of a", attrs.columns, dtype(attrs.out_dtype))


def _words(terms: Expr) -> Expr:
    return simplify((terms + 1) // 2)


# 3. Registration.

PACKED_PAIR_MATMUL = register_op(
    "nn.packed_pair_matmul",
    "The product of matrices of bfloat16, of which the right one stands in panels of words of two terms; what "
    "nn.matmul and nn.dense by a constant become where the target multiplies pairs",
    [("a", "[…, M, K]"), ("panels", "[tiles, ⌈K / 2⌉, width], int32; 0 beyond the last column and term")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    PackedPairMatmulAttrs,
    support_level=10,
)

# 4. Computes.


def _compute(attrs: PackedPairMatmulAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    a, panels = inputs
    kind = tensor_argument(result, "result")
    t = te.reduce_axis((0, panels.shape[1]), name="t")
    width, terms = panels.shape[-1], a.shape[-1]

    def element(*axes: Axis) -> Expr:
        *outer, column = axes
        word = pair_of(lambda k: a[(*outer, k)], as_index(t), terms)
        return te.sum(te.dot2(word, panels[column // width, t, column % width]), axis=t)

    sums = te.compute(kind.shape, element, name="packed_pair_matmul.sums")
    return te.compute(kind.shape, lambda *i: te.cast(sums[i], kind.dtype), name="packed_pair_matmul")


# 5. Schedule and strategy.


@register_strategy(PACKED_PAIR_MATMUL)
def _strategy(attrs: PackedPairMatmulAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_compute, schedule_default, "packed_pair_matmul.direct")
    found = product_in_panels(inputs, result, target.lanes("float32"))
    if found is not None:
        product, vectors = found
        name, words = "packed_pair_matmul.blocked", _words_of(product)
        offer_factors(strategy, name, product, words, vectors, Pairs, PAIR_BY_PAIR, target)
    return strategy


def _words_of(product: MatrixProduct) -> MatrixProduct:
    return of_factors(product, count_pairs(product.reduction_extent), INT32)


# 6. and 7. Who calls it.


def packed_pair_candidates(product: MatrixProduct, target: Target) -> Iterator[LayoutCandidate]:
    """The layout candidate of bfloat16 by a constant matrix, which it packs, where the target multiplies pairs."""
    if product.left.dtype is BFLOAT16 and multiplies_pairs(target):
        width = factor_blocking(_words_of(product), target).tile.columns
        shape = (math.ceil(product.columns / width), count_pairs(product.reduction_extent), width)
        arguments = (None, Packed(WordPanels(width, product.transposed), tensor_type(shape, INT32)))
        attrs = PackedPairMatmulAttrs(product.columns, str(product.result.dtype))
        yield LayoutCandidate(arguments, attrs, None, PACKED_PAIR_MATMUL)


def packed_pair_matmul(a: Node, panels: Node, columns: int, out_dtype: str | DType = "bfloat16") -> Call:
    """a · b of a matrix b of bfloat16 with so many columns, in panels of words."""
    return PACKED_PAIR_MATMUL(a, panels, attrs=PackedPairMatmulAttrs(columns, str(out_dtype)))
