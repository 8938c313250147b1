"""Activations as expressions of one element, which elementwise operators and the cells of recurrent ones share."""

from __future__ import annotations

from ... import te
from ...ir.expr import Expr


def softplus(x: Expr) -> Expr:
    """log(1 + exp(x)), which does not overflow."""
    return te.maximum(x, 0) + te.log1p(te.exp(-te.abs(x)))


def softsign(x: Expr) -> Expr:
    """The quotient x / (1 + |x|), which is between -1 and 1."""
    return x / (te.abs(x) + 1)


def leaky_relu(x: Expr, alpha: float) -> Expr:
    """x where it is 0 or more, else alpha * x."""
    return te.select(x < 0, x * alpha, x)


def thresholded_relu(x: Expr, alpha: float) -> Expr:
    """x where it is above alpha, else 0."""
    return te.select(x > alpha, x, 0.0)


def elu(x: Expr, alpha: float) -> Expr:
    """x where it is 0 or more, else alpha * (exp(x) - 1)."""
    return te.select(x < 0, te.expm1(x) * alpha, x)


def clamp(x: Expr, low: float, high: float) -> Expr:
    """x held between two numbers; NaN stays NaN."""
    return te.minimum(te.maximum(x, low), high)


def hard_sigmoid(x: Expr, alpha: float, beta: float) -> Expr:
    """alpha * x + beta, held between 0 and 1."""
    return clamp(x * alpha + beta, 0, 1)
