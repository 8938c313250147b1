"""Elementwise operators with one argument: each is an entry of the table, its compute an expression of one element.

What is composed of several roundings is computed in float32 where the argument is a narrower float, and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ... import te
from ...base.dtype import BOOL, NARROW_KINDS, DType
from ...base.errors import ExpressionError, TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.expr import Expr
from ...te.tensor import Tensors
from ..definition.arguments import flag, real
from ..definition.attrs import Attrs, attr, one_of
from ..definition.layout_rule import same_layout
from ..definition.op_group import OpGroup
from ..definition.registry import Op, OpPattern, register_op
from ..definition.relations import FLOAT_KINDS, INTEGER_KINDS, NUMBER_KINDS, tensor_argument
from ..definition.strategy import register_compute
from . import activations

GROUP = OpGroup.ELEMENTWISE

Element = Callable[[Expr, Any], Expr]
"""From an element and the attributes to the result's element."""

ANY_KINDS = ("bool", *NUMBER_KINDS, *NARROW_KINDS)


def elementwise_relation(
    kinds: Sequence[str], result: DType | None = None
) -> Callable[[Sequence[Type], Any], TensorType]:
    """The result has the argument's shape, and its dtype unless ``result`` says otherwise."""

    def relation(types: Sequence[Type], attrs: Any) -> TensorType:
        argument = tensor_argument(types[0], "x")
        if argument.dtype.kind not in kinds:
            raise TypeInferenceError(f"x must be of {', '.join(kinds)}, found {argument.dtype}")
        return TensorType(argument.shape, result or argument.dtype)

    return relation


def in_float32(element: Callable[..., Expr]) -> Callable[..., Expr]:
    """Compute on at least 32 bits: a narrower float is widened first, the result rounded."""

    def widened(x: Expr, *attrs: Any) -> Expr:
        if x.dtype.is_float and x.dtype.bits < 32:
            return te.cast(element(te.cast(x, "float32"), *attrs), x.dtype)
        return element(x, *attrs)

    return widened


def register_elementwise(
    name: str,
    description: str,
    relation: Callable[[Sequence[Type], Any], Type],
    element: Element,
    attrs: type[Attrs] | None = None,
) -> Op:
    """Register an operator of one argument whose elements are those of ``element``."""

    def compute(attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
        (x,) = inputs
        return te.compute(x.shape, lambda *i: element(x[i], attrs), name=name)

    op = register_op(
        name,
        description,
        [("x", "any shape")],
        relation,
        OpPattern.ELEMENTWISE,
        attrs,
        support_level=1,
        layout_rule=same_layout,
    )
    register_compute(op, compute)
    return op


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


# With attributes.


@dataclass(frozen=True)
class LeakyReluAttrs(Attrs):
    """The attributes of ``leaky_relu``."""

    alpha: float = attr("slope for negative values", default=0.01)


LEAKY_RELU = register_elementwise(
    "leaky_relu",
    "x where it is 0 or more, else alpha * x",
    elementwise_relation(FLOAT_KINDS),
    in_float32(lambda x, attrs: activations.leaky_relu(x, attrs.alpha)),
    LeakyReluAttrs,
)


def leaky_relu(x: Node, alpha: float = 0.01) -> Call:
    """``x`` where it is 0 or more, else ``alpha * x``."""
    return LEAKY_RELU(x, attrs=LeakyReluAttrs(real(alpha, "alpha")))


@dataclass(frozen=True)
class ThresholdedReluAttrs(Attrs):
    """The attributes of ``thresholded_relu``."""

    alpha: float = attr("up to this value the result is 0", default=1.0)


THRESHOLDED_RELU = register_elementwise(
    "thresholded_relu",
    "x where it is above alpha, else 0",
    elementwise_relation(FLOAT_KINDS),
    in_float32(lambda x, attrs: activations.thresholded_relu(x, attrs.alpha)),
    ThresholdedReluAttrs,
)


def thresholded_relu(x: Node, alpha: float = 1.0) -> Call:
    """``x`` where it is above ``alpha``, else 0; also for NaN."""
    return THRESHOLDED_RELU(x, attrs=ThresholdedReluAttrs(real(alpha, "alpha")))


@dataclass(frozen=True)
class EluAttrs(Attrs):
    """The attributes of ``elu``."""

    alpha: float = attr("minus the limit for small values", default=1.0)


ELU = register_elementwise(
    "elu",
    "x where it is 0 or more, else alpha * (exp(x) - 1)",
    elementwise_relation(FLOAT_KINDS),
    in_float32(lambda x, attrs: activations.elu(x, attrs.alpha)),
    EluAttrs,
)


def elu(x: Node, alpha: float = 1.0) -> Call:
    """``x`` where it is 0 or more, else ``alpha * (exp(x) - 1)``."""
    return ELU(x, attrs=EluAttrs(real(alpha, "alpha")))


SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
"""The constants of ONNX's Selu: those of Klambauer et al., "Self-normalizing neural networks" (2017), as float32."""


@dataclass(frozen=True)
class SeluAttrs(Attrs):
    """The attributes of ``selu``."""

    alpha: float = attr("minus the limit for small values, before scaling", default=SELU_ALPHA)
    gamma: float = attr("scale of the result", default=SELU_GAMMA)


SELU = register_elementwise(
    "selu",
    "gamma * (x where it is above 0, else alpha * (exp(x) - 1))",
    elementwise_relation(FLOAT_KINDS),
    in_float32(lambda x, attrs: te.select(x <= 0, te.expm1(x) * attrs.alpha, x) * attrs.gamma),
    SeluAttrs,
)


def selu(x: Node, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> Call:
    """``gamma * x`` where ``x`` is above 0, else ``gamma * alpha * (exp(x) - 1)``."""
    return SELU(x, attrs=SeluAttrs(real(alpha, "alpha"), real(gamma, "gamma")))


@dataclass(frozen=True)
class CeluAttrs(Attrs):
    """The attributes of ``celu``."""

    alpha: float = attr("scale of the exponential", default=1.0, check=lambda v: "must not be 0" if v == 0 else None)


CELU = register_elementwise(
    "celu",
    "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))",
    elementwise_relation(FLOAT_KINDS),
    in_float32(lambda x, attrs: te.maximum(x, 0) + te.minimum(te.expm1(x / attrs.alpha) * attrs.alpha, 0)),
    CeluAttrs,
)


def celu(x: Node, alpha: float = 1.0) -> Call:
    """CELU of each element: ``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""
    return CELU(x, attrs=CeluAttrs(real(alpha, "alpha")))


@dataclass(frozen=True)
class HardSigmoidAttrs(Attrs):
    """The attributes of ``hard_sigmoid``."""

    alpha: float = attr("slope", default=0.2)
    beta: float = attr("value at 0", default=0.5)


HARD_SIGMOID = register_elementwise(
    "hard_sigmoid",
    "max(0, min(1, alpha * x + beta))",
    elementwise_relation(FLOAT_KINDS),
    in_float32(lambda x, attrs: activations.hard_sigmoid(x, attrs.alpha, attrs.beta)),
    HardSigmoidAttrs,
)


def hard_sigmoid(x: Node, alpha: float = 0.2, beta: float = 0.5) -> Call:
    """``alpha * x + beta``, held between 0 and 1."""
    return HARD_SIGMOID(x, attrs=HardSigmoidAttrs(real(alpha, "alpha"), real(beta, "beta")))


hard_swish = _plain(
    "hard_swish",
    "x * max(0, min(1, x / 6 + 0.5))",
    FLOAT_KINDS,
    in_float32(lambda x: x * activations.clamp(x * (1 / 6) + 0.5, 0, 1)),
)


@dataclass(frozen=True)
class SwishAttrs(Attrs):
    """The attributes of ``swish``."""

    alpha: float = attr("factor inside the sigmoid", default=1.0)


SWISH = register_elementwise(
    "swish",
    "x * sigmoid(alpha * x)",
    elementwise_relation(FLOAT_KINDS),
    in_float32(lambda x, attrs: x * te.sigmoid(x * attrs.alpha)),
    SwishAttrs,
)


def swish(x: Node, alpha: float = 1.0) -> Call:
    """``x * sigmoid(alpha * x)``, which is SiLU for ``alpha`` 1."""
    return SWISH(x, attrs=SwishAttrs(real(alpha, "alpha")))


@dataclass(frozen=True)
class GeluAttrs(Attrs):
    """The attributes of ``gelu``."""

    approximate: str = attr("how the error function is computed", default="none", check=one_of("none", "tanh"))


def _gelu(x: Expr, attrs: GeluAttrs) -> Expr:
    if attrs.approximate == "none":
        return x * 0.5 * (te.erf(x * math.sqrt(0.5)) + 1)
    return x * 0.5 * (te.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)


GELU = register_elementwise(
    "gelu", "x * (1 + erf(x / sqrt(2))) / 2", elementwise_relation(FLOAT_KINDS), in_float32(_gelu), GeluAttrs
)


def gelu(x: Node, approximate: str = "none") -> Call:
    """``x * (1 + erf(x / sqrt(2))) / 2``; with ``approximate="tanh"``, its approximation by tanh."""
    return GELU(x, attrs=GeluAttrs(approximate))


@dataclass(frozen=True)
class ShrinkAttrs(Attrs):
    """The attributes of ``shrink``."""

    lambd: float = attr("from -lambd to lambd the result is 0", default=0.5)
    bias: float = attr("how far larger values move towards 0", default=0.0)


def _shrink(x: Expr, attrs: ShrinkAttrs) -> Expr:
    wide = x if x.dtype.is_float else te.cast(x, "float64")
    moved = te.select(wide < -attrs.lambd, wide + attrs.bias, te.select(wide > attrs.lambd, wide - attrs.bias, 0.0))
    return te.cast(moved, x.dtype)


SHRINK = register_elementwise(
    "shrink",
    "x + bias below -lambd, x - bias above lambd, else 0",
    elementwise_relation(NUMBER_KINDS),
    in_float32(_shrink),
    ShrinkAttrs,
)


def shrink(x: Node, lambd: float = 0.5, bias: float = 0.0) -> Call:
    """``x + bias`` below ``-lambd``, ``x - bias`` above ``lambd``, else 0. Integers are truncated."""
    return SHRINK(x, attrs=ShrinkAttrs(real(lambd, "lambd"), real(bias, "bias")))


@dataclass(frozen=True)
class IsInfAttrs(Attrs):
    """The attributes of ``isinf``."""

    detect_negative: bool = attr("whether -infinity counts", default=True)
    detect_positive: bool = attr("whether infinity counts", default=True)


def _isinf(x: Expr, attrs: IsInfAttrs) -> Expr:
    infinity = te.max_value(x.dtype)
    below = (x == -infinity) & te.const(attrs.detect_negative, BOOL)
    return below | (x == infinity) & te.const(attrs.detect_positive, BOOL)


ISINF = register_elementwise(
    "isinf", "whether x is infinite", elementwise_relation(FLOAT_KINDS, BOOL), _isinf, IsInfAttrs
)


def isinf(x: Node, detect_negative: bool = True, detect_positive: bool = True) -> Call:
    """Whether ``x`` is an infinity, of the signs asked for."""
    negative, positive = flag(detect_negative, "detect_negative"), flag(detect_positive, "detect_positive")
    return ISINF(x, attrs=IsInfAttrs(negative, positive))


@dataclass(frozen=True)
class ClipAttrs(Attrs):
    """The attributes of ``clip``."""

    min: float | int | None = attr("lower bound; None for none", default=None)
    max: float | int | None = attr("upper bound; None for none", default=None)


def _clip_relation(types: Sequence[Type], attrs: ClipAttrs) -> Type:
    result = elementwise_relation(NUMBER_KINDS)(types, attrs)
    for name, bound in (("min", attrs.min), ("max", attrs.max)):
        try:
            if bound is not None:
                te.const(bound, result.dtype)
        except ExpressionError as error:
            raise TypeInferenceError(f"{name} does not fit x: {error}") from None
    return result


def _clip(x: Expr, attrs: ClipAttrs) -> Expr:
    low = x if attrs.min is None else te.maximum(x, te.const(attrs.min, x.dtype))
    return low if attrs.max is None else te.minimum(low, te.const(attrs.max, x.dtype))


CLIP = register_elementwise("clip", "x, held between min and max; NaN stays NaN", _clip_relation, _clip, ClipAttrs)


def clip(x: Node, min: float | None = None, max: float | None = None) -> Call:
    """``x`` held between the numbers ``min`` and ``max``, each optional; ``max`` where they cross. NaN stays NaN.

    Bounds that are computed: see ``select.clip_by``.
    """
    return CLIP(x, attrs=ClipAttrs(min, max))
