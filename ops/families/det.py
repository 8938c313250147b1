"""det: the determinants of square matrices, by elimination with the largest element of a column as the pivot.

Source: Golub and Van Loan, "Matrix Computations", section 3.4. Which row is the pivot depends on the data, so that each
matrix is eliminated in a copy, by loops of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.expr import Expr, Var
from ...ir.makers import as_index
from ...ir.row_major import unravel_index
from ...ir.stmt import Stmt
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import FLOAT_KINDS, same_extent, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.PRODUCTS


def _relation(types: Sequence[Type], attrs: None) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"x must be of {', '.join(FLOAT_KINDS)}, found {x.dtype}")
    problem = f"x must be one or several square matrices, found {x}"
    if x.ndim < 2:
        raise TypeInferenceError(problem)
    same_extent(x.shape[-1], x.shape[-2], problem)
    return TensorType(x.shape[:-2], x.dtype)


def _compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        lead, n = x.shape[:-2], x.shape[-1]
        with ib.for_range(0, extent_of(lead), name="matrix", kind="parallel") as number:
            place = unravel_index(number.as_expr(), lead) if lead else ()
            kind = accumulator(x.dtype)
            rows = ib.allocate(kind, (n, n), name="rows")
            product = ib.allocate(kind, (as_index(1),), name="product")
            with ib.for_range(0, n, name="i") as i, ib.for_range(0, n, name="j") as j:
                rows[i, j] = te.cast(source[(*place, i, j)], kind)
            product[0] = te.const(1.0, kind)
            with ib.for_range(0, n, name="k") as k:
                _choose_pivot(ib, rows, product, n, k)
                _eliminate(ib, rows, n, k)
                product[0] = product[0] * rows[k, k]
            target[place] = te.cast(product[0], x.dtype)
        return ib.get()

    return te.extern(x.shape[:-2], [x], body, name="det", dtype=x.dtype)


def _choose_pivot(ib: IRBuilder, rows: BufferPtr, product: BufferPtr, n: Expr, k: Var) -> None:
    """Exchange row k for the one at or below it whose element in column k is the largest."""
    pivot = ib.allocate("int64", (as_index(1),), name="pivot")
    pivot[0] = te.cast(k, "int64")
    with (
        ib.for_range(k + 1, n, name="i") as i,
        ib.if_scope(te.abs(rows[i, k]) > te.abs(rows[te.cast(pivot[0], "index"), k])),
    ):
        pivot[0] = te.cast(i, "int64")
    with ib.if_scope(te.cast(pivot[0], "index") > k):
        product[0] = -product[0]
        with ib.for_range(k, n, name="j") as j:
            kept = ib.allocate(rows.dtype, (as_index(1),), name="kept")
            other = te.cast(pivot[0], "index")
            kept[0] = rows[k, j]
            rows[k, j] = rows[other, j]
            rows[other, j] = kept[0]


def _eliminate(ib: IRBuilder, rows: BufferPtr, n: Expr, k: Var) -> None:
    """Take row k, as often as makes column k 0, from those below it. A pivot of 0 has nothing below it."""
    with ib.if_scope(rows[k, k] != te.const(0.0, rows.dtype)), ib.for_range(k + 1, n, name="i") as i:
        factor = ib.allocate(rows.dtype, (as_index(1),), name="factor")
        factor[0] = rows[i, k] / rows[k, k]
        with ib.for_range(k + 1, n, name="j") as j:
            rows[i, j] = rows[i, j] - factor[0] * rows[k, j]


DET = register_op(
    "det",
    "the determinants of square matrices",
    [("x", "[…, n, n]")],
    _relation,
    OpPattern.OPAQUE,
    support_level=5,
)
register_compute(DET, _compute)


def det(x: Node) -> Call:
    """``numpy.linalg.det`` of the last two axes; 1 of matrices without elements."""
    return DET(x)
