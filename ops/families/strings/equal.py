"""string_equal: whether strings are the same, byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

from .... import te
from ....base.dtype import BOOL
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type
from ....ir.buffer import Buffer
from ....ir.builder import IRBuilder
from ....ir.stmt import Stmt
from ....te.tensor import Tensors
from ...definition.registry import OpPattern, register_op
from ...definition.strategy import register_compute
from .text import Text, broadcast_spans, shape_of_both


def _relation(types: Sequence[Type], attrs: None) -> Type:
    shape = shape_of_both(types)
    return TensorType(shape, BOOL)


def _compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        a_spans, a_utf8, b_spans, b_utf8, same = map(ib.buffer_ptr, (*ins, *outs))
        a, b = Text(ib, a_spans, a_utf8), Text(ib, b_spans, b_utf8)
        with a.each_string() as place:
            same[place] = a.equals(a.piece(place), b, b.piece(place))
        return ib.get()

    return te.extern(inputs[0].shape, inputs, body, name="string_equal", dtype="bool")


STRING_EQUAL = register_op(
    "string_equal",
    "whether strings are the same",
    [("a", "spans"), ("a_utf8", "their bytes"), ("b", "spans, as many"), ("b_utf8", "their bytes")],
    _relation,
    OpPattern.OPAQUE,
)
register_compute(STRING_EQUAL, _compute)


def string_equal(a: Node, a_utf8: Node, b: Node, b_utf8: Node) -> Call:
    """Whether strings are the same, byte by byte, as bool. ``a`` and ``b`` are spans, int64, and are broadcast;
    ``a_utf8`` and ``b_utf8`` their bytes, vectors of uint8."""
    x, y = broadcast_spans(a, b)
    return STRING_EQUAL(x, a_utf8, y, b_utf8)
