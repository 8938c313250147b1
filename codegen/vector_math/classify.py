"""isnan, isinf, isfinite."""

from __future__ import annotations

import math

from ..lanes import Float, Mask


def isnan(x: Float) -> Mask:
    """The lanes that hold NaN."""
    return x.is_nan()


def isinf(x: Float) -> Mask:
    """The lanes that hold an infinity, of either sign."""
    return x.abs().equals(math.inf)


def isfinite(x: Float) -> Mask:
    """The lanes that hold neither an infinity nor NaN."""
    return x.abs() < math.inf
