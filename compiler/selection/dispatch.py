"""Which kernels a function with symbolic dimensions holds, so that each run takes the implementation that its shapes
would have got had they been known.

The clauses of a condition that symbolic dimensions leave open are guards. The function's anchor gets a kernel for each
implementation of higher priority than the one that serves all shapes, or of the same and less cost at the size that
costs take open extents to have. They are tested in this order; the one for all shapes comes last. A guard that the
number of samples decides is left out where what it guards sums in another order than the kernels behind it: a sample
gets the same bits in any batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import reduce

from ...base.dataclass import dataclass
from ...ir.constants import FALSE, TRUE
from ...ir.contents import free_vars
from ...ir.expr import Expr, Logical, Var
from ...ir.facts import Facts, nonnegative
from ...ir.simplify import simplify
from ...ops.definition.strategy import OpImplementation
from .select import Candidate, Selection

MAX_KERNELS = 4
"""So many kernels a function holds at most, the one for all shapes among them: each costs code and time to compile."""


@dataclass(frozen=True, slots=True, eq=False)
class DispatchedKernel:
    """An implementation, and the condition under which it runs if none before it did; None holds always."""

    guard: Expr | None
    implementation: OpImplementation


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """The kernels for one call in the order in which they are tested; those that were one too many; and the
    implementations that would have a sample's sums depend on its batch."""

    selection: Selection
    kernels: tuple[DispatchedKernel, ...]
    left_out: tuple[DispatchedKernel, ...]
    barred: tuple[OpImplementation, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each of the kernels is there, for a reader."""
        return tuple(self._reason(kernel) for kernel in self.kernels)

    def _reason(self, kernel: DispatchedKernel) -> str:
        if kernel.guard is not None:
            return f"where {kernel.guard}: priority {kernel.implementation.plevel}"
        reason = self.selection.reason if kernel.implementation is self.selection.chosen else "it holds for all others"
        if len(self.kernels) > 1:
            reason = f"otherwise: {reason}"
        if self.left_out:
            names = ", ".join(f"{k.implementation.name} where {k.guard}" for k in self.left_out)
            reason += f"; left out, for a function holds at most {MAX_KERNELS} kernels: {names}"
        if self.barred:
            names = ", ".join(made.name for made in self.barred)
            reason += f"; left out, for the batch would decide in which order a sample is summed: {names}"
        return reason


def dispatch(selection: Selection, batch: Iterable[Var] = ()) -> Dispatch:
    """The kernels that serve a call for which an implementation for all shapes was selected. ``batch`` are the
    dimensions that may not decide in which order floats are summed."""
    better, barred = _of_one_order(_in_order(selection), selection.chosen, frozenset(batch))
    clauses = [part for c in better if c.condition is not None for part in c.condition.clauses]
    symbols = dict.fromkeys(v for part in clauses for v in free_vars(part.condition))
    guarded = [*_guarded(better, nonnegative(symbols))]
    last = DispatchedKernel(None, selection.chosen)
    if guarded and guarded[-1].guard is None:
        last = guarded.pop()
    kept = guarded[: MAX_KERNELS - 1]
    return Dispatch(selection, (*kept, last), tuple(guarded[MAX_KERNELS - 1 :]), barred)


def _in_order(selection: Selection) -> Sequence[Candidate]:
    """The guarded candidates that would be chosen over the selected one if their guards held, the best first."""
    names = [c.implementation.name for c in selection.candidates]
    at = names.index(selection.chosen.name)
    better = [
        c
        for number, c in enumerate(selection.candidates)
        if c.guarded and (c.implementation.rank, number) < (selection.chosen.rank, at)
    ]
    return sorted(better, key=lambda c: c.implementation.rank)


def _of_one_order(
    candidates: Sequence[Candidate], last: OpImplementation, batch: Set[Var]
) -> tuple[list[Candidate], tuple[OpImplementation, ...]]:
    """The candidates without those whose guard is on the batch, and whose order of sums is not that of all that may run
    in their place; and these."""
    kept: list[Candidate] = []
    barred: list[OpImplementation] = []
    behind = [last]
    for candidate in reversed(candidates):
        made = candidate.implementation
        alike = made.sums is not None and all(other.sums == made.sums for other in behind)
        if _depends_on(candidate, batch) and not alike:
            barred.append(made)
        else:
            kept.append(candidate)
            behind.append(made)
    return kept[::-1], tuple(reversed(barred))


def _depends_on(candidate: Candidate, dims: Set[Var]) -> bool:
    assert candidate.condition is not None
    open_ones = (part for part, holds in candidate.condition.verdicts() if holds is None and not part.of_terms)
    return not dims.isdisjoint(dim for part in open_ones for dim in free_vars(part.condition))


def _guarded(candidates: Sequence[Candidate], facts: Facts) -> Iterator[DispatchedKernel]:
    """A kernel for each that can be reached; one that holds wherever no guard before it did is the last."""
    for candidate in candidates:
        assert candidate.condition is not None
        parts = (simplify(guard, facts) for guard in candidate.condition.guards())
        guard = reduce(lambda a, b: Logical("and", a, b), [p for p in parts if p is not TRUE], TRUE)
        guard = simplify(guard, facts)
        if guard is FALSE:
            continue
        if guard is TRUE:
            yield DispatchedKernel(None, candidate.implementation)
            return
        yield DispatchedKernel(guard, candidate.implementation)
        facts = facts.without(guard)
