"""What linear forms tell of index expressions: how far apart two are, and how one moves with a variable."""

from __future__ import annotations

from ...base.dtype import INDEX
from ...ir.constants import ZERO, const
from ...ir.contents import substitute, variables_of
from ...ir.expr import Expr, Var
from ...ir.linear import linear_of
from .folding import add, multiply


def difference(a: Expr, b: Expr) -> int | None:
    """``a - b`` where that is one number whatever the variables; scalar index expressions."""
    if a is b:
        return 0
    form = linear_of(a).plus(linear_of(b), -1)
    return form.constant if form.is_constant else None


def affine_in(value: Expr, var: Var) -> tuple[int, Expr] | None:
    """``(factor, rest)`` with ``value = factor * var + rest``, ``rest`` free of ``var``; None if it is not so."""
    if var not in variables_of(value):
        return 0, value
    terms = linear_of(value).terms
    factor = terms[var,].coefficient if (var,) in terms else 0
    rest = substitute(value, {var: ZERO})
    others = (atom for atoms in terms if len(atoms) > 1 or atoms[0] is not var for atom in atoms)
    if not any(var in variables_of(atom) for atom in others):
        return factor, rest
    matches = difference(value, add(multiply(const(factor, INDEX), var), rest)) == 0
    return (factor, rest) if matches else None
