"""The rules of gradients by operator: from a call and the gradient of its result to the gradients of its operands.

    rule(call, gradient) → one for each operand; None where it is no number, or changes nothing

Each is the transposed derivative of what the operator computes, as tables of derivatives have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...graph.node import Call, Node, tensor_of
from ...ir.constants import const_int
from ..families.binary import equal, greater, greater_equal, less, power
from ..families.cast import cast
from ..families.reduce import sum
from ..families.select import where
from ..families.slicing import strided_slice
from ..families.transpose import transpose
from ..families.unary import abs, cos, cosh, exp, log, sigmoid, sign, sin, sinh, sqrt
from . import products
from .makers import filled_like, number, reshaped_like, spread_like, summed_like

Gradients: TypeAlias = Sequence[Node | None]
Rule: TypeAlias = Callable[[Call, Node], Gradients]
Slope: TypeAlias = Callable[[Node, Node], Node]
"""The derivative of a function of one number, made of its operand and its result."""


def _elementwise(slope: Slope) -> Rule:
    return lambda call, gradient: (gradient * slope(call.args[0], call),)


def _broadcast(first: Callable[[Call, Node], Node], second: Callable[[Call, Node], Node]) -> Rule:
    """The rule of two operands that are broadcast with each other."""

    def rule(call: Call, gradient: Node) -> Gradients:
        a, b = call.args
        return summed_like(first(call, gradient), a), summed_like(second(call, gradient), b)

    return rule


def _one(x: Node) -> Node:
    return number(1.0, x)


def _chosen(condition: Callable[[Node, Node], Node]) -> Rule:
    """The rule of the larger or the smaller of two: the gradient goes to that one, of equal ones half to each."""

    def rule(call: Call, gradient: Node) -> Gradients:
        a, b = call.args
        half = gradient * number(0.5, gradient)
        zero = filled_like(gradient, 0.0)

        def share(own: Node, other: Node) -> Node:
            return where(condition(own, other), gradient, where(equal(own, other), half, zero))

        return summed_like(share(a, b), a), summed_like(share(b, a), b)

    return rule


def _power_of(call: Call, gradient: Node) -> Node:
    a, b = call.args
    return gradient * b * power(a, b - number(1.0, b))


def _power_by(call: Call, gradient: Node) -> Node:
    """The gradient by the exponent: of a base that is 0 it is 0, as the limit is for exponents above 0."""
    a, _ = call.args
    positive = greater(a, number(0.0, a))
    return gradient * where(positive, call * log(where(positive, a, number(1.0, a))), number(0.0, a))


def _cast(call: Call, gradient: Node) -> Gradients:
    (x,) = call.args
    return (cast(gradient, tensor_of(x).dtype) if tensor_of(x).dtype.is_float else None,)


def _moved(call: Call, gradient: Node) -> Gradients:
    return (reshaped_like(gradient, call.args[0]),)


def _transpose(call: Call, gradient: Node) -> Gradients:
    axes: tuple[int, ...] = call.attrs.axes
    return (transpose(gradient, tuple(axes.index(k) for k in range(len(axes)))),)


def _sum(call: Call, gradient: Node) -> Gradients:
    return (spread_like(gradient, call.args[0], call.attrs.axes, call.attrs.keepdims),)


def _mean(call: Call, gradient: Node) -> Gradients:
    (x,) = call.args
    spread = spread_like(gradient, x, call.attrs.axes, call.attrs.keepdims)
    count = sum(filled_like(x, 1.0), axes=call.attrs.axes, keepdims=True)
    return (spread / count,)


def _softmax(call: Call, gradient: Node) -> Gradients:
    return (call * (gradient - sum(gradient * call, axes=call.attrs.axes, keepdims=True)),)


def _log_softmax(call: Call, gradient: Node) -> Gradients:
    return (gradient - exp(call) * sum(gradient, axes=call.attrs.axes, keepdims=True),)


def _where(call: Call, gradient: Node) -> Gradients:
    condition, a, b = call.args
    zero = filled_like(gradient, 0.0)
    return None, summed_like(where(condition, gradient, zero), a), summed_like(where(condition, zero, gradient), b)


def _concatenate(call: Call, gradient: Node) -> Gradients:
    """Each tensor gets its part, if it is known where these begin."""
    axis, begin, parts = call.attrs.axis, 0, []
    for tensor in call.args:
        extent = const_int(tensor_of(tensor).shape[axis])
        if extent is None:
            raise products.unsupported(call, "along an axis of open extents")
        parts.append(strided_slice(gradient, [begin], [begin + extent], [axis]))
        begin += extent
    return parts


def _square(x: Node) -> Node:
    return x * x


RULES: dict[str, Rule] = {
    "add": _broadcast(lambda call, g: g, lambda call, g: g),
    "subtract": _broadcast(lambda call, g: g, lambda call, g: -g),
    "multiply": _broadcast(lambda call, g: g * call.args[1], lambda call, g: g * call.args[0]),
    "divide": _broadcast(lambda call, g: g / call.args[1], lambda call, g: -g * call / call.args[1]),
    "power": _broadcast(_power_of, _power_by),
    "maximum": _chosen(greater),
    "minimum": _chosen(less),
    "negative": _elementwise(lambda x, y: number(-1.0, x)),
    "identity": _moved,
    "abs": _elementwise(lambda x, y: sign(x)),
    "relu": lambda call, g: (where(greater(call.args[0], number(0.0, g)), g, filled_like(g, 0.0)),),
    "reciprocal": _elementwise(lambda x, y: -_square(y)),
    "sqrt": _elementwise(lambda x, y: number(0.5, x) / y),
    "rsqrt": _elementwise(lambda x, y: number(-0.5, x) * y / x),
    "exp": _elementwise(lambda x, y: y),
    "log": _elementwise(lambda x, y: _one(x) / x),
    "erf": _elementwise(lambda x, y: number(2 / math.sqrt(math.pi), x) * exp(-_square(x))),
    "sin": _elementwise(lambda x, y: cos(x)),
    "cos": _elementwise(lambda x, y: -sin(x)),
    "tan": _elementwise(lambda x, y: _one(x) + _square(y)),
    "asin": _elementwise(lambda x, y: _one(x) / sqrt(_one(x) - _square(x))),
    "acos": _elementwise(lambda x, y: number(-1.0, x) / sqrt(_one(x) - _square(x))),
    "atan": _elementwise(lambda x, y: _one(x) / (_one(x) + _square(x))),
    "sinh": _elementwise(lambda x, y: cosh(x)),
    "cosh": _elementwise(lambda x, y: sinh(x)),
    "tanh": _elementwise(lambda x, y: _one(x) - _square(y)),
    "asinh": _elementwise(lambda x, y: _one(x) / sqrt(_square(x) + _one(x))),
    "acosh": _elementwise(lambda x, y: _one(x) / sqrt(_square(x) - _one(x))),
    "atanh": _elementwise(lambda x, y: _one(x) / (_one(x) - _square(x))),
    "sigmoid": _elementwise(lambda x, y: y * (_one(x) - y)),
    "softplus": _elementwise(lambda x, y: sigmoid(x)),
    "softsign": _elementwise(lambda x, y: _one(x) / _square(_one(x) + abs(x))),
    "leaky_relu": lambda call, g: (
        where(greater_equal(call.args[0], number(0.0, g)), g, g * number(call.attrs.alpha, g)),
    ),
    "cast": _cast,
    "reshape": _moved,
    "squeeze": _moved,
    "expand_dims": _moved,
    "transpose": _transpose,
    "broadcast_to": lambda call, g: (summed_like(g, call.args[0]),),
    "concatenate": _concatenate,
    "where": _where,
    "sum": _sum,
    "mean": _mean,
    "sum_square": lambda call, g: (_sum(call, g)[0] * number(2.0, g) * call.args[0],),  # type: ignore[operator]
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "nn.matmul": products.matmul_rule,
    "nn.batch_matmul": products.batch_matmul_rule,
    "nn.dense": products.dense_rule,
    "nn.conv1d": products.conv_rule,
    "nn.conv2d": products.conv_rule,
    "nn.conv3d": products.conv_rule,
}
