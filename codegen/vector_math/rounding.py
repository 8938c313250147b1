"""floor, ceil, trunc, round (ties to even), as floats: by instruction where there is one, else by a magic addend.

Adding 2^(p-1) to a smaller magnitude leaves no room for a fraction, so that the sum is rounded as we wish; larger
magnitudes are whole already (H. S. Warren, "Hacker's Delight", 2nd ed. 2012, ch. 17).
"""

from __future__ import annotations

from ...base.target import Target
from ..lanes import Float
from .reduction import MANTISSA


def _has_instruction(target: Target) -> bool:
    return target.has("sse4.1") if target.arch in ("x86_64", "i686") else target.arch in ("aarch64", "arm64")


def round_even(x: Float) -> Float:
    """The nearest whole number, of two the even one; -0 stays -0, infinities and NaN stay."""
    if _has_instruction(x.lanes.target):
        return x.rounding("rint")
    whole = 2.0 ** MANTISSA[x.bits]
    size = x.abs()
    return (size < whole).select(((size + whole) - whole).copysign(x), x)


def trunc(x: Float) -> Float:
    """The next whole number towards 0, with the sign of x."""
    if _has_instruction(x.lanes.target):
        return x.rounding("trunc")
    near = round_even(x)
    return (near.abs() > x.abs()).select((near.abs() - 1.0).copysign(x), near)


def floor(x: Float) -> Float:
    """The largest whole number that is not above x."""
    if _has_instruction(x.lanes.target):
        return x.rounding("floor")
    near = round_even(x)
    return (near > x).select(near - 1.0, near)


def ceil(x: Float) -> Float:
    """The sign of a zero result is that of ``x``: ceil(-0.5) is -0."""
    if _has_instruction(x.lanes.target):
        return x.rounding("ceil")
    near = round_even(x)
    return (near < x).select((near + 1.0).copysign(x), near)
