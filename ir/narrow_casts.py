"""Casts to and from the narrow types, as arithmetic on integers and float32, which every machine has in vectors.

Code generation takes them so; the interpreter converts by ml_dtypes, and is what the tests compare them with. A float
of 8 bits is a sign, an exponent e with a bias and a mantissa m of M bits: 2**(e - bias) * (1 + m / 2**M), or, where e
is 0, 2**(1 - bias) * m / 2**M. Formats: "FP8 Formats for Deep Learning" (Micikevicius et al., 2022) for e4m3fn and
e5m2, "8-bit Numerical Formats for Deep Neural Networks" (Noune et al., 2022) for fnuz, and the OCP Microscaling
Formats 1.0 for e2m1 and e8m0.
"""

from __future__ import annotations

from ..base.dataclass import dataclass
from ..base.dtype import FLOAT32, FLOAT64, INT32, INT64, DType
from .constants import const
from .expr import Expr, Select
from .intrinsics import call
from .makers import cast, compare, maximum, minimum

_SIZE = 0x7FFFFFFF
"""The bits of a float32 but for its sign; 23 of them are its mantissa, and its bias is 127."""
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
_E8M0_NAN, _E8M0_SMALLEST = 0xFF, 0x00400000  # the second is 2**-127 as float32, a subnormal


@dataclass(frozen=True, slots=True)
class _Format:
    """A float with a sign. Codes are bits without the sign: of the largest number, of what is beyond it, and of NaN."""

    mantissa: int
    bias: int
    largest: int
    beyond: int
    nan: int
    sign: int = 0x80

    @property
    def shift(self) -> int:
        """How many bits of a float32's mantissa are too many."""
        return 23 - self.mantissa

    @property
    def has_negative_zero(self) -> bool:
        return self.nan != 0x80


_FORMATS = {
    "float8_e4m3fn": _Format(3, 7, largest=0x7E, beyond=0x7F, nan=0x7F),
    "float8_e4m3fnuz": _Format(3, 8, largest=0x7F, beyond=0x80, nan=0x80),
    "float8_e5m2": _Format(2, 15, largest=0x7B, beyond=0x7C, nan=0x7E),
    "float8_e5m2fnuz": _Format(2, 16, largest=0x7F, beyond=0x80, nan=0x80),
    "float4_e2m1fn": _Format(1, 1, largest=7, beyond=7, nan=8, sign=8),
}


def narrow_cast(to: DType, value: Expr) -> Expr:
    """``Cast(to, value)``, where one of the two dtypes is narrow, by operations and casts of other types alone."""
    source = value.dtype
    if source.is_narrow:
        wide = _widened(value)
        return wide if wide.dtype is to else _again(to, wide)
    if not to.holds_floats:
        return _narrow_integer(to, value)
    bits = _as("int32", _single(value, source))
    code = _e8m0_code(bits) if to.element == "float8_e8m0fnu" else _code(_FORMATS[to.kind], bits)
    return _as(to.kind, cast("uint8", code))


def _again(to: DType, wide: Expr) -> Expr:
    return narrow_cast(to, wide) if to.is_narrow else cast(to.element, wide)


def _as(kind: str, value: Expr) -> Expr:
    return call(f"as_{kind}", value)


def _choose(condition: Expr, a: Expr | int, b: Expr) -> Expr:
    return Select(condition, const(a, b.dtype) if isinstance(a, int) else a, b)


# To narrow types


def _narrow_integer(to: DType, value: Expr) -> Expr:
    """Floats saturate, integers wrap; the byte has zeros in the bits that the type has not."""
    low, high = to.int_range() or (0, 0)
    byte = "int8" if low else "uint8"
    found = cast(byte, value)
    if value.dtype.is_float:
        found = minimum(maximum(found, low), high)
    return _as(to.kind, cast("uint8", found) & ((1 << to.bits) - 1))


def _single(value: Expr, source: DType) -> Expr:
    """The value as float32; where that is inexact, its last bit is 1, so that rounding it again rounds only once."""
    if source.element is FLOAT32 or source.bits < 32:
        return cast(FLOAT32, value)
    if source.bits == 64 and not source.is_float:
        value = _sticky(cast(INT64, value) if source.is_index else value)
    exact = cast(FLOAT64, value)
    near = cast(FLOAT32, exact)
    back = cast(FLOAT64, near)
    above = cast(INT32, compare(">", call("abs", back), call("abs", exact)))
    return _as("float32", (_as("int32", near) - above) | cast(INT32, compare("!=", back, exact)))


def _sticky(value: Expr) -> Expr:
    """A large integer with the bits that a float64 has no room for replaced by one that says whether any was set."""
    low = value & 0xFFF
    short = (value - low) + cast(value.dtype.element, compare("!=", low, 0)) * 0x800
    large = compare(">", value, 1 << 53)
    if value.dtype.is_signed:
        large = large | compare("<", value, -(1 << 53))
    return Select(large, short, value)


def _code(form: _Format, bits: Expr) -> Expr:
    """The code of a float32, rounded to nearest even, in an int32.

    Normal results are rounded as integers; for subnormal ones a number is added whose last place is the smallest of the
    type.
    """
    size = bits & _SIZE
    rebased = size - ((127 - form.bias) << 23) + ((1 << (form.shift - 1)) - 1)
    normal = (rebased + ((size >> form.shift) & 1)) >> form.shift
    places = const(2.0 ** (24 - form.bias - form.mantissa), FLOAT32)
    place_bits = (127 + 24 - form.bias - form.mantissa) << 23
    subnormal = _as("int32", _as("float32", size) + places) - place_bits
    code = _choose(compare("<", size, (128 - form.bias) << 23), subnormal, normal)
    code = _choose(compare(">", code, form.largest), form.beyond, code)
    code = _choose(compare(">", size, _INFINITY), form.nan, code)
    signed = code | ((bits >> (24 if form.sign == 0x80 else 28)) & form.sign)
    return signed if form.has_negative_zero else _choose(compare("==", code, 0), 0, signed)


def _e8m0_code(bits: Expr) -> Expr:
    """The code of the nearest power of two, the larger of two as near; from 2**-126 on the exponent is the code. The
    smallest is 2**-127."""
    half = _choose(compare("<", bits, 0x00800000), 0x200000, const(0x400000, bits.dtype))  # of the way to the next one
    none = compare("<=", bits, 0) | compare(">=", bits, _INFINITY - 0x400000)
    return _choose(none, _E8M0_NAN, (bits + half) >> 23)


# From narrow types


def _widened(value: Expr) -> Expr:
    """The number of a narrow type as float32, or as int8 or uint8; exact."""
    kind = value.dtype
    code = _as("uint8", value)
    if kind.holds_floats:
        wide = cast(INT32, code)
        return _as(
            "float32", _e8m0_bits(wide) if kind.element == "float8_e8m0fnu" else _bits(_FORMATS[kind.kind], wide)
        )
    if not kind.is_signed:
        return code & ((1 << kind.bits) - 1)
    spare = 8 - kind.bits
    return (_as("int8", code) << spare) >> spare


def _bits(form: _Format, code: Expr) -> Expr:
    """The float32 of a code, as an int32; subnormal ones are whole multiples of the smallest."""
    size = code & (form.sign - 1)
    normal = (size << form.shift) + ((127 - form.bias) << 23)
    subnormal = _as("int32", cast(FLOAT32, size) * const(2.0 ** (1 - form.bias - form.mantissa), FLOAT32))
    bits = _choose(compare("<", size, 1 << form.mantissa), subnormal, normal)
    if form.nan == form.sign:  # the place of -0; e2m1 has none, and ml_dtypes makes NaN its -0
        bits = bits if form.sign == 8 else _choose(compare("==", code, form.nan), _NAN, bits)
    else:
        bits = _choose(compare(">", size, form.largest), _NAN, bits)
    if form.beyond == 0x7C:
        bits = _choose(compare("==", size, form.beyond), _INFINITY, bits)
    return bits | ((code & form.sign) << (24 if form.sign == 0x80 else 28))


def _e8m0_bits(code: Expr) -> Expr:
    bits = _choose(compare("==", code, 0), _E8M0_SMALLEST, code << 23)
    return _choose(compare("==", code, _E8M0_NAN), _NAN, bits)
