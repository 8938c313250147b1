"""Products of matrices: what a call of one is, and what its implementations share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import TensorType, Type
from ....ir.constants import ZERO, const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.open_extents import MANY_ROWS
from ....schedules.blocks import largest_divisor
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile, step_cycles
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import accumulator
from ...definition.cost import elements_of, moved
from ...definition.implementation import Stages
from ...definition.relations import tensor_argument

FEW_ROWS = 4
"""For so few rows, the right factor is read where it lies: a copy would cost more than it saves."""
TERM_BY_TERM = "term by term"
"""The order of the sums, with any tile: each is in one lane from the first term to the last."""
RightLayout: TypeAlias = Literal["rows", "columns", "panels"]
"""How a right factor is read: as [batch…, K, N], as [batch…, N, K], or as panels [tiles, K, width]."""


def in_order(result: Type) -> str | None:
    """The order of the sums of a definition's own schedule, for floats, and for a result whose dtype they have."""
    kind = tensor_argument(result, "result").dtype
    return TERM_BY_TERM if kind.is_float or accumulator(kind) is kind else None


def right_layout(transposed: bool) -> RightLayout:
    """The layout of a right factor that is [batch…, N, K] if ``transposed``, else [batch…, K, N]."""
    return "columns" if transposed else "rows"


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """[…, M, K] · [batch…, K, N], or · [batch…, N, K] if ``transposed``, without extents of 0. The compute
    reads the left factor as [batch…, K, M] if ``left_transposed``; its type is by rows all the same. If it
    ``joins_rows``, the left factor and the result are those of one matrix that has the rows of several."""

    left: TensorType
    right: TensorType
    result: TensorType
    transposed: bool
    left_transposed: bool = False
    joins_rows: bool = False

    @property
    def rows(self) -> int:
        """The rows of one matrix of the result, M; ``MANY_ROWS`` where that is not known."""
        return const_int(self.left.shape[-2]) or MANY_ROWS

    @property
    def batch(self) -> int:
        """How many matrices there are on the left."""
        return math.prod(const_int(extent) or 1 for extent in self.result.shape[:-2])

    @property
    def is_open(self) -> bool:
        """Whether the columns or the terms of a sum are known to a run only."""
        return None in (const_int(self.result.shape[-1]), const_int(self.left.shape[-1]))

    @property
    def columns(self) -> int:
        """The columns of the result, N; ``MANY_ROWS`` where that is open."""
        return const_int(self.result.shape[-1]) or MANY_ROWS

    @property
    def reduction_extent(self) -> int:
        """The extent of the reduction, K; ``MANY_ROWS`` where that is open."""
        return const_int(self.left.shape[-1]) or MANY_ROWS

    @property
    def right_bytes(self) -> int:
        """Memory of one matrix on the right."""
        return self.reduction_extent * self.columns * self.right.dtype.storage_bytes

    def cycles(self, tile: RegisterTile, rate: int = CORE.full_rate) -> float:
        """What all steps of all tiles take, if ``rate`` vectors are multiplied in a cycle."""
        tiles = math.ceil(self.rows / tile.rows) * math.ceil(self.columns / tile.columns)
        return (
            elements_of(self.result.shape[:-2])
            * tiles
            * self.reduction_extent
            * step_cycles(tile.rows, tile.vectors, rate)
        )

    def moved(self) -> float:
        """What it takes to go through all factors and the result once."""
        return moved([self.left, self.right, self.result])


@dataclass(frozen=True, slots=True)
class ProductStages(Stages):
    """The stages of a product: its ``sums``, and the two factors that these read."""

    sums: Tensor
    left: Tensor
    right: Tensor


class ProductCompute(Protocol):
    """The compute of a product of two factors."""

    def __call__(self, attrs: Any, inputs: Tensors, result: Type) -> ProductStages: ...


def matrix_product(
    inputs: Sequence[Type], result: Type, transposed: bool, left_transposed: bool = False
) -> MatrixProduct | None:
    """The product of matrices that a call is, if it is one that there are implementations for."""
    left, right, kind = (tensor_argument(t, "operand") for t in (*inputs, result))
    if left.ndim < 2 or right.ndim < 2 or 0 in map(const_int, (*kind.shape, left.shape[-1])):
        return None
    return MatrixProduct(left, right, kind, transposed, left_transposed)


def few_rows_tile(product: MatrixProduct, target: Target) -> RegisterTile:
    """A tile for rows too few to copy the right factor for: full ones, if that can be; open ones are rounded up."""
    lanes, sums = target.lanes(product.result.dtype), target.vector_registers // 2
    known = const_int(product.left.shape[-2])
    rows = FEW_ROWS if known is None else largest_divisor(known, FEW_ROWS)
    return RegisterTile(rows, largest_divisor(math.ceil(product.columns / lanes), sums // (rows + 1)), lanes)


def batch_index(shape: Sequence[Expr], axes: Sequence[Axis]) -> tuple[Expr, ...]:
    """The batch axes that an operand of this batch shape has; those that it stretches are read at 0."""
    used = axes[len(axes) - len(shape) :]
    return tuple(ZERO if const_int(extent) == 1 else as_index(axis) for axis, extent in zip(used, shape, strict=True))


def apart(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Two factors as two tensors: where one is multiplied by itself, a schedule copies one of the two only."""
    return left, te.compute(right.shape, lambda *i: left[i], name="right") if right is left else right


def sum_of_products(
    left: Tensor,
    right: Tensor,
    layout: RightLayout,
    kind: TensorType,
    multiply: Callable[[Expr, Expr], Expr],
    name: str = "matmul.sums",
) -> Tensor:
    """The sums, of type ``kind``, of what ``multiply`` makes of the factors of a left operand [batch…, M, K] and of a
    right one, which is stored in a layout of its own."""
    r = te.reduce_axis((0, left.shape[-1]), name="k")

    def element(*axes: Axis) -> Expr:
        *outer, row, column = axes
        match layout:
            case "rows":
                factor = right[(*batch_index(right.shape[:-2], outer), r, column)]
            case "columns":
                factor = right[(*batch_index(right.shape[:-2], outer), column, r)]
            case "panels":
                factor = right[column // right.shape[-1], r, column % right.shape[-1]]
        return te.sum(multiply(left[(*batch_index(left.shape[:-2], outer), row, r)], factor), axis=r)

    return te.compute(kind.shape, element, name=name)
