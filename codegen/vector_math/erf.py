"""The error function: x + x P(x²) up to 1, and 1 - e^P(|x| - 1) beyond, where erf exceeds 0.84 and the rest is small.

The form follows W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969), with
the logarithm of erfc fitted by one polynomial in place of his rational functions: so there is no division. Where a
register holds a table, polynomials on segments take fewer steps.
"""

from __future__ import annotations

import math
from functools import cache

from ..lanes import Float, polynomial
from . import avx512
from .exp import exp_in_range
from .segments import Segments, by_segments, fit

# P(z) where erf x = x + x P(x²), |x| ≤ 1; error 2^-29.6 and 2^-56.1.
_NEAR = {
    32: (0.1283791661, -0.3761262894, 0.1128361821, -0.02685512602, 0.005190733355, -0.0008030750323, 7.920303324e-05),
    64: (
        0.1283791670955126, -0.3761263890318375, 0.11283791670954854, -0.026866170645073507, 0.0052239776247936555,
        -0.000854832697971067, 0.00012055331077659121, -1.4925594573091898e-05, 1.6460990861878394e-06,
        -1.6350223286591064e-07, 1.4659242344649124e-08, -1.1371007156427929e-09, 5.954370065152828e-11,
    ),
}  # fmt: skip

# P(t) = ln erfc(1 + t) up to where erf rounds to 1; error relative to erf 2^-27 and 2^-58.8.
_FAR = {
    32: (-1.84960556, -2.638963938, -0.84315449, -0.04134281725, 0.009600196965, -0.001595717389, 0.0001212861753),
    64: (
        -1.8496055099332482, -2.6389675142347913, -0.8431072563584885, -0.04156109804646749, 0.010033825433759806,
        -0.001977903018456875, 0.0002373247038879159, 2.6270339427849994e-05, -2.7140862550376706e-05,
        9.576483883596142e-06, -2.0167656386371826e-06, 9.976564770262583e-08, 1.303905862656354e-07,
        -7.106350557957771e-08, 2.3246660226156653e-08, -5.591563885734164e-09, 1.0203136389180263e-09,
        -1.3856439866612452e-10, 1.3242282213217555e-11, -7.941922647758421e-13, 2.2443524806320656e-14,
    ),
}  # fmt: skip
_SATURATES = {32: 3.95, 64: 5.95}


@cache
def _segments() -> Segments:
    slope = 2 / math.sqrt(math.pi)
    return fit(math.erf, (slope, 0.0, -slope / 3, 0.0, slope / 10), range(-6, 2), high=3.99)


def erf(x: Float) -> Float:
    """The error function, which is odd, so that the sign of x is put on that of |x|; beyond ``_SATURATES`` it is 1 when
    rounded. NaN stays NaN."""
    if avx512.has_tables(x):
        return by_segments(x.abs(), _segments()).copysign(x)
    near = x.mul_add(polynomial(x * x, _NEAR[x.bits]), x)
    size = x.abs().clamp(0.0, _SATURATES[x.bits])
    far = 1.0 - exp_in_range(polynomial(size - 1.0, _FAR[x.bits]))
    return (size < 1.0).select(near, far).copysign(x)
