"""Operators that write to the state of a model where it lies: append_rows, write_rows.

With ``in_place`` they write what is new, and nothing else: the memory of the result is that of ``x``, which is so of
the states of a model only (``compiler/passes/keep_states.py``). Without, they are what these calls mean anywhere: all
of ``x`` is copied first.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import IRBuilder
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ir.stmt import Stmt
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import same_dtype, same_extent, tensor_argument
from ..definition.strategy import register_compute
from .element_copies import copy_elements, index_of
from .scatter import TensorScatterAttrs, tensor_scatter_relation

GROUP = OpGroup.PARTS
IN_PLACE = "whether the memory of the result holds x already: only what is new is written then"


@dataclass(frozen=True)
class AppendRowsAttrs(Attrs):
    """The attributes of ``append_rows``."""

    in_place: bool = attr(IN_PLACE, False)


@dataclass(frozen=True)
class WriteRowsAttrs(TensorScatterAttrs):
    """The attributes of ``write_rows``."""

    in_place: bool = attr(IN_PLACE, False)


def _append_relation(types: Sequence[Type], attrs: AppendRowsAttrs) -> Type:
    x, rows = (tensor_argument(kind, name) for kind, name in zip(types, ("x", "rows"), strict=True))
    same_dtype([x, rows], ["x", "rows"])
    if not x.ndim or x.ndim != rows.ndim:
        raise TypeInferenceError(f"rows of rank {rows.ndim} cannot follow those of {x}")
    pairs = zip(x.shape[1:], rows.shape[1:], strict=True)
    rest = [same_extent(a, b, f"x is {x}, but rows are {rows}") for a, b in pairs]
    return TensorType((simplify(x.shape[0] + rows.shape[0]), *rest), x.dtype)


def _append_compute(attrs: AppendRowsAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x, rows = inputs

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        source, new = map(ib.buffer_ptr, ins)
        target = ib.buffer_ptr(outs[0])
        if not attrs.in_place:
            copy_elements(ib, target, source, lambda position: position)
        copy_elements(ib, target, new, lambda at: (source.shape[0] + at[0], *at[1:]))
        return ib.get()

    shape = tensor_argument(result, "result").shape
    return te.extern(shape, [x, rows], body, name="append_rows", dtype=x.dtype)


def _write_compute(attrs: WriteRowsAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    data, updates, starts = inputs
    axis, extent = attrs.axis, data.shape[attrs.axis]

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        source, new, firsts = map(ib.buffer_ptr, ins)
        target = ib.buffer_ptr(outs[0])
        if not attrs.in_place:
            copy_elements(ib, target, source, lambda position: position)
        outer, inner = new.shape[: axis + 1], new.shape[axis + 1 :]
        with ib.for_range(0, extent_of(outer), name="row") as row:
            where = index_of(row, outer)
            at = ib.let("at", as_index(firsts[where[0]]) + where[axis])
            number = at % te.maximum(extent, 1) if attrs.circular else at
            inside = where[axis] < extent if attrs.circular else (at >= 0) & (at < extent)
            with ib.if_scope(inside), ib.for_range(0, extent_of(inner), name="k") as k:
                rest = index_of(k, inner)
                target[(*where[:axis], number, *rest)] = new[(*where, *rest)]
        return ib.get()

    return te.extern(data.shape, [data, updates, starts], body, name="write_rows", dtype=data.dtype)


APPEND_ROWS = register_op(
    "append_rows",
    "x, and rows behind it along its first axis",
    [("x", "any shape of rank 1 or more"), ("rows", "of the shape of x, but for the first extent")],
    _append_relation,
    OpPattern.OPAQUE,
    AppendRowsAttrs,
    support_level=10,
)
WRITE_ROWS = register_op(
    "write_rows",
    "data with updates written along an axis, from a start that each sample has of its own",
    [
        ("data", "any shape, samples first"),
        ("updates", "of the shape of data, but for the extent along the axis"),
        ("starts", "integers, one for each sample"),
    ],
    tensor_scatter_relation,
    OpPattern.OPAQUE,
    WriteRowsAttrs,
    support_level=10,
)
register_compute(APPEND_ROWS, _append_compute)
register_compute(WRITE_ROWS, _write_compute)
