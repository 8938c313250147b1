"""Which divisions of indices cannot be by zero, where the loop runs in which they stand.

A fused loop over n·m iterations takes its variable apart by i // m and i % m: where an iteration runs, n·m is positive,
and so is m. Of other divisors, as n + 2, the facts say whether they are. Part of ``vectorize``, which evaluates such
divisions also where all lanes are off, and of ``name_quotients``, which computes them once an iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...ir.constants import ONE, const_int
from ...ir.contents import divisions_of, expressions_of, reads_memory, statements_of, variables_of
from ...ir.expr import Binary, Expr
from ...ir.facts import Facts, prove
from ...ir.linear import linear_of
from ...ir.stmt import For, Stmt


class SafeDivisions:
    """Finds the safe divisions of a function. Mutable: remembers of which divisors the facts at its entry say that they
    are positive."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._positive: dict[Expr, bool] = {}

    def of(self, body: Stmt) -> frozenset[Binary]:
        """All safe divisions of a body by what is no constant."""
        if not divides_by_variables(body):
            return frozenset()
        loops = (stmt for stmt in statements_of(body) if isinstance(stmt, For))
        return frozenset(division for loop in loops for division in self.of_loop(loop))

    def of_loop(self, loop: For) -> Iterator[Binary]:
        """The divisions of a loop's variable that are safe in the loop."""
        extent = factors_of(loop.extent)
        for node in dict.fromkeys(_divisions(loop.body)):
            if (
                _is_by_variable(node)
                and (self._is_factor(node.b, extent) or self._is_positive(node.b))
                and loop.var in variables_of(node)
                and not reads_memory(node)
            ):
                yield node

    @staticmethod
    def _is_factor(divisor: Expr, extent: Counter[Expr] | None) -> bool:
        factors = None if extent is None else factors_of(divisor)
        return factors is not None and extent is not None and not factors - extent

    def _is_positive(self, divisor: Expr) -> bool:
        if divisor not in self._positive:
            self._positive[divisor] = prove(divisor >= ONE, self._facts)
        return self._positive[divisor]


def divides_by_variables(body: Stmt) -> bool:
    """Whether some index is divided by what is no constant, as where extents are open."""
    return any(map(_is_by_variable, _divisions(body)))


def _divisions(body: Stmt) -> Iterator[Binary]:
    """The divisions in the expressions of a body, in order of appearance."""
    return (division for stmt in statements_of(body) for e in expressions_of(stmt) for division in divisions_of(e))


def factors_of(e: Expr) -> Counter[Expr] | None:
    """The factors of a product of what is not constant; None of others."""
    form = linear_of(e) if e.dtype.is_index and const_int(e) is None else None
    if form is None or form.constant or len(form.terms) != 1:
        return None
    (term,) = form.terms.values()
    return Counter(term.factors)


def _is_by_variable(division: Binary) -> bool:
    return division.dtype.is_index and division.dtype.lanes == 1 and const_int(division.b) is None
