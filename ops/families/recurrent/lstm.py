"""Long short-term memory: ``nn.lstm``, whose recurrence is the operator ``nn.lstm_steps``.

    i, o, f = σ(x + r h + p c), where the output gate has the new c    g = tanh(x + r h)
    c = f c + i g                                                       h = o tanh(c)

Source: Hochreiter and Schmidhuber (1997), with the peepholes p of Gers and Schmidhuber (2000), as ONNX's LSTM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import te
from ....base.dataclass import dataclass
from ....graph.node import Node, TupleGet, tensor_of
from ....graph.types import TupleType, Type
from ....ir.expr import Axis, Expr
from ....te.tensor import Tensors
from ...definition.accumulate import accumulator
from ...definition.arguments import flag, real
from ...definition.attrs import attr
from ...definition.registry import Op, OpPattern, register_op
from .attrs import ActivationLike, RecurrentAttrs, check_activations, parameters_of
from .sequences import Sequences, as_state, check_arguments, in_dtype, input_products
from .steps import (
    ARGUMENTS,
    CellStages,
    RecurrentStages,
    check_state,
    check_vector,
    first_state,
    input_gate,
    panels,
    products,
    recurrence_of,
    recurrence_type,
    register_steps,
)

GATES = 4
PEEPHOLES = 3
INPUT, OUTPUT, FORGET, CANDIDATE = range(GATES)
DEFAULT = ("Sigmoid", "Tanh", "Tanh")


@dataclass(frozen=True)
class LstmAttrs(RecurrentAttrs):
    """The attributes of ``nn.lstm_steps``."""

    input_forget: bool = attr("whether the forget gate is 1 minus the input gate", default=False)


def _relation(types: Sequence[Type], attrs: LstmAttrs) -> Type:
    check_activations(attrs, len(DEFAULT))
    made = recurrence_type(types, GATES)
    check_state(types[3], "c", made)
    if len(types) == 5:
        check_vector(types[4], "p", (PEEPHOLES, made.hidden), made)
    return TupleType((made.states_type, made.states_type))


def _compute(attrs: LstmAttrs, inputs: Tensors, result: Type) -> RecurrentStages:
    x, r, h0, c0 = inputs[:4]
    peepholes = inputs[4] if len(inputs) == 5 else None
    of = recurrence_of(x, r)
    h, c = (te.scan_state(of.states, of.dtype, name=f"lstm.{name}") for name in "hc")
    sums = products(of, r, lambda t, b, k: h[t - 1, b, k], 0, GATES, "lstm.products")

    def gate(number: int, activation: int, t: Axis, b: Axis, j: Axis, state: Expr | None = None) -> Expr:
        total = input_gate(of, x, number, t, b, j) + sums[t, b, number, j]
        seen = total if peepholes is None or state is None else total + peepholes[number, j] * state
        return attrs.gate(activation, seen)

    def new_cell(t: Axis, b: Axis, j: Axis) -> Expr:
        old = c[t - 1, b, j]
        i = gate(INPUT, 0, t, b, j, old)
        f = 1 - i if attrs.input_forget else gate(FORGET, 0, t, b, j, old)
        return f * old + i * gate(CANDIDATE, 1, t, b, j)

    cells = te.compute(of.states, new_cell, name="lstm.cell")

    def new_states(t: Axis, b: Axis, j: Axis) -> tuple[Expr, Expr]:
        new = cells[t, b, j]
        return gate(OUTPUT, 0, t, b, j, new) * attrs.activated(2, new), new

    step = te.compute(of.states, new_states, name="lstm.step")
    first = first_state(h0, of, "lstm.first_h"), first_state(c0, of, "lstm.first_c")
    states = te.scan(first, step, (h, c), name="lstm")
    return RecurrentStages(states[0], first, (CellStages(step[0], (sums,), (cells,)),), states[1:])


_C = ("c", "the cell before the first step, as h")


def _register(name: str, description: str, arguments: Sequence[tuple[str, str]]) -> Op:
    op = register_op(name, description, arguments, _relation, OpPattern.OPAQUE, LstmAttrs)
    register_steps(op, _compute)
    return op


LSTM_STEPS = _register(
    "nn.lstm_steps",
    "the states h and c of a long short-term memory, [time + 1, batch, hidden], with those before the first step; the "
    "gates are input, output, forget, candidate",
    [*ARGUMENTS, _C],
)
PEEPHOLE_LSTM_STEPS = _register(
    "nn.peephole_lstm_steps",
    "the states of nn.lstm_steps, of gates that see the cell",
    [*ARGUMENTS, _C, ("p", "the weights of the cell for the gates input, output, forget, [3, hidden]")],
)


def lstm(
    x: Node,
    w: Node,
    r: Node,
    bias: Node | None = None,
    h: Node | None = None,
    c: Node | None = None,
    peepholes: Node | None = None,
    lengths: Node | None = None,
    reverse: bool = False,
    activations: Sequence[ActivationLike] = DEFAULT,
    clip: float = math.inf,
    input_forget: bool = False,
) -> tuple[Node, Node, Node]:
    """Long short-term memory over ``x`` [time, batch, inputs]: h after each step [time, batch, hidden], and h and c
    after the last, [batch, hidden].

    The weights ``w`` [4 · hidden, inputs] and ``r`` [4 · hidden, hidden], and ``bias`` [4 · hidden], are those of the
    gates input, output, forget, candidate; ``peepholes`` [3, hidden] those of the cell, for the first three. ``h`` and
    ``c`` [batch, hidden] are by default 0. Of ``lengths`` [batch] the steps beyond a length give 0; ``reverse`` begins
    with the last step. ``activations`` are those of the gates, of the candidate and of the cell: names of ONNX, or with
    alpha and beta, as ``("HardSigmoid", 0.2, 0.5)``; what those of gates and of the
    candidate are given is held between ``-clip`` and ``clip``.
    float16 and bfloat16 are computed in float32.
    """
    check_arguments("lstm", x, w, bias, h, c, peepholes, lengths)
    kind, wide = tensor_of(x).dtype, accumulator(tensor_of(x).dtype)
    sequences = Sequences(lengths, flag(reverse, "reverse"))
    weights = panels("lstm", r, GATES)
    arguments = [
        input_products(sequences.from_start(x), w, bias),
        weights,
        as_state(h, weights, wide),
        as_state(c, weights, wide),
    ]
    attrs = LstmAttrs(*parameters_of("lstm", activations), real(clip, "clip"), flag(input_forget, "input_forget"))
    if peepholes is None:
        states = LSTM_STEPS(*arguments, attrs=attrs)
    else:
        states = PEEPHOLE_LSTM_STEPS(*arguments, in_dtype(peepholes, wide), attrs=attrs)
    hidden, cells = TupleGet(states, 0), TupleGet(states, 1)
    y, last, cell = sequences.of_steps(hidden), sequences.last(hidden), sequences.last(cells)
    return in_dtype(y, kind), in_dtype(last, kind), in_dtype(cell, kind)
