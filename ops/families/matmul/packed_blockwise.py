"""Weights of few bits in panels of words, which become real numbers in registers: ``nn.packed_blockwise``.

What ``packed.py`` is for floats. A word has neighbouring terms of a column, the first one in its lowest bits; a panel,
as wide as a register tile, has the words of the same terms side by side: panels[tile, t, j] is word t of column
tile * width + j. Zero points and scales stand in panels, too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import FLOAT32, INT32, UINT8
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type, tensor_type
from ....ir.expr import Axis, Expr
from ....ir.simplify import simplify
from ....lowering.schedule import Schedule
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.accumulate import narrowed, widened
from ...definition.attrs import Attrs, attr, one_of, positive
from ...definition.layout_rule import LayoutCandidate, Packed
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from .blocking import STREAMING, Blocking, BlockingPlan, schedule_blocked, with_tile
from .factor_panels import product_in_panels
from .joined_rows import computing
from .open_rows import offer_by_rows
from .packed import Panels, product_by_panels
from .panels import TERM_BY_TERM, MatrixProduct, ProductStages, sum_of_products

WORD_BITS = 32
STEPS = 8
"""So many terms become real numbers between two tests whether the sum ends: of 4 bits, a word's."""
DECODED = 5
"""Registers that each vector of a tile takes beside its sums: words, zero points, scales, and what becomes of them."""
DECODING_CYCLES = 1.5
"""What a vector of words takes to become real numbers: it is shifted, masked, converted, moved and scaled."""
BY_PANELS = 20
"""The priority of panels of real numbers, which are for many rows, before those of tiles for any number of rows."""
MOST_IN_REGISTERS = 12
"""With more rows it takes less to make panels of real numbers once for all of them than for each tile; equal at 16."""

# 1. Attributes.


@dataclass(frozen=True)
class PackedBlockwiseAttrs(Attrs):
    """The attributes of ``nn.packed_blockwise``."""

    columns: int = attr("how many columns the right factor has")
    bits: int = attr("how many bits a code has", check=one_of(1, 2, 4, 8))
    block: int = attr("how many neighbours along the reduction have one zero point and one scale", check=positive)


# 2. Type relation.


def _relation(types: Sequence[Type], attrs: PackedBlockwiseAttrs) -> Type:
    names = ("a", "panels", "zeros", "scales")
    a, panels, zeros, scales = (tensor_argument(t, name) for t, name in zip(types, names, strict=True))
    if not a.dtype.is_float or a.dtype.storage_bits > FLOAT32.storage_bits or panels.dtype is not INT32:
        raise TypeInferenceError(f"floats of at most 32 bits are multiplied by words of int32, found {a} and {panels}")
    if zeros.dtype is not UINT8 or not scales.dtype.is_float or zeros.shape != scales.shape or scales.ndim != 3:
        raise TypeInferenceError(
            f"each block of a column has a zero point of uint8 and a scale of floats, found {zeros} and {scales}"
        )

    def words(terms: Expr) -> Expr:
        return _count_words(terms, attrs.bits)

    made = product_by_panels(a, panels, words, "words of a", attrs.columns, a.dtype)
    tiles, _, width = panels.shape
    if scales.shape != (tiles, simplify((a.shape[-1] + (attrs.block - 1)) // attrs.block), width):
        raise TypeInferenceError(f"scales need an element for each block of {attrs.block} of {a}, found {scales}")
    return made


def _count_words(terms: Expr, bits: int) -> Expr:
    """How many words hold so many terms."""
    each = WORD_BITS // bits
    return simplify((terms + (each - 1)) // each)


# 3. Registration.

PACKED_BLOCKWISE = register_op(
    "nn.packed_blockwise",
    "A fully connected layer by a weight of few bits, which stands in panels of words; what nn.blockwise_dense by "
    "constants becomes",
    [
        ("a", "[…, M, K], of floats of at most 32 bits"),
        ("panels", "[tiles, ⌈K · bits / 32⌉, width], int32"),
        ("zeros", "[tiles, ⌈K / block⌉, width], uint8"),
        ("scales", "[tiles, ⌈K / block⌉, width], floats"),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    PackedBlockwiseAttrs,
    support_level=10,
)

# 4. Computes.


def decoded(code: Expr, zero: Expr, scale: Expr) -> Expr:
    """The real number that a code stands for, in float32."""
    return (te.cast(code, FLOAT32) - te.cast(zero, FLOAT32)) * te.cast(scale, FLOAT32)


def _compute(attrs: PackedBlockwiseAttrs, inputs: Tensors, result: Type) -> ProductStages:
    """The sums over the rows of a, in float32, and the weight as real numbers, which is a stage of its own."""
    a, panels, zeros, scales = inputs
    kind, each = tensor_argument(result, "result"), WORD_BITS // attrs.bits
    tiles, _, width = panels.shape

    def weight(tile: Axis, k: Axis, column: Axis) -> Expr:
        word = panels[tile, k // each, column]
        code = word >> te.cast(k % each * attrs.bits, "int32") & ((1 << attrs.bits) - 1)
        block = (tile, k // attrs.block, column)
        return decoded(code, zeros[block], scales[block])

    right = te.compute((tiles, a.shape[-1], width), weight, name="packed_blockwise.weight")
    rows = a if a.dtype is FLOAT32 else te.compute(a.shape, lambda *i: widened(a[i]), name="packed_blockwise.rows")
    wide = replace(kind, dtype=FLOAT32)
    sums = sum_of_products(rows, right, "panels", wide, operator.mul, "packed_blockwise")
    return ProductStages(narrowed(sums, kind.dtype, "packed_blockwise.narrow"), sums, rows, right)


# 5. Schedule and strategy.


@dataclass(frozen=True, slots=True)
class PackedBlockwise:
    """How a product by words in panels is scheduled: codes become real numbers where they are multiplied, or ``whole``
    panels of these are made before, for all rows."""

    product: MatrixProduct
    tile: RegisterTile
    whole: bool = False

    def schedule(self, attrs: Any, anchor: ProductStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``_compute``."""
        product = replace(self.product, result=replace(self.product.result, dtype=FLOAT32))

        def blocking(tile: RegisterTile, pack: bool) -> Blocking:
            found = with_tile(product, tile, target)
            copies_rows = found.copies_rows or self.product.left.dtype is not FLOAT32
            return replace(found, steps=STEPS, packs_chunks=self.whole, copies_rows=copies_rows)

        return schedule_blocked(anchor, outputs, BlockingPlan(self.tile, False, blocking), target, "panels")


@register_strategy(PACKED_BLOCKWISE)
def _strategy(attrs: PackedBlockwiseAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_compute, schedule_default, "packed_blockwise.direct")
    found = product_in_panels(inputs[:2], result, target.lanes(FLOAT32))
    if found is None:
        return strategy
    product, vectors = found

    def offer(name: str, plevel: int, tile: RegisterTile) -> None:
        made = PackedBlockwise(product, tile)
        times = product.batch * math.ceil(product.rows / tile.rows)
        cost = product.cycles(tile, target.fma_per_cycle) + product.moved() + _decoding(product, times, tile)
        compute = computing(product, _compute)
        strategy.add_implementation(compute, made.schedule, name, plevel, cost=cost, sums=TERM_BY_TERM)

    with strategy.specialized(product.left.shape[-2] > MOST_IN_REGISTERS):
        whole = _whole_tile(product, target, vectors)
        made = PackedBlockwise(product, whole, whole=True)
        cost = product.cycles(whole, target.fma_per_cycle) + product.moved() + _decoding(product, 1, whole)
        strategy.add_implementation(
            computing(product, _compute),
            made.schedule,
            "packed_blockwise.panels",
            BY_PANELS,
            cost=cost,
            sums=TERM_BY_TERM,
        )
    tile = _word_tile(product, target, vectors)
    offer_by_rows(strategy, product, "packed_blockwise.words", tile, target, offer)
    return strategy


def _decoding(product: MatrixProduct, times: int, tile: RegisterTile) -> float:
    """Cycles in which all codes become real numbers so many times."""
    return times * math.ceil(product.columns / tile.lanes) * product.reduction_extent * DECODING_CYCLES


def _word_tile(product: MatrixProduct, target: Target, vectors: int | None = None) -> RegisterTile:
    """The register tile where codes become real numbers in it; ``vectors`` is how wide panels are, if that is given."""
    return register_tile(product.rows, product.columns, target, FLOAT32, vectors=vectors, steps=DECODED)


def _whole_tile(product: MatrixProduct, target: Target, vectors: int | None = None) -> RegisterTile:
    """The register tile for panels of real numbers."""
    steps = CORE.steps_unrolled
    return register_tile(
        product.rows, product.columns, target, FLOAT32, vectors=vectors, streaming=STREAMING, steps=steps
    )


# 6. and 7. Who calls it.


@dataclass(frozen=True, slots=True)
class CodeWords:
    """Packs a matrix [N, K] of codes of so many bits into words in panels."""

    width: int
    bits: int

    def __call__(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        each = 8 // self.bits
        columns, terms = codes.shape
        whole = np.zeros((columns, -(-terms * self.bits // WORD_BITS) * WORD_BITS // self.bits), np.uint8)
        whole[:, :terms] = codes
        whole &= (1 << self.bits) - 1
        held = whole[:, ::each].copy()
        for place in range(1, each):
            held |= whole[:, place::each] << np.uint8(place * self.bits)
        return Panels(self.width, transposed=True)(held.view("<i4"))


def packed_blockwise_candidates(
    product: MatrixProduct, zeros: TensorType, scales: TensorType, bits: int, block: int, target: Target
) -> LayoutCandidate:
    """The layout candidate of a product by a constant [N, K] of codes of so many bits."""
    tile_of = _whole_tile if product.rows > MOST_IN_REGISTERS else _word_tile
    width = tile_of(product, target).columns
    tiles, blocks = math.ceil(product.columns / width), math.ceil(product.reduction_extent / block)
    words = tensor_type((tiles, math.ceil(product.reduction_extent * bits / WORD_BITS), width), INT32)
    panels = Panels(width, transposed=True)
    arguments = (
        None,
        Packed(CodeWords(width, bits), words),
        *(Packed(panels, tensor_type((tiles, blocks, width), kind.dtype)) for kind in (zeros, scales)),
    )
    attrs = PackedBlockwiseAttrs(product.columns, bits, block)
    return LayoutCandidate(arguments, attrs, None, PACKED_BLOCKWISE)


def packed_blockwise(a: Node, panels: Node, zeros: Node, scales: Node, columns: int, bits: int, block: int) -> Call:
    """a · Wᵀ of a weight of few bits with so many columns, in panels of words."""
    attrs = PackedBlockwiseAttrs(columns, bits, block)
    return PACKED_BLOCKWISE(a, panels, zeros, scales, attrs=attrs)
