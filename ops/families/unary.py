"""Elementwise operators with one argument and without attributes, each an entry of the table below.

Those with attributes stand in ``parametric.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from ... import te
from ...base.dtype import BOOL, DType
from ...graph.node import Call, Node
from ...ir.expr import Expr
from ..definition.op_group import OpGroup
from ..definition.relations import FLOAT_KINDS, INTEGER_KINDS, NUMBER_KINDS
from . import activations
from .unary_op import ANY_KINDS, elementwise_relation, in_float32, register_elementwise

GROUP = OpGroup.ELEMENTWISE


class UnaryCall(Protocol):
    """Makes calls of an elementwise operator of one argument."""

    def __call__(self, x: Node) -> Call: ...


def _plain(
    name: str, description: str, kinds: Sequence[str], element: Callable[[Expr], Expr], result: DType | None = None
) -> UnaryCall:
    """An operator without attributes; gives the function that makes its calls."""
    op = register_elementwise(name, description, elementwise_relation(kinds, result), lambda x, attrs: element(x))

    def make(x: Node) -> Call:
        return op(x)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{description}, elementwise."
    return make


# Expressions of one element that take more than a line.


def _sign(x: Expr) -> Expr:
    zero_or_nan = x if not x.dtype.is_float else te.select(te.isnan(x), x, 0.0)
    below = zero_or_nan if x.dtype.kind == "uint" else te.select(x < 0, te.const(-1, x.dtype), zero_or_nan)
    return te.select(x > 0, te.const(1, x.dtype), below)


def _reciprocal(x: Expr) -> Expr:
    return te.const(1, x.dtype) / x


def _mish(x: Expr) -> Expr:
    # tanh(log(1 + e)) = n / (n + 2) with n = e * (e + 2); it is 1 to the last bit long before exp(x)² overflows
    e = te.exp(te.minimum(x, 20))
    n = e * (e + 2)
    return x * (n / (n + 2))


_SQUARE_HIDES_ONE = float(1 << 28)
"""From here on, x² + 1 is x² to the last bit of the result."""


def _asinh(x: Expr) -> Expr:
    a = te.minimum(te.abs(x), _SQUARE_HIDES_ONE)
    near = te.log1p(a + a * a / (te.sqrt(a * a + 1) + 1))
    far = te.log(te.abs(x)) + math.log(2)
    return te.copysign(te.select(te.abs(x) > _SQUARE_HIDES_ONE, far, near), x)


def _acosh(x: Expr) -> Expr:
    t = te.minimum(x, _SQUARE_HIDES_ONE) - 1
    near = te.log1p(t + te.sqrt(t) * te.sqrt(t + 2))
    return te.select(x > _SQUARE_HIDES_ONE, te.log(x) + math.log(2), near)


def _atanh(x: Expr) -> Expr:
    a = te.abs(x)
    return te.copysign(te.log1p(a * 2 / (1 - a)) * 0.5, x)


# Without attributes.

abs = _plain("abs", "|x|; of the smallest integer it wraps", NUMBER_KINDS, te.abs)
negative = _plain("negative", "-x; integers wrap", NUMBER_KINDS, lambda x: -x)
sign = _plain("sign", "-1, 0 or 1; NaN stays NaN", NUMBER_KINDS, _sign)
relu = _plain("relu", "max(x, 0); NaN stays NaN", NUMBER_KINDS, lambda x: te.maximum(x, 0))
reciprocal = _plain("reciprocal", "1 / x", FLOAT_KINDS, _reciprocal)
sqrt = _plain("sqrt", "the square root; NaN below 0", FLOAT_KINDS, te.sqrt)
rsqrt = _plain("rsqrt", "1 / sqrt(x)", FLOAT_KINDS, te.rsqrt)
exp = _plain("exp", "e to the power of x", FLOAT_KINDS, te.exp)
log = _plain("log", "the natural logarithm; NaN below 0", FLOAT_KINDS, te.log)
erf = _plain("erf", "the error function", FLOAT_KINDS, te.erf)
floor = _plain("floor", "the largest integer not above x", FLOAT_KINDS, te.floor)
ceil = _plain("ceil", "the smallest integer not below x", FLOAT_KINDS, te.ceil)
trunc = _plain("trunc", "x without its fraction", FLOAT_KINDS, te.trunc)
round = _plain("round", "the nearest integer, ties to even", FLOAT_KINDS, te.round)
sin = _plain("sin", "the sine of radians", FLOAT_KINDS, te.sin)
cos = _plain("cos", "the cosine of radians", FLOAT_KINDS, te.cos)
tan = _plain("tan", "the tangent of radians", FLOAT_KINDS, te.tan)
asin = _plain("asin", "the arc sine in radians", FLOAT_KINDS, te.asin)
acos = _plain("acos", "the arc cosine in radians", FLOAT_KINDS, te.acos)
atan = _plain("atan", "the arc tangent in radians", FLOAT_KINDS, te.atan)
sinh = _plain("sinh", "the hyperbolic sine", FLOAT_KINDS, te.sinh)
cosh = _plain("cosh", "the hyperbolic cosine", FLOAT_KINDS, te.cosh)
tanh = _plain("tanh", "the hyperbolic tangent", FLOAT_KINDS, te.tanh)
asinh = _plain("asinh", "the inverse hyperbolic sine", FLOAT_KINDS, in_float32(_asinh))
acosh = _plain("acosh", "the inverse hyperbolic cosine; NaN below 1", FLOAT_KINDS, in_float32(_acosh))
atanh = _plain("atanh", "the inverse hyperbolic tangent; NaN outside -1 … 1", FLOAT_KINDS, in_float32(_atanh))
sigmoid = _plain("sigmoid", "1 / (1 + exp(-x))", FLOAT_KINDS, te.sigmoid)
softplus = _plain("softplus", "log(1 + exp(x))", FLOAT_KINDS, in_float32(activations.softplus))
softsign = _plain("softsign", "x / (1 + |x|)", FLOAT_KINDS, in_float32(activations.softsign))
mish = _plain("mish", "x * tanh(log(1 + exp(x)))", FLOAT_KINDS, in_float32(_mish))
isnan = _plain("isnan", "whether x is NaN", FLOAT_KINDS, te.isnan, BOOL)
isfinite = _plain("isfinite", "whether x is neither infinite nor NaN", FLOAT_KINDS, te.isfinite, BOOL)
logical_not = _plain("logical_not", "not x", ("bool",), lambda x: ~x)
bitwise_not = _plain("bitwise_not", "x with each bit inverted", INTEGER_KINDS, lambda x: ~x)
identity = _plain("identity", "x itself", ANY_KINDS, lambda x: x)
hard_swish = _plain(
    "hard_swish",
    "x * max(0, min(1, x / 6 + 0.5))",
    FLOAT_KINDS,
    in_float32(lambda x: x * activations.clamp(x * (1 / 6) + 0.5, 0, 1)),
)
