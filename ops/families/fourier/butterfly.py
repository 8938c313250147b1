"""Discrete Fourier transforms of a few complex numbers, as expressions over their real and imaginary parts.

A length that is a product is made of transforms of its factors (Cooley and Tukey, "An Algorithm for the Machine
Calculation of Complex Fourier Series", 1965). Of an odd prime, elements j and r - j are added and subtracted first, so
that each multiplication serves two results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from .... import te
from ....base.dataclass import dataclass
from ....ir.expr import Expr
from .roots import roots_of_unity


@dataclass(frozen=True, slots=True, eq=False)
class Complex:
    """A complex number whose parts are expressions."""

    real: Expr
    imaginary: Expr

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.real + other.real, self.imaginary + other.imaginary)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imaginary - other.imaginary)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(
            self.real * other.real - self.imaginary * other.imaginary,
            self.real * other.imaginary + self.imaginary * other.real,
        )

    @property
    def conjugate(self) -> Complex:
        """The number with its imaginary part negated."""
        return Complex(self.real, -self.imaginary)

    @property
    def times_i(self) -> Complex:
        """The number times i, which takes no multiplication."""
        return Complex(-self.imaginary, self.real)

    def scaled(self, factor: float) -> Complex:
        """The number times a real factor, in the dtype of its parts."""
        number = te.const(factor, self.real.dtype)
        return Complex(self.real * number, self.imaginary * number)

    def turned(self, root: complex) -> Complex:
        """The product by a root of unity; by one of the first four, and of the first eight, it takes less."""
        if root.imag == 0:
            return self if root.real == 1 else Complex(-self.real, -self.imaginary)
        if root.real == 0:
            return self.times_i if root.imag == 1 else Complex(self.imaginary, -self.real)
        kind = self.real.dtype
        return self * Complex(te.const(root.real, kind), te.const(root.imag, kind))


def root_of_unity(numerator: int, length: int, inverse: bool) -> complex:
    """exp(-2πi · numerator / length), or its conjugate for the inverse transform."""
    return complex(roots_of_unity(np.array(numerator), length, inverse))


def butterfly(values: Sequence[Complex], inverse: bool) -> list[Complex]:
    """Element k of the result is the sum of ``values[j]`` times exp(∓2πi · j · k / r) over the r values."""
    count = len(values)
    if count == 1:
        return [*values]
    if count == 2:
        return [values[0] + values[1], values[0] - values[1]]
    small = next((factor for factor in (4, 2, 3, 5, 7, 11, 13) if count % factor == 0), count)
    return _of_prime(values, inverse) if small == count and count != 4 else _composite(values, _inner(count), inverse)


def _inner(count: int) -> int:
    """The factor whose transforms come first."""
    return 2 if count == 4 else next(f for f in (4, 2, 3, 5, 7, 11, 13) if count % f == 0)


def _composite(values: Sequence[Complex], inner: int, inverse: bool) -> list[Complex]:
    count, outer = len(values), len(values) // inner
    first = [butterfly(values[start::outer], inverse) for start in range(outer)]
    result: list[Complex] = [values[0]] * count
    for k in range(inner):
        turned = [row[k].turned(root_of_unity(j * k, count, inverse)) for j, row in enumerate(first)]
        result[k::inner] = butterfly(turned, inverse)
    return result


def _of_prime(values: Sequence[Complex], inverse: bool) -> list[Complex]:
    count = len(values)
    half = range(1, count // 2 + 1)
    sums = [values[j] + values[count - j] for j in half]
    differences = [values[j] - values[count - j] for j in half]
    result = [reduce(add, sums, values[0])] * count
    for k in half:
        roots = [root_of_unity(j * k, count, inverse) for j in half]
        even = reduce(add, (s.scaled(root.real) for s, root in zip(sums, roots, strict=True)), values[0])
        odd = reduce(add, (d.scaled(root.imag) for d, root in zip(differences, roots, strict=True))).times_i
        result[k], result[count - k] = even + odd, even - odd
    return result
