"""Products of bytes by a constant, packed into panels of words when the model is compiled: ``nn.packed_byte_matmul``.

What ``packed.py`` is for floats. A word has four terms of a column, as ``te.dot4`` takes them; a panel, as wide as a
register tile, has the words of four terms side by side: panels[tile, t, j] = b[4t … 4t + 3, tile * width + j].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import INT32, dtype
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node
from ....graph.types import Type, tensor_type
from ....ir.expr import Axis, Expr
from ....ir.simplify import simplify
from ....lowering.schedule import Schedule
from ....schedules.register_tile import RegisterTile
from ....te.tensor import Tensors
from ...definition.accumulate import is_byte
from ...definition.attrs import Attrs, attr
from ...definition.layout_rule import LayoutCandidate, Packed
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from ..byte_words import BYTES, ByteProduct, count_words
from .byte_tiles import add_tiles
from .factor_panels import product_in_panels
from .int8 import EXACT, WordStages, byte_tile, schedule_words, sum_words, word_cycles
from .joined_rows import computing
from .open_rows import offer_by_rows
from .packed import WordPanels, product_by_panels
from .panels import MatrixProduct

# 1. Attributes.


@dataclass(frozen=True)
class PackedByteMatmulAttrs(Attrs):
    """The attributes of ``nn.packed_byte_matmul``."""

    columns: int = attr("how many columns the right factor has")
    dtype: str = attr("of the right factor: int8 or uint8")


# 2. Type relation.


def _relation(types: Sequence[Type], attrs: PackedByteMatmulAttrs) -> Type:
    a, panels = tensor_argument(types[0], "a"), tensor_argument(types[1], "panels")
    if not is_byte(a.dtype) or attrs.dtype not in ("int8", "uint8") or panels.dtype is not INT32:
        raise TypeInferenceError(f"bytes are multiplied by bytes in words of int32, found {a}, {panels}, {attrs.dtype}")
    return product_by_panels(a, panels, _words, "words of a", attrs.columns, INT32)


def _words(terms: Expr) -> Expr:
    return simplify((terms + (BYTES - 1)) // BYTES)


# 3. Registration.

PACKED_BYTE_MATMUL = register_op(
    "nn.packed_byte_matmul",
    "The product of matrices of 8-bit integers, of which the right one stands in panels of words of four terms; what "
    "nn.matmul and nn.dense by a constant become",
    [("a", "[…, M, K]"), ("panels", "[tiles, ⌈K / 4⌉, width], int32; 0 beyond the last column and term")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    PackedByteMatmulAttrs,
    support_level=10,
)

# 4. Computes.


def _compute(attrs: PackedByteMatmulAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    a, panels = inputs
    k = te.reduce_axis((0, a.shape[-1]), name="k")
    width = panels.shape[-1]

    def element(*axes: Axis) -> Expr:
        *outer, column = axes
        word = panels[column // width, k // BYTES, column % width]
        byte = te.cast(word >> te.cast(k % BYTES * 8, "int32"), attrs.dtype)
        return te.sum(te.cast(a[(*outer, k)], "int32") * te.cast(byte, "int32"), axis=k)

    return te.compute(tensor_argument(result, "result").shape, element, name="packed_byte_matmul")


# 5. Schedule and strategy.


@dataclass(frozen=True, slots=True)
class PackedBytes:
    """A product of words, whose panels are as wide as its tile."""

    product: MatrixProduct
    tile: RegisterTile

    def compute(self, attrs: PackedByteMatmulAttrs, inputs: Tensors, result: Type) -> WordStages:
        """The result over sums of words in int32; words of the right factor are shifted where they are read, if signs
        ask for it."""
        a, panels = inputs
        product = ByteProduct(a.dtype, dtype(attrs.dtype))

        def multiply(left: Expr, right: Expr) -> Expr:
            return product.multiply(left, product.right_word(right))

        return sum_words(a, panels, "panels", product, result, multiply=multiply)

    def schedule(self, attrs: Any, anchor: WordStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of a product of words whose right factor stands in panels already."""
        return schedule_words(anchor, outputs, self.product.reduction_extent, self.tile, target, "panels")


@register_strategy(PACKED_BYTE_MATMUL)
def _strategy(attrs: PackedByteMatmulAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_compute, schedule_default, "packed_byte_matmul.direct")
    found = product_in_panels(inputs, result, target.lanes(INT32))
    if found is None:
        return strategy
    product, vectors = found

    def offer(name: str, plevel: int, tile: RegisterTile) -> None:
        made, cost = PackedBytes(product, tile), word_cycles(product, tile, target) + product.moved()
        strategy.add_implementation(
            computing(product, made.compute), made.schedule, name, plevel, cost=cost, sums=EXACT
        )

    tile = byte_tile(product, target, vectors)
    offer_by_rows(strategy, product, "packed_byte_matmul.words", tile, target, offer)
    add_tiles(strategy, product, attrs.dtype, tile.columns, target)
    return strategy


# 6. and 7. Who calls it.


def packed_byte_candidates(product: MatrixProduct, target: Target) -> Iterator[LayoutCandidate]:
    """The layout candidate of bytes by a constant matrix of bytes, which it packs."""
    if is_byte(product.left.dtype) and is_byte(product.right.dtype):
        width = byte_tile(product, target).columns
        shape = (math.ceil(product.columns / width), count_words(product.reduction_extent), width)
        arguments = (None, Packed(WordPanels(width, product.transposed), tensor_type(shape, INT32)))
        attrs = PackedByteMatmulAttrs(product.columns, str(product.right.dtype))
        yield LayoutCandidate(arguments, attrs, None, PACKED_BYTE_MATMUL)


def packed_byte_matmul(a: Node, panels: Node, columns: int, dtype: str) -> Call:
    """a · b of a matrix b of bytes of a dtype with so many columns, in panels of words."""
    return PACKED_BYTE_MATMUL(a, panels, attrs=PackedByteMatmulAttrs(columns, dtype))
