"""Modular analysis: what is known of an integer modulo something; for alignment and the rules of ``//`` and ``%``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..base.dataclass import dataclass
from .expr import Binary, Const, Expr, IfThenElse, Let, Select
from .linear import atoms_of, is_lane_number, is_ring_node, linear_of, product_is_atom

if TYPE_CHECKING:
    from .facts import Facts


@dataclass(frozen=True, slots=True)
class Congruence:
    """A set of integers: all ``x`` with ``x ≡ base (mod coefficient)``. Coefficient 0 says ``x == base``, 1 says
    nothing."""

    coefficient: int
    base: int

    def __post_init__(self) -> None:
        if self.coefficient:
            object.__setattr__(self, "base", self.base % self.coefficient)

    def __add__(self, other: Congruence) -> Congruence:
        return Congruence(math.gcd(self.coefficient, other.coefficient), self.base + other.base)

    def __mul__(self, other: Congruence) -> Congruence:
        a, b = self, other
        return Congruence(
            math.gcd(a.coefficient * b.coefficient, a.coefficient * b.base, b.coefficient * a.base), a.base * b.base
        )

    def union(self, other: Congruence) -> Congruence:
        """What holds of a value that is one or the other."""
        return Congruence(math.gcd(self.coefficient, other.coefficient, self.base - other.base), self.base)

    def intersect(self, other: Congruence) -> Congruence:
        """The stronger of two statements that both hold (their combination is not worked out)."""
        return self if self.coefficient == 0 or 0 < other.coefficient <= self.coefficient else other

    def modulo(self, divisor: int) -> int | None:
        """``x % divisor`` if it is known."""
        return self.base % divisor if self.coefficient % divisor == 0 else None


ANYTHING = Congruence(1, 0)


def modulus_of(e: Expr, facts: Facts | None = None) -> Congruence:
    """The strongest congruence known of an index expression (of all its lanes); ``ANYTHING`` for other dtypes."""
    return ModularAnalysis({}).of(e) if facts is None else facts.modulus(e)


class ModularAnalysis:
    """Congruences under fixed assumptions. Mutable: it remembers what it computed."""

    def __init__(self, known: Mapping[Expr, Congruence]) -> None:
        self._known = known
        self._done: dict[Expr, Congruence] = {}

    def of(self, e: Expr) -> Congruence:
        """The strongest congruence that is known of an expression. Operands are analysed first, on a stack of its own,
        so that the depth of an expression is not limited."""
        stack = [e]
        while stack:
            node = stack[-1]
            missing = [x for x in self._operands(node) if x not in self._done] if node not in self._done else []
            if missing:
                stack += missing
                continue
            stack.pop()
            if node not in self._done:
                self._done[node] = self._transfer(node)
        return self._done[e]

    def _operands(self, e: Expr) -> tuple[Expr, ...]:
        match e:
            case _ if not e.dtype.is_index or is_lane_number(e):
                return ()
            case Binary("*", a, b) if product_is_atom(e):
                return (a, b)
            case _ if is_ring_node(e):
                return tuple(atoms_of(linear_of(e)))
            case Binary("min" | "max" | "//" | "%", a, b) | Select(_, a, b) | IfThenElse(_, a, b):
                return (a, b)
            case Let(_, _, body):
                return (body,)
            case _:
                return ()

    def _transfer(self, e: Expr) -> Congruence:
        known = self._known.get(e, ANYTHING)
        return self._congruence(e).intersect(known)

    def _congruence(self, e: Expr) -> Congruence:
        of = self._done
        match e:
            case Const(value=int() as value) if e.dtype.is_index:
                return Congruence(0, value)
            case _ if not e.dtype.is_index or is_lane_number(e):
                return ANYTHING
            case Binary("*", a, b) if product_is_atom(e):
                return of[a] * of[b]
            case _ if is_ring_node(e):
                return self._sum(e)
            case Binary("min" | "max", a, b) | Select(_, a, b) | IfThenElse(_, a, b):
                return of[a].union(of[b])
            case Binary("//", a, Const(value=int() as c)) if c and of[a].coefficient % c == 0 and of[a].base % c == 0:
                return Congruence(of[a].coefficient // abs(c), of[a].base // c)
            case Binary("%", a, Const(value=int() as c)) if c:
                return Congruence(math.gcd(of[a].coefficient, c), of[a].base)
            case Let(_, _, body):
                return of[body]
            case _:
                return ANYTHING

    def _sum(self, e: Expr) -> Congruence:
        form = linear_of(e)
        total = Congruence(0, form.constant)
        for term in form.terms.values():
            product = Congruence(0, term.coefficient)
            for factor in term.factors:
                product = product * self._done.get(factor, ANYTHING)
            total = total + product
        return total
