"""string_matches: whether an automaton, which is a constant, matches whole strings."""

from __future__ import annotations

from collections.abc import Sequence

from .... import te
from ....base.dtype import BOOL
from ....graph.node import Call, Constant, Node
from ....graph.types import TensorType, Type
from ....ir.buffer import Buffer
from ....ir.builder import IRBuilder
from ....ir.makers import as_index
from ....ir.stmt import Stmt
from ....te.tensor import Tensors
from ...definition.registry import OpPattern, register_op
from ...definition.strategy import register_compute
from .automaton import automaton_of
from .pieces import TABLES, check_tables, next_state
from .text import Text, string_types


def _relation(types: Sequence[Type], attrs: None) -> Type:
    spans = string_types(types)
    check_tables(types)
    return TensorType(spans.shape, BOOL)


def _compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        spans, utf8, steps, accepts, matches = map(ib.buffer_ptr, (*ins, *outs))
        text = Text(ib, spans, utf8)
        with text.each_string() as place:
            whole = text.piece(place)
            state, at = ib.allocate("index", (), "state"), ib.allocate("index", (), "at")
            state[()], at[()] = as_index(0), whole.begin
            with ib.while_loop((at[()] < whole.end) & (state[()] >= 0)):
                state[()] = next_state(steps, state[()], text.utf8[at[()]])
                at[()] = at[()] + 1
            matches[place] = (state[()] >= 0) & accepts[te.maximum(state[()], 0)]
        return ib.get()

    return te.extern(inputs[0].shape, inputs, body, name="string_matches", dtype="bool")


STRING_MATCHES = register_op(
    "string_matches",
    "whether an automaton matches each string as a whole",
    TABLES,
    _relation,
    OpPattern.OPAQUE,
)
register_compute(STRING_MATCHES, _compute)


def string_matches(spans: Node, utf8: Node, pattern: str) -> Call:
    """Whether a regular expression in RE2's syntax matches each string as a whole, as bool. ``spans`` are int64
    (``base/spans.py``), ``utf8`` the bytes that they are of. Raises ``ExpressionError`` for a pattern that is none, or
    has what is not supported: word boundaries, and anchors of lines."""
    automaton = automaton_of(pattern)
    return STRING_MATCHES(spans, utf8, Constant(automaton.steps), Constant(automaton.accepts))
