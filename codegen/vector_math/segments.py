"""Functions by polynomials on 32 segments; each coefficient's 32 values stand in two registers, to be permuted.

For positive arguments, of float32 on AVX-512. Segments are quarters of octaves, so that the upper bits of the argument
are the number of its segment; the first one goes down to 0, where results must be exact relative to themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from ...base.dataclass import dataclass
from ..lanes import Float
from . import avx512

COUNT, PER_OCTAVE = 32, 4
DEGREE = 5
_INDEX_SHIFT = 21
"""Right of it are the bits of a float32 below the quarter of its octave."""


@dataclass(frozen=True, slots=True)
class Segments:
    """``f(x) = d + c0 + d P(d)`` with ``d = x - origin``, the columns by segment; ``low`` is where the second begins.

    Beyond ``high``, f is what it is there. The columns are turned so that the last bits of a segment's number in
    ``bits of x >> 21`` are its place.
    """

    low: float
    high: float
    origins: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]


def fit(function: Callable[[float], float], at_zero: Sequence[float], octaves: range, high: float) -> Segments:
    """Interpolate between Chebyshev points; near 0 the series ``at_zero`` serves, up to the fifth power of x."""
    rows: list[tuple[float, Sequence[float]]] = [(0.0, (0.0, *at_zero))]
    for k in range(1, COUNT):
        size = 2.0 ** octaves[k // PER_OCTAVE]
        left = size * (1 + k % PER_OCTAVE / PER_OCTAVE)
        rows.append(_fit_segment(function, left, left + size / PER_OCTAVE))
    first = int(np.float32(2.0 ** octaves[0]).view(np.uint32)) >> _INDEX_SHIFT
    turned = [rows[(k - first) % COUNT] for k in range(COUNT)]
    columns = zip(*((c[0], c[1] - 1, *c[2:]) for _, c in turned), strict=True)
    return Segments(2.0 ** octaves[0], high, tuple(origin for origin, _ in turned), tuple(columns))


def _fit_segment(function: Callable[[float], float], left: float, right: float) -> tuple[float, Sequence[float]]:
    """An origin near the middle, of those where c0 is the nearest to a float32; and the coefficients there."""
    shape = Chebyshev.interpolate(np.vectorize(function), DEGREE, [left, right]).convert(
        kind=Polynomial, domain=[-1, 1]
    )
    middle = np.float32((left + right) / 2).view(np.uint32)
    origins = [float((middle + np.uint32(k)).view(np.float32)) for k in range(64)]
    origin = min(origins, key=lambda x: abs(float(np.float32(shape(x))) - shape(x)))
    moved = shape(Polynomial([origin, 1.0]))
    return origin, [float(c) for c in moved.cutdeg(DEGREE).coef] + [0.0] * (DEGREE - moved.degree())


def by_segments(size: Float, segments: Segments) -> Float:
    """f(size), for size of no sign; NaN stays NaN."""
    bounded = size.at_most(segments.high)
    index = bounded.at_least(segments.low).as_int() >> _INDEX_SHIFT
    d = bounded - avx512.look_up(index, segments.origins)
    first, *others = (avx512.look_up(index, column) for column in segments.coefficients)
    total = others[-1]
    for term in reversed(others[:-1]):
        total = total.fma(d, term)
    return total.fma(d, first + d)
