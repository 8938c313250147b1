"""Minimax polynomials by Remez exchange, as used for the coefficients of ``codegen/vector_math``. Needs mpmath.

``fit(g, weight, low, high, degree, bits)`` minimises max |weight(x) (P(x) - g(x))| on [low, high] and rounds the
coefficients to ``bits`` bits of mantissa (24 or 53), refitting the later ones to each rounded one. For example e^r =
1 + r + r² q(r): ``fit(lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2, -0.347, 0.347, 4, 24)``.
"""

from collections.abc import Callable

from mpmath import matrix, mp, mpf

mp.prec = 300
Real = Callable[[mpf], mpf]


def _horner(coefficients: list[mpf], x: mpf) -> mpf:
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def _alternating(errors: list[mpf], count: int) -> list[int]:
    """Positions of the largest error of each run of one sign; of too many runs, the outer small ones go."""
    best: list[int] = []
    for i, e in enumerate(errors):
        if best and (errors[best[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[best[-1]]):
                best[-1] = i
        else:
            best.append(i)
    while len(best) > count:
        best = best[1:] if abs(errors[best[0]]) < abs(errors[best[-1]]) else best[:-1]
    return best


def _remez(g: Real, weight: Real, low: float, high: float, powers: range) -> list[mpf]:
    n, grid = len(powers), 400
    xs = [mpf(low) + (mpf(high) - low) * (1 - mp.cos(mp.pi * i / (grid - 1))) / 2 for i in range(grid)]
    xs = [x for x in xs if abs(x) > (mpf(high) - low) / 500]  # weights often vanish at 0
    values, weights = [g(x) for x in xs], [weight(x) for x in xs]
    points = [round((len(xs) - 1) * i / n) for i in range(n + 1)]
    for _ in range(25):
        rows = [[*(xs[p] ** k for k in powers), (-1) ** r / weights[p]] for r, p in enumerate(points)]
        *coefficients, level = mp.lu_solve(matrix(rows), matrix([values[p] for p in points]))
        errors = [
            w * (_horner(coefficients, x) * x**powers.start - v) for x, v, w in zip(xs, values, weights, strict=True)
        ]
        points = _alternating(errors, n + 1)
        if len(points) <= n or max(map(abs, errors)) <= abs(level) * mpf("1.001"):
            break
    return coefficients


def fit(g: Real, weight: Real, low: float, high: float, degree: int, bits: int) -> list[mpf]:
    """The coefficients, lowest first. Symmetric intervals may leave the last refit singular: then it is skipped."""
    done: list[mpf] = []
    rest: list[mpf] = []
    for k in range(degree + 1):
        fixed = list(done)
        try:
            rest = _remez(lambda x, fixed=fixed: g(x) - _horner(fixed, x), weight, low, high, range(k, degree + 1))
        except ZeroDivisionError:
            rest = rest[1:]
        with mp.workprec(bits):
            done.append(+rest[0])
    return done
