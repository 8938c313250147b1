"""nonzero: the indices of all elements that are not 0. How many there are is counted first, and becomes an extent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import te
from ...base.dtype import INT64
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Constant, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import ONE
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.row_major import unravel_index
from ...ir.stmt import Stmt
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import register_compute
from .binary import not_equal
from .born_extents import born_extents
from .cast import cast
from .reduce import sum as sum_of
from .reshape import reshape

GROUP = OpGroup.PARTS


def _relation(types: Sequence[Type], attrs: None) -> Type:
    x, count = tensor_argument(types[0], "x"), tensor_argument(types[1], "count")
    if x.ndim == 0:
        raise TypeInferenceError("x must have rank 1 or more: reshape a number to a vector of one element first")
    if count.ndim != 1:
        raise TypeInferenceError(f"count must have one axis, as long as there are indices, found {count}")
    return TensorType((as_index(x.ndim), count.shape[0]), INT64)


def _compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    x, _ = inputs
    shape = tensor_argument(result, "result").shape

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        _fill(ib, ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), shape[1])
        return ib.get()

    return te.extern(shape, [x], body, name="nonzero", dtype="int64")


def _fill(ib: IRBuilder, source: BufferPtr, target: BufferPtr, count: Expr) -> None:
    """One after the other, since each index stands behind those before it. The number of each element is written where
    the next index stands, and stays there if the element is not 0: so nothing has to be predicted of the elements. The
    indices along all axes are made of these numbers."""
    found = ib.allocate("int64", (ONE,), name="found")
    found[0] = te.const(0, "int64")
    with ib.for_range(0, extent_of(source.shape), name="k") as k, ib.if_scope(as_index(found[0]) < count):
        target[0, as_index(found[0])] = te.cast(k, "int64")
        element = source[unravel_index(k, source.shape)]
        is_there = element if source.dtype.is_bool else element != te.const(0, source.dtype)
        found[0] = found[0] + te.cast(is_there, "int64")
    if len(source.shape) > 1:
        with ib.for_range(0, count, name="column") as column:
            number = ib.let("number", as_index(target[0, column]))
            for axis, index in enumerate(unravel_index(number, source.shape)):
                target[axis, column] = te.cast(index, "int64")


NONZERO = register_op(
    "nonzero",
    "the indices of all elements that are not 0, in order, a column each",
    [("x", "rank 1 or more"), ("count", "a tensor as long as there are such elements, which is not read")],
    _relation,
    OpPattern.OPAQUE,
)
register_compute(NONZERO, _compute)


def nonzero(x: Node) -> Call:
    """The indices of all elements of x that are not 0, NaN among them, as int64[rank, n], row by row as they lie in
    memory. How many there are, n, each run counts. A number is taken for a vector of one element."""
    if tensor_of(x).ndim == 0:
        x = reshape(x, (1,))
    kind = tensor_of(x).dtype
    is_there = x if kind.is_bool else not_equal(x, Constant(np.zeros((), kind.to_numpy())))
    count = reshape(sum_of(cast(is_there, "int64")), (1,))
    return NONZERO(x, born_extents(count, ["nonzero"], "the number of elements that are not 0"))
