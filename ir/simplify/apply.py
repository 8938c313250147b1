"""Tries the rules of one node whose operands are simplified already: folding, vectors, then the rules of the table."""

from __future__ import annotations

from ..constants import FALSE, TRUE
from ..expr import Binary, Broadcast, Call, Cast, Compare, Const, Expr, IfThenElse, Logical, Select, Unary
from ..facts import Facts
from ..scalar import eval_binary, eval_cast, eval_compare, eval_unary
from .cast import absolute, cast_any, invert_data, negate_float
from .logical import not_bool
from .table import BINARY, CHOICE, COMPARE, LOGICAL, BinaryRules, domain_of
from .vector import lift_broadcast


def apply_rules(e: Expr, facts: Facts) -> Expr | None:
    """What a node becomes by one rule; None if none applies. A scalar result stands for all lanes."""
    lifted = lift_broadcast(e)
    if lifted is not None:
        return lifted
    match e:
        case Binary(op, a, b):
            folded = _fold_binary(e)
            return folded if folded is not None else _first(BINARY.get((op, domain_of(a.dtype)), ()), a, b, facts)
        case Compare(op, Const(value=x), Const(value=y)):
            return TRUE if eval_compare(op, x, y) else FALSE
        case Compare(op, a, b):
            return _first(COMPARE.get((op, domain_of(a.dtype)), ()), a, b, facts)
        case Logical(op, a, b):
            return _first(LOGICAL[op], a, b, facts)
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            return next((r for rules in CHOICE if (r := rules(_scalar(condition), a, b, facts)) is not None), None)
        case Unary(op, Const(value=x)):
            return Const(eval_unary(op, e.dtype, x), e.dtype)
        case Unary("not", a):
            return not_bool(a, facts)
        case Unary("-", a):
            return negate_float(a, facts)
        case Unary("~", a):
            return invert_data(a, facts)
        case Cast(to, Const(value=x)):
            return Const(eval_cast(to, x), to)
        case Cast(to, a):
            return cast_any(to, a, facts)
        case Call("abs", (a,)) if not a.dtype.is_float:
            return absolute(a, facts)
        case _:
            return None


def _first(rules: tuple[BinaryRules, ...], a: Expr, b: Expr, facts: Facts) -> Expr | None:
    left, right = _scalar(a), _scalar(b)
    for rule in rules:
        if (result := rule(left, right, facts)) is not None:
            return result
    return None


def _scalar(e: Expr) -> Expr:
    """Rules see a broadcast as the scalar that it is in every lane; what they build is broadcast again."""
    return e.value if isinstance(e, Broadcast) else e


def _fold_binary(e: Binary) -> Expr | None:
    match e:
        case Binary("//" | "%", _, Const(value=0)) if e.dtype.is_index:
            return None
        case Binary(op, Const(value=x), Const(value=y)):
            return Const(eval_binary(op, e.dtype, x, y), e.dtype)
        case _:
            return None
