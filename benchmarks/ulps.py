"""Errors in ulp: exact values of the math intrinsics in a wider format, and the distance of computed ones from them.

Used by ``accuracy.py`` and by the vector math tests. Nothing here comes from the code that it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, x.dtype.type(1)) / (1 + e)


def _erf(x: Array) -> Array:
    """Kummer's series up to 3, all of whose terms have one sign; beyond, 1 - erfc, whose error hardly counts."""
    size = np.minimum(np.abs(x), 3)
    term = total = size
    for n in range(1, 100):
        term = term * (2 * size * size) / (2 * n + 1)
        total = total + term
    near = total * np.exp(-size * size) * 2 / np.sqrt(np.arccos(x.dtype.type(-1)))
    beyond = np.abs(x) >= 3
    complement = np.zeros_like(x)
    complement[beyond] = [math.erfc(v) for v in np.abs(x[beyond]).astype(np.float64)]
    return np.copysign(np.where(np.isnan(x), x, np.where(beyond, 1 - complement, near)), x)


EXACT: dict[str, Callable[..., Array]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    "pow": np.power,
}
"""Evaluated on arguments of a wider format, the values are exact enough to judge a narrower one."""


def errors(got: Array, exact: Array) -> Array:
    """The distance of each result from the exact value (of a wider dtype), in ulp of the result's format.

    Infinity counts as the power of two after the largest number. NaN in one place only, or a zero of the wrong sign, is
    infinitely wrong.
    """
    info = np.finfo(got.dtype)
    edge = np.ldexp(exact.dtype.type(1), int(info.maxexp))
    with np.errstate(all="ignore"):
        wide = np.clip(got.astype(exact.dtype), -edge, edge)
        true = np.clip(exact, -edge, edge)
        _, exponent = np.frexp(true)
        ulp = np.ldexp(exact.dtype.type(1), np.maximum(exponent - 1, int(info.minexp)) - int(info.nmant))
        distance = np.abs(wide - true) / ulp
        distance[np.isnan(got) & np.isnan(exact)] = 0
        wrong_zero = (got == 0) & (exact.astype(got.dtype) == 0) & (np.signbit(got) != np.signbit(exact))
        distance[np.isnan(distance) | wrong_zero] = np.inf
    return distance


def sample(kind: type[np.floating[Any]], seed: int = 0) -> Array:
    """Every exponent with round and random mantissas and both signs, and dense stretches where functions bend."""
    random = np.random.default_rng(seed)
    info = np.finfo(kind)
    pattern = np.dtype(f"u{info.dtype.itemsize}").type
    exponents = np.arange(1 << info.iexp, dtype=pattern) << pattern(info.nmant)
    top = (1 << info.nmant) - 1
    mantissas = np.array([0, 1, top, top // 2 + 1, *random.integers(0, top, 4 if info.iexp > 8 else 24)], pattern)
    positive = (exponents[:, None] | mantissas).ravel().view(kind)
    dense = [random.uniform(-width, width, 4096) for width in (1.0, 4.0, 30.0, 120.0, 800.0)]
    return np.concatenate([positive, -positive, *(d.astype(kind) for d in dense)])
