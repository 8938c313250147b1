"""The way back from the normal forms of ``linear.py``: the expression that a form is written as."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

from ..base.dtype import DType
from .expr import Binary, Broadcast, Const, Expr, Ramp, Unary
from .linear import Factors, Linear, is_lane_number, is_sum, linear_of
from .scalar import wrap


def expr_of(form: Linear, lanes: int = 1) -> Expr:
    """The expression of a normal form, such as ``i*16 + j + 3``; read again, it gives the same terms in order."""
    if lanes == 1:
        return _sum(form.kind, [(t.coefficient, t.factors) for t in form.terms.values()], form.constant)
    base, stride, rest = Linear(form.kind, {}, form.constant), Linear(form.kind), []
    for term in form.terms.values():
        scalars = tuple(f for f in term.factors if f.dtype.lanes == 1)
        if len(scalars) == len(term.factors):
            base.accumulate(term.coefficient, scalars)
        elif len(scalars) == len(term.factors) - 1 and is_lane_number(
            next(f for f in term.factors if f not in set(scalars))
        ):
            stride.accumulate(term.coefficient, scalars)
        else:
            rest.append((term.coefficient, term.factors))
    core: Expr | None = None
    if stride.terms or stride.constant:
        core = Ramp(expr_of(base), expr_of(stride), lanes)
    elif not rest or base.terms or base.constant:
        core = Broadcast(expr_of(base), lanes)
    return _sum(form.kind, rest, 0, core)


def _sum(kind: DType, terms: list[tuple[int, Factors]], constant: int, last: Expr | None = None) -> Expr:
    """``terms + constant`` or ``terms + last``: a positive term comes first if there is one."""
    if last is None and (constant or not terms):
        last = Const(wrap(kind, constant), kind)
    first = next((k for k, t in enumerate(terms) if _adds(kind, t[0])), None)
    total: Expr | None = None
    if first is not None:
        total = term_expr(*terms[first])
        terms = terms[:first] + terms[first + 1 :]
    elif last is not None and (not isinstance(last, Const) or constant > 0 or not terms):
        total, last, constant = last, None, 0
    for coefficient, factors in terms:
        if total is None:
            total = Unary("-", term_expr(1, factors)) if coefficient == -1 else term_expr(coefficient, factors)
        elif _adds(kind, coefficient):
            total = Binary("+", total, term_expr(coefficient, factors))
        else:
            total = Binary("-", total, term_expr(-coefficient, factors))
    assert total is not None  # there are terms, or a last one
    if last is None:
        return total
    if isinstance(last, Const) and not _adds(kind, constant):
        return Binary("-", total, Const(wrap(kind, -constant), kind))
    return Binary("+", total, last)


def _adds(kind: DType, coefficient: int) -> bool:
    """Whether a term is written with a plus: its coefficient is positive, or has no positive counterpart."""
    return coefficient > 0 or (not kind.is_index and coefficient == -(1 << (kind.bits - 1)))


def term_expr(coefficient: int, factors: Factors) -> Expr:
    """``factors * coefficient``: scalars are multiplied before they are broadcast to the lanes of the others."""
    kind = factors[0].dtype.element
    ordered = sorted(factors, key=is_sum)
    vectors = [f for f in ordered if f.dtype.lanes > 1]
    scalars = [f for f in ordered if f.dtype.lanes == 1]
    if coefficient != 1:
        scalars.append(Const(wrap(kind, coefficient), kind))
    if vectors and scalars:
        vectors.append(Broadcast(_multiply(scalars), vectors[0].dtype.lanes))
    return _multiply(vectors or scalars)


def _multiply(factors: list[Expr]) -> Expr:
    return reduce(lambda a, b: Binary("*", a, b), factors)


def replace_atoms(form: Linear, values: Mapping[Expr, Expr]) -> Linear:
    """The normal form with atoms replaced by expressions."""
    result = Linear(form.kind, {}, form.constant)
    for term in form.terms.values():
        if not any(f in values for f in term.factors):
            result.accumulate(term.coefficient, term.factors)
            continue
        replaced = tuple(values.get(f, f) for f in term.factors)
        kept = tuple(f for f in term.factors if f not in values)
        numbers = [f.value for f in replaced if isinstance(f, Const)]
        if len(kept) + len(numbers) == len(replaced) and not any(map(is_sum, kept)):
            result.accumulate(math.prod(map(int, numbers), start=term.coefficient), kept)
        else:
            result.add(linear_of(term_expr(term.coefficient, replaced)))
    return result
