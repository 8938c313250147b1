"""``nn.strassen_matmul``: products by a constant, of seven products of quarters (``quarters.py``).

The layout rule of nn.matmul and nn.dense, ``strassen_candidates``, proposes it to the layout planner, which weighs the
cost declared here, where rows are those of one sample: a left factor of rank 2 may have a sample in each row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around
from ....schedules.blocks import largest_divisor
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile, register_tile, step_cycles
from ....te.tensor import Tensors
from ...definition.attrs import Attrs
from ...definition.cost import elements_of
from ...definition.layout_rule import LayoutCandidate, Packed
from ...definition.registry import OpPattern, register_op
from ...definition.relations import same_dtype, tensor_argument
from ...definition.strategy import OpStrategy, register_strategy
from .blocking import STREAMING
from .panels import MatrixProduct
from .quarters import PRODUCTS, Planes, Quartered, ResultLoops, known_planes

# 1. and 2. Attributes, of which there are none, and type relation.


def _relation(types: Sequence[Type], attrs: Attrs) -> Type:
    a, planes = tensor_argument(types[0], "a"), tensor_argument(types[1], "planes")
    panels, terms, width = known_planes(planes)
    same_dtype([a, planes], ["a", "planes"])
    if a.ndim < 2 or not const_int(a.shape[-2]):
        raise TypeInferenceError(f"a must be a matrix at least, with a known number of rows, not 0, found {a}")
    if const_int(a.shape[-1]) != 2 * terms:
        raise TypeInferenceError(f"a has a reduction extent of {a.shape[-1]}, but planes have 2 · {terms}")
    return TensorType((*a.shape[:-1], as_index(2 * panels * width)), a.dtype)


# 3. Registration.

STRASSEN_MATMUL = register_op(
    "nn.strassen_matmul",
    "The product of matrices by seven products of their quarters, as Strassen does it, those of the right one summed "
    "before; what nn.matmul and nn.dense by a constant may become",
    [("a", "[…, M, K]"), ("planes", "[N / 2 / f, 7, K / 2, f]: the sums of quarters, in panels of f columns")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    support_level=10,
)

# 4. and 5. Compute, schedule and strategy.

MOST_VECTORS = 4
"""So many vectors side by side leave registers for some rows of sums."""


@dataclass(frozen=True, slots=True)
class StrassenProduct:
    """A product by planes, whose sums have the whole reduction in one block."""

    blocking: Quartered

    def compute(self, attrs: Attrs, inputs: Tensors, result: Type) -> te.Tensor:
        """The result over the sums of quarters of a and their products with the planes."""
        a, planes = inputs
        kind, blocking = tensor_argument(result, "result"), self.blocking
        terms = blocking.reduction_extent // 2

        def left(batch: Sequence[Axis], row: Expr, k: int, block: Axis, term: Axis) -> Expr:
            return a[(*batch, row, k * terms + term)]

        products = blocking.products(blocking.sums(kind.shape[:-2], terms, left), planes)
        return te.compute(
            kind.shape, lambda *axes: blocking.result(products, axes[:-2], *map(as_index, axes[-2:])), name="strassen"
        )

    def schedule(self, attrs: Attrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``compute``, by loops of the result over halves of rows and of columns; ``Quartered`` does
        the rest."""
        (products,) = anchor[0].op.inputs
        schedule, main = schedule_around(anchor[0], outputs, [products, products.op.inputs[0]], target)
        stage, blocking = schedule[main], self.blocking.decided(schedule)
        *outer, row, column = stage.loops[: main.ndim]
        i, row = stage.split(row, factor=blocking.half)
        j, column = stage.split(column, factor=blocking.columns // 2)
        panel, column = stage.split(column, factor=blocking.width)
        vector, lane = stage.split(column, factor=blocking.tile.lanes)
        blocking.schedule(schedule, stage, ResultLoops(outer, i, row, j, panel, vector, lane), products)
        return schedule


@register_strategy(STRASSEN_MATMUL)
def _strategy(attrs: Attrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    a, planes, kind = (tensor_argument(t, "argument") for t in (*inputs, result))
    panels, terms, width = known_planes(planes)
    rows = const_int(a.shape[-2]) or 0
    lanes = math.gcd(width, target.lanes(kind.dtype))
    vectors = largest_divisor(width // lanes, MOST_VECTORS)
    tile = replace(_tile(rows, 2 * panels * width, kind.dtype, target, vectors), lanes=lanes)
    blocking = Quartered(rows, 2 * terms, 2 * panels * width, width, tile, kind.dtype, target)
    tiles = math.ceil(blocking.half / tile.rows) * blocking.columns / 2 / tile.columns
    samples = elements_of(kind.shape[:-2])
    cost = blocking.cost(samples, PRODUCTS * tiles * terms * step_cycles(tile.rows, tile.vectors, target.fma_per_cycle))
    made = StrassenProduct(blocking)
    strategy = OpStrategy()
    strategy.add_implementation(made.compute, made.schedule, "strassen_matmul.panels", cost=cost, direct=False)
    return strategy


def _tile(rows: int, columns: int, kind: DType, target: Target, vectors: int | None = None) -> RegisterTile:
    """The register tile of a quarter; ``vectors`` is its width, if that is given."""
    half = (rows + 1) // 2, columns // 2
    return register_tile(*half, target, kind, vectors=vectors, streaming=STREAMING, steps=CORE.steps_unrolled)


# 6. and 7. Who calls it.


def strassen_candidates(product: MatrixProduct, target: Target) -> Iterator[LayoutCandidate]:
    """The layout candidate of samples by a constant matrix of floats, whose halves fill vectors."""
    left, kind = product.left, product.result.dtype
    rows = 0 if left.ndim < 3 else const_int(left.shape[-2]) or 0
    if not kind.is_float or kind.storage_bits < 32 or left.dtype is not kind or rows < 2:
        return
    width = _tile(rows, product.columns, kind, target).columns
    if product.columns % (2 * width) == 0 and product.reduction_extent % (2 * target.lanes(kind)) == 0:
        make = Planes(width, product.transposed)
        packed = Packed(make, make.type_of(product.reduction_extent, product.columns, kind))
        yield LayoutCandidate((None, packed), None, None, STRASSEN_MATMUL)


def strassen_matmul(a: Node, planes: Node) -> Call:
    """a · b of a matrix b whose quarters are summed in ``planes``."""
    return STRASSEN_MATMUL(a, planes)
