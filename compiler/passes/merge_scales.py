"""The scale that a sum is quantized by is merged with those that it is made of, so that nothing is divided.

quantize(x · c + d, s)       = quantize(x · (c / s) + d / s, 1), for constants c and d
quantize(dequantize(x, t), s) = quantize(dequantize(x, t / s), 1)
                              and so through relu, clip and leaky_relu, for s above 0

So what is quantized behind an integer product is rint(sum · (s₁ · s₂ / s₃) + …) + zero point, in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...base.dataclass import dataclass
from ...base.dtype import FLOAT32
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ops.definition.registry import get_op, op_of
from ...ops.families.binary import multiply
from ...ops.families.parametric import clip
from ...ops.families.quantize import QUANTIZE
from .quantized_values import dequantized, in_float32

ADD, CLIP, LEAKY_RELU, MULTIPLY, RELU, SUBTRACT = (
    get_op(name) for name in ("add", "clip", "leaky_relu", "multiply", "relu", "subtract")
)


def merge_scales(function: Function) -> Function:
    """The function whose sums of scaled values are quantized by a scale of 1."""
    used_by = users(function.body)
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        if isinstance(node, Call) and isinstance(rebuilt, Call) and node.op is QUANTIZE:
            rebuilt = _merged(node, rebuilt, used_by, done)
        done[node] = rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _merged(original: Call, call: Call, used_by: Mapping[Node, tuple[Node, ...]], done: Mapping[Node, Node]) -> Call:
    scale = call.args[1]
    if not isinstance(scale, Constant) or scale.value.size != 1 or not scale.value.item() > 0:
        return call
    if call.attrs.precision != "float32" or isinstance(original.args[0], Constant):
        return call
    scaled = _Division(float(scale.value.item()), used_by, done).of(original.args[0])
    if scaled is None:
        return call
    return replace(call, args=(scaled, Constant(np.asarray(1, np.float32)), call.args[2]))


@dataclass(frozen=True, slots=True)
class _Division:
    """Values of the function, as they were before, divided by a scale."""

    scale: float
    used_by: Mapping[Node, tuple[Node, ...]]
    done: Mapping[Node, Node]

    def of(self, node: Node) -> Node | None:
        """The quotient without a division; None if there is none."""
        if tensor_of(node).dtype is not FLOAT32:
            return None
        if isinstance(node, Constant):
            return in_float32(node.value / np.float64(self.scale))
        if not isinstance(node, Call) or len(self.used_by[node]) > 1:
            return None
        if (found := dequantized(node)) is not None:
            scale = in_float32(found.scale / np.float64(self.scale))
            return None if scale is None else replace(node, args=(self.done[found.x], scale, node.args[2]), value=None)
        return self._of_call(node)

    def _of_call(self, call: Call) -> Node | None:
        if call.op is MULTIPLY:
            return self._of_product(call)
        if call.op in (ADD, SUBTRACT, RELU, LEAKY_RELU):
            parts = [self.of(argument) for argument in call.args]
            known = [part for part in parts if part is not None]
            return self._called(call, *known) if len(known) == len(parts) else None
        return self._of_clip(call) if call.op is CLIP else None

    def _of_clip(self, call: Call) -> Node | None:
        x, given = self.of(call.args[0]), [b for b in (call.attrs.min, call.attrs.max) if b is not None]
        bounds = in_float32(np.asarray(given, np.float64) / self.scale)
        if x is None or bounds is None:
            return None
        found = iter(bounds.value.tolist())
        low, high = (None if b is None else next(found) for b in (call.attrs.min, call.attrs.max))
        return replace(clip(x, low, high), origin=call.origin)

    def _of_product(self, call: Call) -> Node | None:
        """The constant factor takes the scale."""
        for x, factor in (call.args, call.args[::-1]):
            if isinstance(factor, Constant):
                merged = in_float32(factor.value / np.float64(self.scale))
                return None if merged is None else replace(multiply(self.done[x], merged), origin=call.origin)
        return None

    def _called(self, call: Call, *args: Node) -> Call:
        return replace(op_of(call)(*args, attrs=call.attrs), origin=call.origin)
