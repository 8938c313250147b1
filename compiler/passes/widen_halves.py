"""Convolutions of float16 and bfloat16 become those of float32, with all their layouts and schedules.

Definitions sum halves in float32 and round the sum. So arguments are widened, which loses nothing, and the result is
rounded; what is added to it as its bias is added before, so that there is one rounding. What limits it to numbers that
halves have goes before the rounding as well, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...artifact.options import Precision
from ...base.dtype import BFLOAT16, FLOAT16, FLOAT32
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ops.definition.registry import get_op, op_of
from ...ops.families.binary import add
from ...ops.families.cast import cast
from ...ops.families.conv.attrs import ConvAttrs
from ...ops.families.conv.conv import CONVS
from ...ops.families.conv.transpose import CONV_TRANSPOSES

ADD, CLIP, RELU = map(get_op, ("add", "clip", "relu"))
OPS = (*(op for op, _ in CONVS.values()), *CONV_TRANSPOSES.values())


def widen_halves(function: Function, precision: Precision) -> Function:
    """The function without convolutions of halves. Under strict precision only a convolution's own bias is added before
    the result is rounded, otherwise any constant."""
    widening = _Widening(users(function.body), precision)
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        if isinstance(node, Call) and isinstance(rebuilt, Call):
            rebuilt = widening.widened_call(node, rebuilt)
        done[node] = rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


class _Widening:
    """Mutable: knows the float32 values that it has made, the sums of convolutions, limited or not, by what rounds
    them."""

    def __init__(self, used_by: Mapping[Node, tuple[Node, ...]], precision: Precision) -> None:
        self._used_by = used_by
        self._precision = precision
        self._wide: dict[Node, Node] = {}
        self._sums: dict[Node, Call] = {}
        self._limited: dict[Node, Call] = {}

    def widened_call(self, original: Call, call: Call) -> Call:
        """What stands for a call of the function; the call itself, if it is no such convolution, nor adds its bias."""
        if call.op in OPS and {tensor_of(a).dtype for a in call.args} <= {FLOAT16, BFLOAT16}:
            attrs = replace(call.attrs, out_dtype="") if isinstance(call.attrs, ConvAttrs) else call.attrs
            made = op_of(call)(*map(self._widened, call.args), attrs=attrs, origin=call.origin)
            return self._rounded(made, call)
        sums = self._sums.get(call.args[0]) if call.op is ADD else None
        if sums is not None and self._is_bias(original):
            return self._rounded(replace(add(sums, self._widened(call.args[1])), origin=call.origin), call)
        if not _limits(call):
            return call
        values = self._sums.get(call.args[0], self._limited.get(call.args[0]))
        if values is not None and len(self._used_by[original.args[0]]) == 1:
            made = op_of(call)(values, attrs=call.attrs, origin=call.origin)
            rounded = replace(cast(made, tensor_of(call).dtype), origin=call.origin, value=call.value)
            self._limited[rounded] = made
            return rounded
        return call

    def _is_bias(self, call: Call) -> bool:
        """Whether a call adds to a convolution that nothing else reads what may be added before it is rounded."""
        convolution, bias = call.args
        own = isinstance(convolution, Call) and bool(call.origin) and call.origin == convolution.origin
        constant = isinstance(bias, Constant) and self._precision != "strict"
        return len(self._used_by[convolution]) == 1 and (own or constant)

    def _rounded(self, made: Call, call: Call) -> Call:
        kind = tensor_of(call).dtype
        if kind is tensor_of(made).dtype:
            return replace(made, value=call.value)
        rounded = replace(cast(made, kind), origin=call.origin, value=call.value)
        self._sums[rounded] = made
        return rounded

    def _widened(self, node: Node) -> Node:
        if node not in self._wide:
            if isinstance(node, Constant):
                self._wide[node] = Constant(node.value.astype(np.float32), node.name)
            else:
                self._wide[node] = cast(node, FLOAT32)
        return self._wide[node]


def _limits(call: Call) -> bool:
    """Whether a call limits its argument from below or above, by numbers that its dtype has."""
    if call.op is CLIP:
        kind = tensor_of(call).dtype.to_numpy()
        return all(bound is None or float(kind.type(bound)) == bound for bound in (call.attrs.min, call.attrs.max))
    return call.op is RELU
