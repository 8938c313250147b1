"""Conditions of implementations, in conjunctive normal form, and what is known of them for a call.

    condition ::= clause and … and clause
    clause    ::= literal or … or literal
    literal   ::= comparison of extents and numbers | bool, where it depends on dtypes or attributes

``OpStrategy.specialized`` makes them; selection asks for verdicts; what symbolic extents leave open becomes guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import SelectionError
from ...ir.constants import const
from ...ir.contents import free_vars
from ...ir.expr import Compare, Const, Expr, Logical, Unary
from ...ir.facts import NEGATED, Facts, nonnegative
from ...ir.simplify import simplify

MAX_CLAUSES = 32
"""More than this and a condition is not one that a reader, or a dispatcher, should go through."""


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """A disjunction of literals; ``text`` is what a reader sees: the comparisons, unless ``clause`` gave it a name.
    ``of_terms`` says that it is on extents that are summed over: where these count samples, samples are mixed anyway.
    """

    condition: Expr
    text: str
    of_terms: bool = False

    def __str__(self) -> str:
        return self.text


ClauseLike: TypeAlias = Clause | Expr | bool


def clause(text: str, condition: Expr | bool) -> Clause:
    """A clause with a name that explanations show: ``clause("a is of float32", a.dtype is FLOAT32)``. ``condition``
    is a comparison of extents, or a bool."""
    return Clause(const(condition, "bool") if isinstance(condition, bool) else condition, text)


def of_terms(condition: Expr) -> Clause:
    """A clause on extents that are summed over. It may decide for a batch that is open, since samples are mixed
    there anyway."""
    return Clause(condition, str(condition), of_terms=True)


@dataclass(frozen=True, slots=True, eq=False)
class SpecializedCondition:
    """Clauses that must all hold. Make one by ``condition_of``."""

    clauses: tuple[Clause, ...]

    def verdicts(self) -> tuple[tuple[Clause, bool | None], ...]:
        """Each clause with whether it holds, given those before it; None is open until the extents are known."""
        facts = _extents(self.clauses)
        found = []
        for part in self.clauses:
            holds = _decided(part.condition, facts)
            found.append((part, holds))
            facts = facts if holds is False else facts.with_condition(part.condition)
        return tuple(found)

    def guards(self) -> tuple[Expr, ...]:
        """What is left to test at run time: the open clauses, simplified, without those that follow from others."""
        left = [part.condition for part, holds in self.verdicts() if holds is None]
        for guard in tuple(left):
            others = [g for g in left if g is not guard]
            if _decided(guard, reduce(Facts.with_condition, others, _extents(self.clauses))):
                left = others
        return tuple(simplify(guard, _extents(self.clauses)) for guard in left)

    def __str__(self) -> str:
        return " and ".join(f"({c})" if " or " in c.text else c.text for c in self.clauses)


def condition_of(clauses: Sequence[ClauseLike], outer: SpecializedCondition | None = None) -> SpecializedCondition:
    """The condition under which all clauses hold, and those of ``outer``, in conjunctive normal form.

    Raises ``SelectionError`` for what is no condition on extents, and for one with more than 32 clauses.
    """
    made = list(outer.clauses if outer is not None else ())
    for given in clauses:
        named = given if isinstance(given, Clause) else None
        whole = given.condition if isinstance(given, Clause) else given
        for literals in _normal_form(_as_bool(whole), negated=False):
            parts = list(dict.fromkeys(literals))
            text = named.text if named is not None else " or ".join(map(str, parts))
            summed = named is not None and named.of_terms
            made.append(Clause(reduce(lambda a, b: Logical("or", a, b), parts), text, summed))
    if len(made) > MAX_CLAUSES:
        raise SelectionError(f"a condition has {len(made)} clauses; at most {MAX_CLAUSES} are taken")
    return SpecializedCondition(tuple(made))


def _as_bool(given: object) -> Expr:
    if isinstance(given, bool):
        return const(given, "bool")
    if isinstance(given, (Const, Compare, Logical, Unary)) and given.dtype.is_bool:
        return given
    raise SelectionError(
        f"a clause is a comparison of extents, te.any or te.all of such, or a bool, not {given!r}; "
        "compare dtypes by `is`"
    )


def _normal_form(e: Expr, negated: bool) -> list[tuple[Expr, ...]]:
    """The clauses of an expression, or of its negation: each the literals of which one must hold."""
    match e:
        case Unary("not", x):
            return _normal_form(x, not negated)
        case Logical(op, a, b):
            left, right = _normal_form(a, negated), _normal_form(b, negated)
            if (op == "and") is not negated:
                return left + right
            if len(left) * len(right) > MAX_CLAUSES:
                raise SelectionError(f"a condition has more than {MAX_CLAUSES} clauses in conjunctive normal form: {e}")
            return [x + y for x in left for y in right]
        case Compare(op, a, b) if a.dtype.is_index:
            return [(Compare(NEGATED[op], a, b) if negated else e,)]
        case Const(bool(value)):
            return [(const(value is not negated, "bool"),)]
    raise SelectionError(f"a clause compares extents, attributes and numbers; {e} does not")


def _extents(clauses: Sequence[Clause]) -> Facts:
    """The facts that no extent is negative."""
    return nonnegative(dict.fromkeys(v for part in clauses for v in free_vars(part.condition)))


def _decided(condition: Expr, facts: Facts) -> bool | None:
    match simplify(condition, facts):
        case Const(bool(value)):
            return value
    return None
