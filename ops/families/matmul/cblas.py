"""Products of matrices by BLAS, offered for targets with ``-libs=cblas``: nn.matmul, nn.dense and nn.batch_matmul.

The product is cut into blocks, which run on our own thread pool, each by one call of gemm; elementwise operators that
follow run after it. BLAS stores matrices by columns: a matrix of ours is to it the transposed one, so that C = A · B is
asked for as Cᵀ = Bᵀ · Aᵀ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import TensorType, Type
from ....ir.buffer import Buffer
from ....ir.build import make_buffer
from ....ir.constants import ONE, ZERO, const_int
from ....ir.expr import Expr
from ....ir.extern import Region, extern_function
from ....ir.makers import maximum, minimum
from ....ir.open_extents import LONG
from ....ir.simplify import simplify
from ....ir.stmt import Stmt
from ....te.tensor import Tensors
from ...definition.condition import clause
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, schedule_default

LIBRARY = "cblas"
CBLAS_LEVEL = 20

TASK_OPERATIONS = 1 << 21
"""A block with fewer multiplications than this is not worth a thread of its own."""
MAX_TASKS = 16
MIN_BLOCK = 64
"""Narrower blocks have gemm copy one matrix for too little use."""
CUT_MULTIPLE = 16
"""Blocks are cut where the tiles of gemm end, on most machines."""

MAX_INT32 = (1 << 31) - 1
"""BLAS takes sizes as int."""

# The functions of BLAS.

Array = npt.NDArray[Any]


def _gemm(
    transa: int, transb: int, m: int, n: int, k: int, alpha: float, a: Array, lda: int, b: Array, ldb: int,
    beta: float, c: Array, ldc: int
) -> None:  # fmt: skip
    """What gemm computes, on matrices by rows, as their regions are: c = alpha * (b' @ a'), where beta is 0."""
    matrices: list[Array] = [x.reshape(x.shape[-2:]).astype(np.float64) for x in (b, a, c)]
    left, right, result = matrices
    left = left if transb == _PLAIN else left.T
    right = right if transa == _PLAIN else right.T
    assert beta == 0
    assert [left.shape, right.shape, result.shape] == [(n, k), (k, m), (n, m)]
    c[...] = (alpha * (left @ right)).reshape(c.shape)


_PLAIN, _TRANSPOSED = ord("N"), ord("T")


def _declare(symbol: str, kind: str) -> te.ExternFunction:
    flags, sizes = ["reference int8"] * 2, ["reference int32"] * 3
    number, matrix, leading = f"reference {kind}", f"read {kind}", "reference int32"
    params = [*flags, *sizes, number, matrix, leading, matrix, leading, number, f"write {kind}", leading]
    return extern_function(symbol, params, _gemm)


GEMM = {"float32": _declare("sgemm_", "float32"), "float64": _declare("dgemm_", "float64")}

# The implementation.


@dataclass(frozen=True, slots=True, eq=False)
class GemmFactor:
    """``batch`` matrices in one memory, of ``rows`` × ``columns`` as they are multiplied; they are stored the other way
    round if ``transposed``."""

    batch: tuple[Expr, ...]
    rows: Expr
    columns: Expr
    transposed: bool = False

    def view(self, buffer: Buffer) -> Buffer:
        """The memory of a tensor as [matrices, rows, columns], as the matrices are stored."""
        stored = (self.columns, self.rows) if self.transposed else (self.rows, self.columns)
        return make_buffer(buffer.name, (_product(self.batch), *stored), buffer.dtype, data=buffer.data)

    def block(self, view: Buffer, at: Expr, begin: tuple[Expr, Expr], extents: tuple[Expr, Expr]) -> Region:
        """The region of a block of matrix number ``at``; begin and extents are rows and columns as they are
        multiplied."""
        turn = -1 if self.transposed else 1
        return Region(view, (at, *begin[::turn]), (ONE, *extents[::turn]))

    @property
    def leading(self) -> Expr:
        """How far the stored rows are apart, which BLAS wants to be at least 1."""
        return simplify(maximum(self.rows if self.transposed else self.columns, ONE))


@dataclass(frozen=True, slots=True, eq=False)
class BlasProduct:
    """a · b for each matrix of the result's ``batch``, in blocks of rows and columns."""

    name: str
    a: GemmFactor
    b: GemmFactor
    batch: tuple[Expr, ...]

    def compute(self, attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
        """The result as an extern, whose loops over blocks call gemm."""
        kind = tensor_argument(result, "result")
        return te.extern(kind.shape, list(inputs), self._body, self.name, kind.dtype)

    def _body(self, ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = te.IRBuilder()
        rows, columns, reduction_extent = self.a.rows, self.b.columns, self.a.columns
        result = GemmFactor(self.batch, rows, columns)
        a, b, c = (x.view(buffer) for x, buffer in zip((self.a, self.b, result), (*ins, *outs), strict=True))
        block = _block(self.batch, rows, columns, reduction_extent)
        down, across = (
            simplify((extent + (size - 1)) // size) for extent, size in zip((rows, columns), block, strict=True)
        )
        tasks = simplify(_product(self.batch) * down * across)
        flags = [_flag(x.transposed) for x in (self.b, self.a)]
        with ib.for_range(0, tasks, name="task", kind="serial" if const_int(tasks) == 1 else "parallel") as task:
            at = task // (down * across)
            row, column = task // across % down * block[0], task % across * block[1]
            height, width = minimum(block[0], rows - row), minimum(block[1], columns - column)
            ib.call(
                GEMM[str(c.dtype)],
                *flags, width, height, reduction_extent, 1.0,
                self.b.block(b, self._matrix(self.b, at), (ZERO, column), (reduction_extent, width)), self.b.leading,
                self.a.block(a, self._matrix(self.a, at), (row, ZERO), (height, reduction_extent)), self.a.leading,
                0.0, result.block(c, at, (row, column), (height, width)), result.leading,
            )  # fmt: skip
        return ib.get()

    def _matrix(self, operand: GemmFactor, at: Expr) -> Expr:
        """Which of an operand's matrices is multiplied for number ``at`` of the result: batch axes broadcast."""
        position, step, stride = ZERO, ONE, ONE
        own = (ONE,) * (len(self.batch) - len(operand.batch)) + operand.batch
        for extent, kept in zip(reversed(self.batch), reversed(own), strict=True):
            if const_int(kept) != 1:
                position = position + at // step % extent * stride
                stride = stride * kept
            step = step * extent
        return simplify(position)


def _flag(transposed: bool) -> int:
    return _TRANSPOSED if transposed else _PLAIN


def add_cblas(
    strategy: OpStrategy,
    inputs: Sequence[Type],
    result: Type,
    target: Target,
    name: str,
    transposed_a: bool = False,
    transposed_b: bool = False,
) -> None:
    """Offer BLAS for a product, under the rules of nn.matmul for ranks, where the target has it and it can serve."""
    if LIBRARY not in target.libs:
        return
    a, b = (tensor_argument(t, "operand") for t in inputs)
    kind = tensor_argument(result, "result")
    left, right = _operand(a, transposed_a, is_left=True), _operand(b, transposed_b, is_left=False)
    batch = kind.shape[: kind.ndim - (a.ndim > 1) - (b.ndim > 1)]
    if not transposed_a and _same(batch, left.batch) and all(const_int(extent) == 1 for extent in right.batch):
        left = GemmFactor((), simplify(_product(batch) * left.rows), left.columns)  # one tall matrix
        right, batch = replace(right, batch=()), ()
    product = BlasProduct(f"{name}.cblas", left, right, batch)
    served = str(a.dtype) in GEMM and a.dtype is b.dtype and a.dtype is kind.dtype
    sizes = (left.columns, right.columns, *([left.rows] if transposed_a else []))  # of a block, and between its rows
    limits = [extent <= MAX_INT32 for extent in dict.fromkeys(sizes)]
    with strategy.specialized(clause("float32 or float64 throughout", served), left.columns >= 1, *limits):
        strategy.add_implementation(product.compute, schedule_default, product.name, CBLAS_LEVEL, keeps_order=False)


def _operand(kind: TensorType, transposed: bool, *, is_left: bool) -> GemmFactor:
    """An argument as matrices: a vector counts as a row on the left, and as a column on the right."""
    if kind.ndim == 1:
        shape = (ONE, kind.shape[0]) if is_left else (kind.shape[0], ONE)
        return GemmFactor((), *shape)
    rows, columns = kind.shape[-2:][:: -1 if transposed else 1]
    return GemmFactor(kind.shape[:-2], rows, columns, transposed)


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _product(extents: Sequence[Expr]) -> Expr:
    return simplify(math.prod(extents, start=ONE))


def _block(batch: Sequence[Expr], rows: Expr, columns: Expr, reduction_extent: Expr) -> tuple[int, int]:
    """Rows and columns of one call's result. The longer side is cut, so that what the calls share is small; where
    depends on shapes alone, so that results do not depend on the number of threads."""
    height, width, depth = (const_int(e) or LONG for e in (rows, columns, reduction_extent))
    matrices = math.prod(const_int(e) or 1 for e in batch)
    longer = max(height, width)
    tasks = min(MAX_TASKS // min(matrices, MAX_TASKS), height * width * depth // TASK_OPERATIONS, longer // MIN_BLOCK)
    if tasks <= 1:
        return height, width
    size = -(-longer // (tasks * CUT_MULTIPLE)) * CUT_MULTIPLE
    return (size, width) if height >= width else (height, size)
