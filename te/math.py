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
    """A constant: ``value`` as a scalar of a dtype. Raises ``ExpressionError`` for a value that the dtype does not
    hold."""
    return const_expr(value, dtype)


def cast(value: ExprLike, dtype: str | DType) -> Expr:
    """The value as another dtype. From float to integer it truncates and saturates, and NaN becomes 0; integers
    wrap."""
    return cast_expr(dtype, value)


def as_bits(value: ExprLike, kind: str | DType) -> Expr:
    """The bits of the value, taken for another dtype, which takes as many in memory. A bool is a byte, 0 or 1, and a
    byte is True where it is not 0. Raises ``ExpressionError`` for dtypes that differ in width, and for ``index``."""
    made, to = as_expr(value), dtype(kind)
    if made.dtype.is_bool:
        made = cast_expr("uint8", made)
    if to.is_bool:
        return cast_expr(to, call("as_uint8", made))
    if to.bits < 8:
        made = call("as_uint8", made) & ((1 << to.bits) - 1)
    return call(f"as_{to.element}", made)


def min_value(kind: str | DType) -> Expr:
    """The smallest value of a dtype; minus infinity for floats. Raises ``ExpressionError`` for ``index``, which has
    none."""
    return const_expr(-float("inf"), kind) if dtype(kind).is_float else const_expr(_limits(kind)[0], kind)


def max_value(kind: str | DType) -> Expr:
    """The largest value of a dtype; infinity for floats. Raises ``ExpressionError`` for ``index``, which has none."""
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
    """``a`` where the condition holds, else ``b``. Both are evaluated, so that neither may read out of bounds: use
    ``if_then_else`` to guard a read. ``condition`` is bool, ``a`` and ``b`` are of one dtype, that of the result;
    else it is an ``ExpressionError``."""
    return Select(*_choice(condition, a, b))


def if_then_else(condition: ExprLike, a: ExprLike, b: ExprLike) -> Expr:
    """``a`` if the condition holds, else ``b``. Only the chosen one is evaluated, so that the condition may guard a
    read, as that of padding. ``condition`` is bool, ``a`` and ``b`` are of one dtype, that of the result; else it is
    an ``ExpressionError``."""
    return IfThenElse(*_choice(condition, a, b))


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two numbers of one dtype; NaN if either is NaN. ``te.min`` is the least over an axis."""
    return minimum_expr(a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two numbers of one dtype; NaN if either is NaN. ``te.max`` is the largest over an axis."""
    return maximum_expr(a, b)


def power(x: ExprLike, y: ExprLike) -> Expr:
    """x to the power of y, of floats, with the special cases of C99's ``pow``."""
    return call("pow", x, y)


def arithmetic_fence(x: ExprLike) -> Expr:
    """x, rounded to its dtype: ``te.arithmetic_fence(a * b) - c`` does not become an fma.

    For sums that count on the rounding of what they read, as a compensated sum does. Needless for a stage that several
    places read, and for a product that stands in a body twice: these are one value, see docs/accuracy.md.
    """
    return call(ARITHMETIC_FENCE, x)


def fma(a: ExprLike, b: ExprLike, c: ExprLike) -> Expr:
    """``a * b + c`` of floats, rounded once."""
    return call("fma", a, b, c)


def copysign(magnitude: ExprLike, sign: ExprLike) -> Expr:
    """The magnitude of the first number with the sign of the second, of floats; the sign of a zero or a NaN counts."""
    return call("copysign", magnitude, sign)


def abs(x: ExprLike) -> Expr:
    """The absolute value of a number; of the smallest integer it wraps, to itself."""
    return call("abs", x)


def sqrt(x: ExprLike) -> Expr:
    """The square root of a float; NaN below 0, -0 of -0."""
    return call("sqrt", x)


def rsqrt(x: ExprLike) -> Expr:
    """1 / sqrt(x) of a float: infinity at 0, minus infinity at -0, NaN below, 0 at infinity."""
    return call("rsqrt", x)


def exp(x: ExprLike) -> Expr:
    """e to the power of x, a float; infinity where that is too large, 0 where it is too small."""
    return call("exp", x)


def exp2(x: ExprLike) -> Expr:
    """2 to the power of x, a float; infinity where that is too large, 0 where it is too small."""
    return call("exp2", x)


def expm1(x: ExprLike) -> Expr:
    """exp(x) - 1 of a float, without the cancellation near 0; -1 at minus infinity."""
    return call("expm1", x)


def log(x: ExprLike) -> Expr:
    """The natural logarithm of a float; minus infinity at 0, NaN below."""
    return call("log", x)


def log2(x: ExprLike) -> Expr:
    """The logarithm to base 2 of a float; minus infinity at 0, NaN below."""
    return call("log2", x)


def log10(x: ExprLike) -> Expr:
    """The logarithm to base 10 of a float; minus infinity at 0, NaN below."""
    return call("log10", x)


def log1p(x: ExprLike) -> Expr:
    """log(1 + x) of a float, without the rounding of 1 + x near 0; minus infinity at -1, NaN below."""
    return call("log1p", x)


def sin(x: ExprLike) -> Expr:
    """The sine of an angle in radians, a float; NaN of infinities."""
    return call("sin", x)


def cos(x: ExprLike) -> Expr:
    """The cosine of an angle in radians, a float; NaN of infinities."""
    return call("cos", x)


def tan(x: ExprLike) -> Expr:
    """The tangent of an angle in radians, a float; NaN of infinities."""
    return call("tan", x)


def asin(x: ExprLike) -> Expr:
    """The arc sine of a float, in radians from -π/2 to π/2; NaN outside of -1 to 1."""
    return call("asin", x)


def acos(x: ExprLike) -> Expr:
    """The arc cosine of a float, in radians from 0 to π; NaN outside of -1 to 1."""
    return call("acos", x)


def atan(x: ExprLike) -> Expr:
    """The arc tangent of a float, in radians from -π/2 to π/2, which it is at infinity."""
    return call("atan", x)


def sinh(x: ExprLike) -> Expr:
    """The hyperbolic sine of a float; infinite where that is too large."""
    return call("sinh", x)


def cosh(x: ExprLike) -> Expr:
    """The hyperbolic cosine of a float; infinite where that is too large."""
    return call("cosh", x)


def tanh(x: ExprLike) -> Expr:
    """The hyperbolic tangent of a float; -1 and 1 at the infinities."""
    return call("tanh", x)


def sigmoid(x: ExprLike) -> Expr:
    """1 / (1 + exp(-x)) of a float; 0 and 1 at the infinities."""
    return call("sigmoid", x)


def erf(x: ExprLike) -> Expr:
    """The error function of a float, 2/sqrt(π) times the integral of exp(-t²) from 0 to x; -1 and 1 at the
    infinities."""
    return call("erf", x)


def floor(x: ExprLike) -> Expr:
    """The largest integer that is not above x, as a float of x's dtype."""
    return call("floor", x)


def ceil(x: ExprLike) -> Expr:
    """The smallest integer that is not below x, as a float of x's dtype."""
    return call("ceil", x)


def trunc(x: ExprLike) -> Expr:
    """x without its fraction, as a float of x's dtype."""
    return call("trunc", x)


def round(x: ExprLike) -> Expr:
    """The integer nearest to x, ties to even, as a float of x's dtype."""
    return call("round", x)


def isnan(x: ExprLike) -> Expr:
    """Whether a float is NaN, as a bool."""
    return call("isnan", x)


def isinf(x: ExprLike) -> Expr:
    """Whether a float is infinite, of either sign, as a bool."""
    return call("isinf", x)


def isfinite(x: ExprLike) -> Expr:
    """Whether a float is neither infinite nor NaN, as a bool."""
    return call("isfinite", x)


def popcount(x: ExprLike) -> Expr:
    """The number of bits of an integer that are 1, in its dtype."""
    return call("popcount", x)


def dot4(a: ExprLike, b: ExprLike) -> Expr:
    """Σ aᵢ · bᵢ over the four bytes of two int32: those of ``a`` unsigned, those of ``b`` signed. It never wraps.

    Where a sum of these is kept in int32, targets with the instruction (AVX-512 VNNI, AVX-VNNI) take one for 4 terms.
    """
    return call("dot4", a, b)


def pair(low: ExprLike, high: ExprLike) -> Expr:
    """The bits of two bfloat16 in an int32, for ``dot2``: ``low`` is in the lower half, as neighbours lie in memory."""
    return call("pair", low, high)


def dot2(a: ExprLike, b: ExprLike) -> Expr:
    """a₀ · b₀ + a₁ · b₁ in float32, over the bfloat16 numbers of two int32 which ``pair`` gives.

    A float32 sum of these takes first the product of the high halves, then that of the low ones; with AVX512-BF16, by
    one instruction for both, to which denormal numbers are 0. In strict precision they are added up first, exactly so.
    """
    return call("dot2", a, b)
