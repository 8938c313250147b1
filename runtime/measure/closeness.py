"""How far the outputs of one program are from those of another, as one number."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .compare import tolerance_of


def distance(output: Array, expected: Array) -> float:
    """The largest difference of any element, relative to the largest finite magnitude expected; inf where one of the
    two is not finite, or the shapes differ. Of integers and bools, the share of elements that differ."""
    if output.shape != expected.shape:
        return np.inf
    if output.dtype.kind in "iub":
        return float(np.mean(output != expected)) if output.size else 0.0
    a, b = output.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):  # infinities that do not agree
        difference = np.where(same, 0.0, np.abs(a - b))
    largest = float(difference.max(initial=0.0) / (scale or 1.0))
    return largest if np.isfinite(largest) else np.inf


def allowed_distance(output: Array) -> float:
    """The tolerance for an output: integers agree."""
    return 0.0 if output.dtype.kind in "iub" else tolerance_of(output.dtype)
