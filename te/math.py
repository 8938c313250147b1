"""Elementwise functions for the bodies of computes.

All take expressions or Python numbers, of one dtype, which is that of the result (bool for the ``is…`` functions), and
raise ``ExpressionError`` for a dtype that they are not made for. Roots, powers, exponentials, logarithms, and
trigonometric and rounding functions take floats. docs/accuracy.md has their errors.
"""

from __future__ import annotations

from ..base.dtype import BOOL, DType, dtype
from ..base.errors import ExpressionError
from ..ir.constants import const as const_expr
from ..ir.expr import Expr, ExprLike, IfThenElse, Select
from ..ir.intrinsics import ARITHMETIC_FENCE, call
from ..ir.makers import as_expr
from ..ir.makers import cast as cast_expr
from ..ir.makers import maximum as maximum_expr
from ..ir.makers import minimum as minimum_expr
from ..ir.operand import Operand


def const(value: bool | int | float, dtype: str | DType = "float32") -> Expr:
    """A constant of a dtype."""
    return const_expr(value, dtype)


def cast(value: ExprLike, dtype: str | DType) -> Expr:
    """Conversion to a dtype: float to integer truncates and saturates (NaN becomes 0), integers wrap."""
    return cast_expr(dtype, value)


def min_value(kind: str | DType) -> Expr:
    """The smallest value of a dtype; minus infinity for floats."""
    return const_expr(-float("inf"), kind) if dtype(kind).is_float else const_expr(_limits(kind)[0], kind)


def max_value(kind: str | DType) -> Expr:
    """The largest value of a dtype; infinity for floats."""
    return const_expr(float("inf"), kind) if dtype(kind).is_float else const_expr(_limits(kind)[1], kind)


def _limits(kind: str | DType) -> tuple[int, int]:
    limits = dtype(kind).int_range()
    if limits is None:
        raise ExpressionError(f"{dtype(kind)} has no smallest and no largest value")
    return limits


def _choice(condition: ExprLike, a: ExprLike, b: ExprLike) -> tuple[Expr, Expr, Expr]:
    left = as_expr(a, b.as_expr().dtype if isinstance(b, Operand) else None)
    return as_expr(condition, BOOL), left, as_expr(b, left.dtype)


def select(condition: ExprLike, a: ExprLike, b: ExprLike) -> Expr:
    """``a`` where the condition holds, else ``b``; both are evaluated, so neither may be out of bounds."""
    return Select(*_choice(condition, a, b))


def if_then_else(condition: ExprLike, a: ExprLike, b: ExprLike) -> Expr:
    """``a`` if the condition holds, else ``b``; only the chosen one is evaluated, so it may guard a read (padding)."""
    return IfThenElse(*_choice(condition, a, b))


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two values; NaN if either is NaN."""
    return minimum_expr(a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two values; NaN if either is NaN."""
    return maximum_expr(a, b)


def power(x: ExprLike, y: ExprLike) -> Expr:
    """x to the power of y, as in C99."""
    return call("pow", x, y)


def arithmetic_fence(x: ExprLike) -> Expr:
    """x, rounded to its dtype: ``te.arithmetic_fence(a * b) - c`` does not become an fma.

    For sums that count on the rounding of what they read, as a compensated sum does. Needless for a stage that several
    places read, and for a product that stands in a body twice: these are one value, see docs/accuracy.md.
    """
    return call(ARITHMETIC_FENCE, x)


def fma(a: ExprLike, b: ExprLike, c: ExprLike) -> Expr:
    """``a * b + c``, rounded once."""
    return call("fma", a, b, c)


def copysign(magnitude: ExprLike, sign: ExprLike) -> Expr:
    """The magnitude of the first, the sign of the second."""
    return call("copysign", magnitude, sign)


def abs(x: ExprLike) -> Expr:
    """The absolute value; of the smallest integer it wraps."""
    return call("abs", x)


def sqrt(x: ExprLike) -> Expr:
    """The square root; NaN below 0."""
    return call("sqrt", x)


def rsqrt(x: ExprLike) -> Expr:
    """1 / sqrt(x)."""
    return call("rsqrt", x)


def exp(x: ExprLike) -> Expr:
    """e to the power of x."""
    return call("exp", x)


def exp2(x: ExprLike) -> Expr:
    """2 to the power of x."""
    return call("exp2", x)


def expm1(x: ExprLike) -> Expr:
    """exp(x) - 1, without the cancellation near 0."""
    return call("expm1", x)


def log(x: ExprLike) -> Expr:
    """The natural logarithm; NaN below 0."""
    return call("log", x)


def log2(x: ExprLike) -> Expr:
    """The logarithm to base 2."""
    return call("log2", x)


def log10(x: ExprLike) -> Expr:
    """The logarithm to base 10."""
    return call("log10", x)


def log1p(x: ExprLike) -> Expr:
    """log(1 + x), without the rounding of 1 + x near 0; NaN below -1."""
    return call("log1p", x)


def sin(x: ExprLike) -> Expr:
    """The sine, of radians."""
    return call("sin", x)


def cos(x: ExprLike) -> Expr:
    """The cosine, of radians."""
    return call("cos", x)


def tan(x: ExprLike) -> Expr:
    """The tangent, of radians."""
    return call("tan", x)


def asin(x: ExprLike) -> Expr:
    """The arc sine, in radians."""
    return call("asin", x)


def acos(x: ExprLike) -> Expr:
    """The arc cosine, in radians."""
    return call("acos", x)


def atan(x: ExprLike) -> Expr:
    """The arc tangent, in radians."""
    return call("atan", x)


def sinh(x: ExprLike) -> Expr:
    """The hyperbolic sine."""
    return call("sinh", x)


def cosh(x: ExprLike) -> Expr:
    """The hyperbolic cosine."""
    return call("cosh", x)


def tanh(x: ExprLike) -> Expr:
    """The hyperbolic tangent."""
    return call("tanh", x)


def sigmoid(x: ExprLike) -> Expr:
    """1 / (1 + exp(-x))."""
    return call("sigmoid", x)


def erf(x: ExprLike) -> Expr:
    """The error function, 2/sqrt(pi) times the integral of exp(-t²) from 0 to x."""
    return call("erf", x)


def floor(x: ExprLike) -> Expr:
    """The largest integer not above x, as a float."""
    return call("floor", x)


def ceil(x: ExprLike) -> Expr:
    """The smallest integer not below x, as a float."""
    return call("ceil", x)


def trunc(x: ExprLike) -> Expr:
    """x without its fraction, as a float."""
    return call("trunc", x)


def round(x: ExprLike) -> Expr:
    """The nearest integer, ties to even, as a float."""
    return call("round", x)


def isnan(x: ExprLike) -> Expr:
    """Whether x is NaN."""
    return call("isnan", x)


def isinf(x: ExprLike) -> Expr:
    """Whether x is infinite."""
    return call("isinf", x)


def isfinite(x: ExprLike) -> Expr:
    """Whether x is neither infinite nor NaN."""
    return call("isfinite", x)


def popcount(x: ExprLike) -> Expr:
    """The number of bits that are 1, of an integer."""
    return call("popcount", x)


def dot4(a: ExprLike, b: ExprLike) -> Expr:
    """Σ aᵢ · bᵢ over the four bytes of two int32: those of ``a`` unsigned, those of ``b`` signed. It never wraps.

    Where a sum of these is kept in int32, targets with the instruction (AVX-512 VNNI, AVX-VNNI) take one for 4 terms.
    """
    return call("dot4", a, b)


def pair(low: ExprLike, high: ExprLike) -> Expr:
    """The bits of two bfloat16 in an int32, ``low`` in the lower half, as neighbours lie in memory: for ``dot2``."""
    return call("pair", low, high)


def dot2(a: ExprLike, b: ExprLike) -> Expr:
    """a₀ · b₀ + a₁ · b₁ in float32, over the bfloat16 numbers of two int32 which ``pair`` gives.

    A float32 sum of these takes first the product of the high halves, then that of the low ones; with AVX512-BF16, by
    one instruction for both, to which denormal numbers are 0. In strict precision they are added up first, exactly so.
    """
    return call("dot2", a, b)
