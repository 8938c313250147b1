"""string_concat: strings behind strings, as new bytes. How many these are is summed first, and becomes an extent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .... import te
from ....base.dtype import INT64, UINT8
from ....base.errors import TypeInferenceError
from ....base.spans import LENGTHS
from ....graph.node import Constant, Node, TupleGet
from ....graph.types import TensorType, TupleType, Type
from ....ir.buffer import Buffer
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.makers import as_index
from ....ir.row_major import unravel_index
from ....ir.stmt import Stmt
from ....schedules.rows import extent_of
from ....te.tensor import Tensors
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import register_compute
from ..binary import add, bitwise_and
from ..born_extents import born_extents
from ..reduce import sum as sum_of
from ..reshape import reshape
from .text import Piece, Text, broadcast_spans, shape_of_both


def _relation(types: Sequence[Type], attrs: None) -> Type:
    shape, size = shape_of_both(types), tensor_argument(types[4], "size")
    if size.ndim != 1:
        raise TypeInferenceError(f"size must have one axis, as long as there are bytes, found {size}")
    return TupleType((TensorType(shape, INT64), TensorType(size.shape, UINT8)))


def _compute(attrs: None, inputs: Tensors, result: Type) -> Tensors:
    *strings, size = inputs

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        a_spans, a_utf8, b_spans, b_utf8, spans, utf8 = map(ib.buffer_ptr, (*ins, *outs))
        a, b = Text(ib, a_spans, a_utf8), Text(ib, b_spans, b_utf8)
        written = ib.allocate("index", (), "written")
        written[()] = as_index(0)
        with ib.for_range(0, extent_of(spans.shape), name="string") as number:
            place = unravel_index(number, spans.shape)
            begin = ib.let("first", written[()]).as_expr()
            for text in (a, b):
                _append(text, text.piece(place), utf8, written)
            spans[place] = Piece(begin, written[()]).span
        with ib.for_range(written[()], utf8.shape[0], name="rest") as rest:
            utf8[rest] = te.const(0, UINT8)
        return ib.get()

    return te.extern([strings[0].shape, size.shape], strings, body, name="string_concat", dtype=[INT64, UINT8])


def _append(text: Text, piece: Piece, utf8: BufferPtr, written: BufferPtr) -> None:
    """Copy a string, as far as there is room."""
    ib = text.builder
    count = ib.let("count", te.minimum(piece.length, utf8.shape[0] - written[()])).as_expr()
    with ib.for_range(0, count, name="byte") as k:
        utf8[written[()] + k] = text.utf8[piece.begin + k]
    written[()] = written[()] + count


STRING_CONCAT = register_op(
    "string_concat",
    "strings of a, each with one of b behind it: their spans and bytes",
    [
        ("a", "spans"),
        ("a_utf8", "their bytes"),
        ("b", "spans, as many"),
        ("b_utf8", "their bytes"),
        ("size", "a tensor as long as there are bytes in all, which is not read"),
    ],
    _relation,
    OpPattern.OPAQUE,
)
register_compute(STRING_CONCAT, _compute)


def string_concat(a: Node, a_utf8: Node, b: Node, b_utf8: Node) -> tuple[Node, Node]:
    """Strings of ``a``, each with one of ``b`` behind it: their spans, int64, and bytes, uint8. ``a`` and ``b`` are
    spans, and are broadcast. How many bytes there are each run counts."""
    x, y = broadcast_spans(a, b)
    found = STRING_CONCAT(
        x, a_utf8, y, b_utf8, born_extents(_bytes_in(x, y), ["string_concat"], "the bytes of strings")
    )
    return TupleGet(found, 0), TupleGet(found, 1)


def _bytes_in(a: Node, b: Node) -> Node:
    """How many bytes strings have together, as a vector of one number."""
    mask = Constant(np.array(LENGTHS, np.int64))
    return reshape(sum_of(add(bitwise_and(a, mask), bitwise_and(b, mask))), (1,))
