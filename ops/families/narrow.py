"""How numbers are prepared for casts to the narrow floats, where the cast itself is not what is asked for.

A cast in expressions goes as ml_dtypes does: what is too large for a float of 8 bits becomes infinity or NaN. ONNX's
Cast and QuantizeLinear take the largest number instead, unless told otherwise, and round to powers of two (e8m0) in
three ways.
"""

from __future__ import annotations

import ml_dtypes

from ... import te
from ...base.dtype import DType
from ...ir.expr import Expr

E8M0 = "float8_e8m0fnu"
_LEAST, _MOST = 2.0**-127, 2.0**127
"""The range of e8m0."""
_EXPONENT, _FRACTION = -(1 << 23), (1 << 23) - 1
"""The bits of a float32: sign and exponent, and the others."""


def largest(kind: DType) -> float:
    """The largest finite number of a narrow float."""
    return float(ml_dtypes.finfo(kind.to_numpy()).max)  # type: ignore[no-untyped-call]


def narrowed(x: Expr, to: DType, *, saturate: bool, round_mode: str) -> Expr:
    """x as a narrow float. ``saturate`` makes what is beyond its largest number that number; e8m0 is rounded as
    ``round_mode`` says."""
    if to == E8M0:
        return te.cast(_power_of_two(te.cast(x, "float32"), round_mode, saturate), to)
    if saturate:
        limit = largest(to)
        wide = x if x.dtype.is_float else te.cast(x, "float64" if x.dtype.bits > 16 else "float32")
        x = te.maximum(te.minimum(wide, limit), -limit)
    return te.cast(x, to)


def _power_of_two(x: Expr, round_mode: str, saturate: bool) -> Expr:
    """A number that the cast to e8m0 takes for the power of two that is wanted. It makes numbers below 0 NaN."""
    bits = te.as_bits(x, "int32")
    if round_mode == "nearest":
        rounded = x
    elif round_mode == "down":
        rounded = te.select(x < 2 * _LEAST, _LEAST, te.as_bits(bits & _EXPONENT, "float32"))
    else:
        above = te.select(x <= _LEAST, _LEAST, 2 * _LEAST)
        rounded = te.select(x <= 2 * _LEAST, above, te.as_bits((bits + _FRACTION) & _EXPONENT, "float32"))
    if saturate:
        rounded = te.maximum(te.minimum(rounded, _MOST), _LEAST)
    finite = te.select(x < (0.0 if saturate else _LEAST), -1.0, rounded)
    return te.select(te.isnan(x), x, finite)
