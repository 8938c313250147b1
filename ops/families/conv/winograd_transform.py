"""The matrices of Winograd's convolutions F(m, r), made from interpolation points, and sums over them as expressions.

m outputs of a filter of r taps are y = Aᵀ((G g) ⊙ (Bᵀ d)) for n = m + r - 1 inputs d and filter g. Cook and Toom:
both are polynomials, evaluated at n - 1 points and at infinity, multiplied there, and interpolated; transposed, that
is a convolution as networks have it (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). In two
dimensions the matrices are applied along each axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass
from ....ir.expr import Expr
from ..bilinear import weighted_sum

Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]

TAPS = 3
_MAGNITUDES: dict[int, tuple[Fraction, ...]] = {
    2: (Fraction(1),),
    4: (Fraction(3, 4), Fraction(3, 2)),
    6: (Fraction(1, 2), Fraction(1), Fraction(2)),
}
"""The points of each F(m, 3), beside 0 and infinity: both signs of each. The error grows as they spread, and as they
come close to each other. These were the best measured of those with few binary digits, whose Aᵀ and Bᵀ are exact."""
SIZES = tuple(_MAGNITUDES)
"""The m for which there are points."""


@dataclass(frozen=True, slots=True)
class Transforms:
    """The matrices of an F(m, r): of outputs Aᵀ, of filters G, of inputs Bᵀ."""

    outputs: Matrix
    filters: Matrix
    inputs: Matrix


@cache
def transforms(outputs: int) -> Transforms:
    """The transforms of F(outputs, 3). Exact: Σⱼ Aᵀ[i, j] · G[j, k] · Bᵀ[j, l] is 1 where l = i + k, and 0
    elsewhere."""
    points = (Fraction(0), *(sign * p for p in _MAGNITUDES[outputs] for sign in (1, -1)))
    to_outputs = [[p**i for p in points] + [Fraction(i == outputs - 1)] for i in range(outputs)]
    to_filters = [[p**k / _spread(p, points) for k in range(TAPS)] for p in points]
    to_inputs = [[*_with_roots([q for q in points if q is not p]), Fraction(0)] for p in points]
    return Transforms(
        _matrix(to_outputs),
        _matrix([*to_filters, [Fraction(k == TAPS - 1) for k in range(TAPS)]]),
        _matrix([*to_inputs, _with_roots(points)]),
    )


def _matrix(rows: Sequence[Sequence[Fraction]]) -> Matrix:
    return tuple(tuple(row) for row in rows)


def _spread(point: Fraction, points: Sequence[Fraction]) -> Fraction:
    """The product of a point's distances from the others."""
    return math.prod((point - q for q in points if q is not point), start=Fraction(1))


def _with_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients, lowest first, of the polynomial Π (x - root)."""
    product = [Fraction(1)]
    for root in roots:
        product = [
            high - root * low for low, high in zip([*product, Fraction(0)], [Fraction(0), *product], strict=True)
        ]
    return product


@cache
def filter_matrix(outputs: int) -> npt.NDArray[np.float64]:
    """G ⊗ G, which takes a filter w of 3 × 3 taps to G w Gᵀ, both written row after row: [n², 9]."""
    g = transforms(outputs).filters
    return np.array([[float(a * b) for a in rows for b in columns] for rows in g for columns in g])


def input_row(coefficients: Row, terms: Sequence[Expr]) -> Expr:
    """A row of Bᵀ times inputs. The rows of ±p agree in the terms of even positions, and differ in the sign of the
    others: e + o and e - o, written so that they share e and o."""
    parts: list[tuple[Fraction, Expr]] = []
    for parity in (0, 1):
        chosen = [(c, t) for c, t in zip(coefficients[parity::2], terms[parity::2], strict=True) if c]
        if chosen:
            scale = abs(chosen[-1][0]) if chosen[0][0] > 0 else -abs(chosen[-1][0])
            parts.append((scale, weighted_sum([(c / scale, t) for c, t in chosen])))
    return weighted_sum(parts)


def output_row(coefficients: Row, terms: Sequence[Expr]) -> Expr:
    """A row of Aᵀ times products. The columns of ±p agree up to a sign, so that their terms are added or subtracted
    before they are multiplied, which all rows share."""
    parts = [(coefficients[0], terms[0]), (coefficients[-1], terms[-1])]
    for at in range(1, len(terms) - 1, 2):
        plus, minus = terms[at : at + 2]
        same = coefficients[at] == coefficients[at + 1]
        parts.append((coefficients[at], plus + minus if same else plus - minus))
    return weighted_sum([part for part in parts if part[0]])
