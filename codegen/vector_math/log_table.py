"""Logarithms of float32 by a table of 32 reciprocals, on AVX-512; ``log.py`` calls these where registers hold it.

x = 2^k m with m in [¾, 1½), whose upper five bits number its segment; f = m r - 1 for a reciprocal r from the middle of
the segment is at most 1/32, so that a short polynomial gives log(1 + f), and log x = k log 2 - log r + log(1 + f)
(P. T. P. Tang, ACM TOMS 16, 1990). On both sides of 1, r is 1: there f = x - 1 alone counts, and errors are relative
to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from ...base.dataclass import dataclass
from ..lanes import Float
from . import avx512
from .reduction import two_sum

_COUNT = 32
_INDEX_SHIFT = 18
"""Right of it are the bits of a float32 below the 32nd of its octave."""
_CANDIDATES = 256


@dataclass(frozen=True, slots=True)
class Base:
    """A base by the function of doubles, and by P with log(1 + f) = f P(f) for f in [-1/64, 1/32], error 2^-26.5."""

    function: Callable[[float], float]
    near_one: tuple[float, float, float, float]

    @property
    def octave(self) -> float:
        """The logarithm of 2 to this base, rounded to float32."""
        return float(np.float32(self.function(2.0)))


_E = Base(math.log, (1.0, -0.5000017285, 0.3333489895, -0.2424259931))
_TWO = Base(math.log2, (1.4426950216, -0.7213500142, 0.4809209108, -0.3497483432))
_TEN = Base(math.log10, (0.4342944920, -0.2171479911, 0.1447716206, -0.1052878872))


@dataclass(frozen=True, slots=True)
class _Table:
    """A reciprocal and minus its logarithm, for each segment."""

    reciprocals: tuple[float, ...]
    logarithms: tuple[float, ...]


@cache
def _table(base: Base, octave: float = 0.0) -> _Table:
    """``octave`` is added to the logarithms of m below 1."""
    rows = [_segment(base, octave, k) for k in range(_COUNT)]
    reciprocals, logarithms = zip(*rows, strict=True)
    return _Table(reciprocals, logarithms)


def _segment(base: Base, octave: float, k: int) -> tuple[float, float]:
    """The reciprocal near the middle of a segment whose logarithm is nearest to a float32."""
    size, added = (1.0, 0.0) if k < _COUNT // 2 else (0.5, octave)
    if k in (0, _COUNT - 1):
        return 1.0, added
    middle = np.float32(1 / (size * (1 + (k + 0.5) / _COUNT))).view(np.uint32)
    nearby = (middle + np.arange(_CANDIDATES, dtype=np.uint32)).view(np.float32)
    exact = [added - base.function(float(r)) for r in nearby]
    rounded = [float(np.float32(value)) for value in exact]
    best = min(range(_CANDIDATES), key=lambda i: abs(rounded[i] - exact[i]))
    return float(nearby[best]), rounded[best]


def log(x: Float) -> Float:
    """The natural logarithm of float32."""
    return _logarithm(x, _E)


def log2(x: Float) -> Float:
    """The logarithm to base 2 of float32."""
    return _logarithm(x, _TWO)


def _logarithm(x: Float, base: Base) -> Float:
    """Where log 2 is near enough to a float32. k is that of m in [1, 2): for m below 1, the table has the octave."""
    m, k = avx512.mantissa(x), avx512.exponent(x)
    reciprocal, minus_log = _look_up(m, _table(base, base.octave))
    whole = k + minus_log if base.octave == 1.0 else k.fma(base.octave, minus_log)
    return avx512.logarithm_at_ends(x, _add_near_one(m.fma(reciprocal, -1.0), base, whole))


def log10(x: Float, octave: tuple[float, float]) -> Float:
    """log₁₀(x), with log 2, the ``octave``, in two parts: as one float32 it is off by 0.8 of its last bits."""
    k, m = avx512.split_exponent(x)
    reciprocal, minus_log = _look_up(m, _table(_TEN))
    high, low = octave
    rest = _add_near_one(m.fma(reciprocal, -1.0), _TEN, k * low)
    return avx512.logarithm_at_ends(x, k.fma(high, minus_log) + rest)


def log1p(x: Float) -> Float:
    """The logarithm of the rounded u = 1 + x; what the rounding lost is added to f, in its scale."""
    u = two_sum(x.same(1.0), x)
    k, m = avx512.split_exponent(u.hi)
    reciprocal, minus_log = _look_up(m, _table(_E))
    f = avx512.scale(u.lo, -k).fma(reciprocal, m.fma(reciprocal, -1.0))
    result = _add_near_one(f, _E, k.fma(_E.octave, minus_log))
    return avx512.logarithm_at_ends(u.hi, result).copysign(x)


def _look_up(m: Float, table: _Table) -> tuple[Float, Float]:
    index = m.as_int() >> _INDEX_SHIFT
    return avx512.look_up(index, table.reciprocals), avx512.look_up(index, table.logarithms)


def _add_near_one(f: Float, base: Base, whole: Float) -> Float:
    """whole + log(1 + f). The term of f enters last, so that little is rounded where whole is 0."""
    first, second, third, fourth = base.near_one
    square, rest = f * f, f.fma(f.fma(fourth, third), second)
    near = square.fma(rest, f) if first == 1.0 else f.fma(first, square * rest)
    return near + whole
