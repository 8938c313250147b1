"""Reductions that do in one pass what commonly takes two: softmax's maximum and sum, a mean and a variance.

Their partial results can be merged, so schedules may fold terms in groups.
"""

from __future__ import annotations

from ..base.dtype import DType, dtype
from ..base.errors import ExpressionError
from ..ir.constants import const
from ..ir.expr import Expr, ExprLike, Select
from ..ir.intrinsics import call
from ..ir.makers import as_expr, binary
from ..ir.makers import cast as cast_expr
from .math import min_value
from .reducers import Axes, check_holds, count_terms, reducer


def max_and_sum_exp(source: ExprLike, axis: Axes, where: Expr | None = None) -> tuple[Expr, ...]:
    """The maximum of floats, and the sum of ``exp(x - maximum)``: a pair for a compute with two outputs.

    ``exp(x - maximum) / sum`` is softmax, ``maximum + log(sum)`` the logarithm of the sum of all ``exp(x)``. Of two
    partial results the sum of the smaller maximum is scaled::

        m = max(m_a, m_b)        s = s_a * exp(m_a - m) + s_b * exp(m_b - m)

    Elements equal to the maximum count 1 each, infinite ones too. If there is a NaN, both are NaN. Over empty axes the
    maximum is -infinity, and the sum 0.

    Source: Milakov and Gimelshein, Online normalizer calculation for softmax (2018), arXiv:1805.02867.
    """
    value = _float("max_and_sum_exp", source)
    return _max_and_sum_exp((value, const(1, value.dtype)), axis, where)


def _merge_sums(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, Expr]:
    (m_a, s_a), (m_b, s_b) = a, b
    a_leads = m_a >= m_b
    # One of the two scales is 1. So is the other where both maxima are one infinity, and their difference NaN.
    scale = Select(m_a == m_b, const(1, m_a.dtype), call("exp", -call("abs", m_a - m_b)))
    return binary("max", m_a, m_b), Select(a_leads, s_a, s_b) + Select(a_leads, s_b, s_a) * scale


_max_and_sum_exp = reducer("max_and_sum_exp", _merge_sums, lambda kinds: (min_value(kinds[0]), const(0, kinds[1])))


def welford(
    source: ExprLike, axis: Axes, where: Expr | None = None, count_dtype: str | DType = "int64"
) -> tuple[Expr, ...]:
    """The mean of floats, the sum of squared differences from it, and their number: three outputs of a compute.

    ``m2 / count`` is the variance, ``m2 / (count - 1)`` that of a sample. Nothing cancels where the mean is large. Two
    partial results are merged by::

        n = n_a + n_b        d = mean_b - mean_a
        mean = mean_a + d * n_b / n        m2 = m2_a + m2_b + d * d * n_a * n_b / n

    A NaN makes mean and m2 NaN; an infinity makes the mean infinite (NaN beside the other infinity) and m2 NaN. Over
    empty axes all three are 0. ``"int32"`` counts make faster vector code.

    Sources: Welford, Note on a method for calculating corrected sums of squares and products, Technometrics 4 (1962);
    Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances (1979).
    """
    value = _float("welford", source)
    check_holds(count_dtype, count_terms(axis), "count_dtype")
    return _welford((value, const(0, value.dtype), const(1, dtype(count_dtype))), axis, where)


def _merge_moments(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, Expr, Expr]:
    (mean_a, m2_a, n_a), (mean_b, m2_b, n_b) = a, b
    kind = mean_a.dtype
    n = n_a + n_b
    share = Select(n == const(0, n.dtype), const(0, kind), cast_expr(kind, n_b) / cast_expr(kind, n))
    gap = mean_b - mean_a
    finite = call("isfinite", gap)
    mean = Select(finite, mean_a + gap * share, mean_a * (const(1, kind) - share) + mean_b * share)
    # In this order nothing overflows on the way to 0 where one side is empty.
    spread = Select(finite, gap * (cast_expr(kind, n_a) * share) * gap, const(float("nan"), kind))
    return mean, m2_a + m2_b + spread, n


_welford = reducer("welford", _merge_moments, lambda kinds: tuple(const(0, kind) for kind in kinds))


def _float(name: str, source: ExprLike) -> Expr:
    value = as_expr(source)
    if not value.dtype.is_float:
        raise ExpressionError(f"{name} reduces floats, found {value.dtype}; te.cast converts them")
    return value
