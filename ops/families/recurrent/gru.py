"""Gated recurrent units: ``nn.gru``, whose recurrence is the operator ``nn.gru_steps`` or ``nn.reset_after_gru_steps``.

    z, r = σ(x + R h)        g = tanh(x + R (r h)), or tanh(x + r (R h + b)) where the state is reset after the product
    h = (1 - z) g + z h

Source: Cho et al. (2014), as ONNX's GRU, in which the second form is that of ``linear_before_reset``.
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
    UNITS,
    CellStages,
    RecurrentStages,
    check_vector,
    first_state,
    input_gate,
    panels,
    products,
    recurrence_of,
    recurrence_type,
    register_steps,
)

GATES = 3
UPDATE, RESET, CANDIDATE = range(GATES)
DEFAULT = ("Sigmoid", "Tanh")


def _relation(types: Sequence[Type], attrs: RecurrentAttrs) -> Type:
    check_activations(attrs, len(DEFAULT))
    return recurrence_type(types, GATES, together=False).states_type


def _reset_after_relation(types: Sequence[Type], attrs: RecurrentAttrs) -> Type:
    check_activations(attrs, len(DEFAULT))
    made = recurrence_type(types, GATES)
    check_vector(types[3], "bias", (made.hidden,), made)
    return made.states_type


def _compute(attrs: RecurrentAttrs, inputs: Tensors, result: Type) -> RecurrentStages:
    x, r, h0 = inputs
    of = recurrence_of(x, r)
    h = te.scan_state(of.states, of.dtype, name="gru.h")

    def old(t: Axis, b: Axis | Expr, k: Axis) -> Expr:
        return h[t - 1, b, k]

    update = products(of, r, old, UPDATE, 1, "gru.update")
    resetting = products(of, r, old, RESET, 1, "gru.resetting")
    reset = te.compute(
        of.states,
        lambda t, b, j: attrs.gate(0, input_gate(of, x, RESET, t, b, j) + resetting[t, b, 0, j]) * old(t, b, j),
        name="gru.reset",
    )
    candidate = products(of, r, lambda t, b, k: reset[t, b, k], CANDIDATE, 1, "gru.candidate")

    def cell(t: Axis, b: Axis, j: Axis) -> Expr:
        z = attrs.gate(0, input_gate(of, x, UPDATE, t, b, j) + update[t, b, 0, j])
        g = attrs.gate(1, input_gate(of, x, CANDIDATE, t, b, j) + candidate[t, b, 0, j])
        return (1 - z) * g + z * old(t, b, j)

    step = te.compute(of.states, cell, name="gru.step")
    first = first_state(h0, of, "gru.first")
    cells = CellStages(reset, (resetting,)), CellStages(step, (update, candidate))
    return RecurrentStages(te.scan(first, step, h, name="gru"), (first,), cells)


def _compute_reset_after(attrs: RecurrentAttrs, inputs: Tensors, result: Type) -> RecurrentStages:
    x, r, h0, bias = inputs
    of = recurrence_of(x, r)
    h = te.scan_state(of.states, of.dtype, name="gru.h")
    sums = products(of, r, lambda t, b, k: h[t - 1, b, k], 0, GATES, "gru.products")

    def cell(t: Axis, b: Axis, j: Axis) -> Expr:
        z, reset = (attrs.gate(0, input_gate(of, x, gate, t, b, j) + sums[t, b, gate, j]) for gate in (UPDATE, RESET))
        own = reset * (sums[t, b, CANDIDATE, j] + bias[j])
        g = attrs.gate(1, input_gate(of, x, CANDIDATE, t, b, j) + own)
        return (1 - z) * g + z * h[t - 1, b, j]

    step = te.compute(of.states, cell, name="gru.step")
    first = first_state(h0, of, "gru.first")
    return RecurrentStages(te.scan(first, step, h, name="gru"), (first,), (CellStages(step, (sums,)),))


GRU_STEPS = register_op(
    "nn.gru_steps",
    "the states of gated recurrent units, [time + 1, batch, hidden], with that before the first step; the gates are "
    "update, reset, candidate",
    [
        ARGUMENTS[0],
        ("r", f"the weights of the states, [gates · panels, hidden, 1, {UNITS}]: panels of the units of each gate"),
        *ARGUMENTS[2:],
    ],
    _relation,
    OpPattern.OPAQUE,
    RecurrentAttrs,
)
RESET_AFTER_GRU_STEPS = register_op(
    "nn.reset_after_gru_steps",
    "the states of nn.gru_steps, which are reset after they are multiplied with the weights of the candidate",
    [*ARGUMENTS, ("bias", "what the candidate's product has added before the reset, [hidden]")],
    _reset_after_relation,
    OpPattern.OPAQUE,
    RecurrentAttrs,
)
register_steps(GRU_STEPS, _compute)
register_steps(RESET_AFTER_GRU_STEPS, _compute_reset_after)


def gru(
    x: Node,
    w: Node,
    r: Node,
    bias: Node | None = None,
    h: Node | None = None,
    reset_bias: Node | None = None,
    lengths: Node | None = None,
    reverse: bool = False,
    activations: Sequence[ActivationLike] = DEFAULT,
    clip: float = math.inf,
) -> tuple[Node, Node]:
    """Gated recurrent units over ``x`` [time, batch, inputs]: h after each step [time, batch, hidden], and after the
    last, [batch, hidden].

    The weights ``w`` [3 · hidden, inputs] and ``r`` [3 · hidden, hidden], and ``bias`` [3 · hidden], are those of the
    gates update, reset, candidate. The state is reset before it is multiplied with the weights of the candidate; with
    ``reset_bias`` [hidden] it is that product, with this added, which is reset. ``activations`` are those of the gates
    and of the candidate; all else is as for ``lstm``.
    """
    check_arguments("gru", x, w, bias, h, reset_bias, lengths)
    kind, wide = tensor_of(x).dtype, accumulator(tensor_of(x).dtype)
    sequences = Sequences(lengths, flag(reverse, "reverse"))
    weights = panels("gru", r, GATES, together=reset_bias is not None)
    arguments = [input_products(sequences.from_start(x), w, bias), weights, as_state(h, weights, wide)]
    attrs = RecurrentAttrs(*parameters_of("gru", activations), real(clip, "clip"))
    if reset_bias is None:
        states = GRU_STEPS(*arguments, attrs=attrs)
    else:
        states = RESET_AFTER_GRU_STEPS(*arguments, in_dtype(reset_bias, wide), attrs=attrs)
    return in_dtype(sequences.of_steps(states), kind), in_dtype(sequences.last(states), kind)
