"""Products of matrices with the right factor in panels, as wide as a register tile: what floats and bytes share.

    sums[batch…, row, tile, column] = Σ left[batch…, row, t] · panels[batch…, tile, t, column]

``paneled.py`` and ``int8.py`` say what is multiplied; ``schedules/tiling.py`` schedules it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .... import te
from ....base.target import Target
from ....graph.types import TensorType, Type
from ....ir.constants import ZERO, const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.open_extents import MANY_ROWS
from ....ir.simplify import simplify
from ....lowering.schedule import Schedule
from ....schedules.blocks import largest_divisor
from ....schedules.product import schedule_product
from ....schedules.register_tile import FULL_RATE, RegisterTile, step_cycles
from ....te.tensor import Tensor, Tensors
from ...definition.cost import elements_of, moved
from ...definition.relations import tensor_argument

FEW_ROWS = 4
"""For so few rows, the right factor is read where it lies: a copy would cost more than it saves."""
ROWS = "matmul.rows"
"""The name of the stage that has the left factor's rows: a copy, or inlined."""
RightFactor: TypeAlias = Callable[[Sequence[Axis], Axis, Expr], Expr]
"""The right factor, element by element: batch axes, term, column → value."""


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """[…, M, K] · [batch…, K, N], or · [batch…, N, K] if ``transposed``, with known K and N, at least 1."""

    left: TensorType
    right: TensorType
    result: TensorType
    transposed: bool

    @property
    def rows(self) -> int:
        return const_int(self.left.shape[-2]) or MANY_ROWS

    @property
    def batch(self) -> int:
        """How many matrices there are on the left."""
        return math.prod(const_int(extent) or 1 for extent in self.result.shape[:-2])

    @property
    def columns(self) -> int:
        return const_int(self.result.shape[-1]) or 0

    @property
    def terms(self) -> int:
        return const_int(self.left.shape[-1]) or 0

    @property
    def right_bytes(self) -> int:
        """Memory of one matrix on the right."""
        return self.terms * self.columns * self.right.dtype.storage_bytes

    def cycles(self, tile: RegisterTile, rate: int = FULL_RATE) -> float:
        """What all steps of all tiles take, if ``rate`` vectors are multiplied in a cycle."""
        tiles = math.ceil(self.rows / tile.rows) * math.ceil(self.columns / tile.columns)
        return elements_of(self.result.shape[:-2]) * tiles * self.terms * step_cycles(tile.rows, tile.vectors, rate)

    def moved(self) -> float:
        """What it takes to go through all factors and the result once."""
        return moved([self.left, self.right, self.result])


def matrix_product(inputs: Sequence[Type], result: Type, transposed: bool) -> MatrixProduct | None:
    """The product of matrices that a call is, if it is one that there are implementations for."""
    left, right, kind = (tensor_argument(t, "operand") for t in (*inputs, result))
    if left.ndim < 2 or right.ndim < 2 or 0 in [const_int(extent) for extent in kind.shape]:
        return None
    product = MatrixProduct(left, right, kind, transposed)
    return product if product.columns and product.terms else None


def few_rows_tile(product: MatrixProduct, target: Target) -> RegisterTile:
    """A tile for rows too few to copy the right factor for: full ones, if that can be."""
    lanes, sums = target.lanes(product.result.dtype), target.vector_registers // 2
    rows = largest_divisor(const_int(product.left.shape[-2]), FEW_ROWS)
    return RegisterTile(rows, largest_divisor(math.ceil(product.columns / lanes), sums // (rows + 1)), lanes)


def batch_index(shape: Sequence[Expr], axes: Sequence[Axis]) -> tuple[Expr, ...]:
    """The batch axes that an operand of this batch shape has; those that it stretches are read at 0."""
    used = axes[len(axes) - len(shape) :]
    return tuple(ZERO if const_int(extent) == 1 else as_index(axis) for axis, extent in zip(used, shape, strict=True))


def make_panels(right: RightFactor, batch: Sequence[Expr], terms: Expr, columns: Expr, width: int) -> Tensor:
    """[batch…, tiles, terms, width]; columns beyond the last one are 0."""
    tiles = simplify((columns + (width - 1)) // width)
    partial = const_int(simplify(columns % width)) != 0

    def panel(*axes: Axis) -> Expr:
        *outer, t, k, j = axes
        column = t * width + j
        value = right(outer, k, column)
        return te.if_then_else(column < columns, value, te.const(0, value.dtype)) if partial else value

    return te.compute((*batch, tiles, terms, width), panel, name="panels")


def sum_panels(left: Tensor, panels: Tensor, kind: TensorType, multiply: Callable[[Expr, Expr], Expr]) -> Tensor:
    """The sums for a result of type ``kind``, columns in tiles: [batch…, rows, tiles, width]."""
    *batch, tiles, terms, width = panels.shape
    r = te.reduce_axis((0, terms), name="k")

    def element(*axes: Axis) -> Expr:
        *outer, row, t, j = axes
        factor = left[(*batch_index(left.shape[:-2], outer), row, r)]
        return te.sum(multiply(factor, panels[(*batch_index(batch, outer), t, r, j)]), axis=r)

    return te.compute((*kind.shape[:-1], tiles, width), element, name="matmul.sums")


def sum_in_panels(inputs: Tensors, result: Type, width: int, transposed: bool) -> Tensor:
    """The product of two factors of floats, with panels of so many columns."""
    a, b = inputs
    kind = tensor_argument(result, "result")

    def right(batch: Sequence[Axis], k: Axis, column: Expr) -> Expr:
        return b[(*batch, column, k) if transposed else (*batch, k, column)]

    panels = make_panels(right, b.shape[:-2], a.shape[-1], kind.shape[-1], width)
    rows = te.compute(a.shape, lambda *i: a[i], name=ROWS)
    core = sum_panels(rows, panels, kind, lambda x, y: x * y)
    return te.compute(kind.shape, lambda *axes: read_sums(core, axes), name="matmul")


def schedule_panels(
    anchor: Tensors, pack: bool, outputs: Tensors, tile: RegisterTile, target: Target, keep: Sequence[Tensor] = ()
) -> Schedule:
    """Schedule the tensor that reads the sums; ``keep`` are stages that the caller schedules."""
    core = anchor[0].op.inputs[0]
    panels = next(t for t in core.op.inputs if t.op.name == "panels")
    shared = panels.ndim == 3  # all of the batch multiplies by one matrix
    batch = 0 if shared else core.ndim - 3
    return schedule_product(anchor[0], core, panels, batch, pack, outputs, tile, target, keep)


def read_sums(core: Tensor, axes: Sequence[Axis]) -> Expr:
    """The sum for an element of the result."""
    *outer, column = axes
    width = core.shape[-1]
    return core[(*outer, column // width, column % width)]
