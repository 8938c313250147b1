"""Elman's recurrent network: ``nn.rnn``, whose recurrence is the operator ``nn.rnn_steps``: h = tanh(x + r h).

Source: Elman (1990), as ONNX's RNN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import te
from ....graph.node import Node, tensor_of
from ....graph.types import Type
from ....ir.expr import Axis, Expr
from ....te.tensor import Tensors
from ...definition.accumulate import accumulator
from ...definition.arguments import flag, real
from ...definition.registry import OpPattern, register_op
from .attrs import ActivationLike, RecurrentAttrs, check_activations, parameters_of
from .sequences import Sequences, as_state, check_arguments, in_dtype, input_products
from .steps import (
    ARGUMENTS,
    CellStages,
    RecurrentStages,
    first_state,
    input_gate,
    panels,
    products,
    recurrence_of,
    recurrence_type,
    register_steps,
)

GATES = 1
DEFAULT = ("Tanh",)


def _relation(types: Sequence[Type], attrs: RecurrentAttrs) -> Type:
    check_activations(attrs, len(DEFAULT))
    return recurrence_type(types, GATES).states_type


def _compute(attrs: RecurrentAttrs, inputs: Tensors, result: Type) -> RecurrentStages:
    x, r, h0 = inputs
    of = recurrence_of(x, r)
    h = te.scan_state(of.states, of.dtype, name="rnn.h")
    sums = products(of, r, lambda t, b, k: h[t - 1, b, k], 0, GATES, "rnn.products")

    def cell(t: Axis, b: Axis, j: Axis) -> Expr:
        return attrs.gate(0, input_gate(of, x, 0, t, b, j) + sums[t, b, 0, j])

    step = te.compute(of.states, cell, name="rnn.step")
    first = first_state(h0, of, "rnn.first")
    return RecurrentStages(te.scan(first, step, h, name="rnn"), (first,), (CellStages(step, (sums,)),))


RNN_STEPS = register_op(
    "nn.rnn_steps",
    "the states of a recurrent network, [time + 1, batch, hidden], with that before the first step",
    ARGUMENTS,
    _relation,
    OpPattern.OPAQUE,
    RecurrentAttrs,
)
register_steps(RNN_STEPS, _compute)


def rnn(
    x: Node,
    w: Node,
    r: Node,
    bias: Node | None = None,
    h: Node | None = None,
    lengths: Node | None = None,
    reverse: bool = False,
    activations: Sequence[ActivationLike] = DEFAULT,
    clip: float = math.inf,
) -> tuple[Node, Node]:
    """A recurrent network over ``x`` [time, batch, inputs]: h after each step [time, batch, hidden], and after the
    last, [batch, hidden].

    ``w`` is [hidden, inputs], ``r`` [hidden, hidden], ``bias`` [hidden]; ``activations`` has one. All else is as for
    ``lstm``.
    """
    check_arguments("rnn", x, w, bias, h, lengths)
    kind, wide = tensor_of(x).dtype, accumulator(tensor_of(x).dtype)
    sequences, weights = Sequences(lengths, flag(reverse, "reverse")), panels("rnn", r, GATES)
    products_of_inputs = input_products(sequences.from_start(x), w, bias)
    attrs = RecurrentAttrs(*parameters_of("rnn", activations), real(clip, "clip"))
    states = RNN_STEPS(products_of_inputs, weights, as_state(h, weights, wide), attrs=attrs)
    return in_dtype(sequences.of_steps(states), kind), in_dtype(sequences.last(states), kind)
