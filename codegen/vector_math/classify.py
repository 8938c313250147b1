"""isnan, isinf, isfinite."""

from __future__ import annotations

import math

from ..lanes import Float, Mask


def isnan(x: Float) -> Mask:
    return x.is_nan()


def isinf(x: Float) -> Mask:
    return x.abs().equals(math.inf)


def isfinite(x: Float) -> Mask:
    return x.abs() < math.inf
