"""Floats times powers of ten, each product as the sum of two float64.

That is Dekker's way ("A floating-point technique for extending the available precision", 1971), and exact far beyond
what is rounded when numbers are read and written.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import FLOAT64
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.expr import Expr

_FAR = 300
"""The greatest power of ten of the table: twice that is beyond float64."""
POWERS = ("powers", "powers of ten from -300 to 300, float64[601, 2], the sum of two each")
"""The argument by which operators are given the table."""


@cache
def powers_of_ten() -> npt.NDArray[Any]:
    """10**k for k from -300 to 300, each as the sum of two float64."""
    exact = [Fraction(10) ** k for k in range(-_FAR, _FAR + 1)]
    return np.array([(float(x), float(x - Fraction(float(x)))) for x in exact])


@dataclass(frozen=True, slots=True, eq=False)
class FloatPair:
    """A number as the sum of two float64, the second far smaller."""

    high: Expr
    low: Expr


@dataclass(frozen=True, slots=True, eq=False)
class DecimalScale:
    """Multiplies by powers of ten."""

    builder: IRBuilder
    powers: BufferPtr

    def scaled(self, x: FloatPair, exponent: Expr) -> FloatPair:
        """x · 10**exponent, in two steps, since not all powers are float64."""
        near = self._let("near", te.maximum(te.minimum(exponent, _FAR), -_FAR))
        return self._times(self._times(x, near), self._let("far", te.maximum(te.minimum(exponent - near, _FAR), -_FAR)))

    def _times(self, x: FloatPair, exponent: Expr) -> FloatPair:
        high, low = (self._let("power", self.powers[exponent + _FAR, k]) for k in range(2))
        product = self._let("product", te.arithmetic_fence(x.high * high))
        error = self._let("error", te.fma(x.high, high, -product))
        beyond = self._let("beyond", ~te.isfinite(product))
        small = te.arithmetic_fence(error + (x.high * low + x.low * high))
        rest = self._let("rest", te.select(beyond, te.const(0.0, FLOAT64), small))
        total = self._let("total", te.arithmetic_fence(product + rest))
        left = te.arithmetic_fence(rest - te.arithmetic_fence(total - product))
        return FloatPair(total, self._let("low", te.select(beyond, te.const(0.0, FLOAT64), left)))

    def _let(self, name: str, value: Expr) -> Expr:
        return self.builder.let(name, value).as_expr()
