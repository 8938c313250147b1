"""Parametric elementwise operators with one argument: their elements depend on attributes, as slopes and bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import BOOL
from ...base.errors import ExpressionError, TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import Type
from ...ir.expr import Expr
from ..definition.arguments import flag, real
from ..definition.attrs import Attrs, attr, one_of
from ..definition.op_group import OpGroup
from ..definition.relations import FLOAT_KINDS, NUMBER_KINDS
from . import activations
from .unary_op import elementwise_relation, in_float32, register_elementwise

GROUP = OpGroup.ELEMENTWISE


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
