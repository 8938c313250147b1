"""The choice among the implementations of a call, with a record of its reasons.

Strategies offer, and this module chooses: nothing of an implementation runs before it is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..codegen.options import Precision
from ..graph.node import Call
from ..ir.errors import SelectionError
from ..ir.target import Target
from ..ops.registry import Op
from ..ops.strategy import OpImplementation, SpecializedCondition, strategy_of

Verdict: TypeAlias = tuple[str, bool | None]
"""A clause of a condition as text, and whether it holds; None where symbolic extents leave that open."""


KEEPS_ORDER = "the order of the definition's sums, as strict precision does"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One implementation that was looked at: it is valid, or guarded, or rejected."""

    implementation: OpImplementation
    condition: SpecializedCondition | None
    verdicts: tuple[Verdict, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """The clauses that do not hold here."""
        return tuple(clause for clause, holds in self.verdicts if holds is False)

    @property
    def guards(self) -> tuple[str, ...]:
        """The clauses that would have to be tested at run time."""
        return tuple(clause for clause, holds in self.verdicts if holds is None)

    @property
    def rejected(self) -> str | None:
        """Why it can never serve the call; None if it can."""
        return f"needs {', '.join(self.failed)}" if self.failed else None

    @property
    def guarded(self) -> bool:
        """Whether it serves the call for some extents of the symbolic dimensions only, as far as can be told."""
        return not self.failed and bool(self.guards)

    @property
    def valid(self) -> bool:
        """Whether it serves the call, whatever its symbolic dimensions turn out to be."""
        return not self.failed and not self.guards


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen for a call, why, and among what."""

    op: str
    chosen: OpImplementation
    reason: str
    candidates: tuple[Candidate, ...]


def get_valid_implementations(call: Call, target: Target, precision: Precision = "standard") -> tuple[Candidate, ...]:
    """The candidates for a call that hold for all its extents, in order of registration."""
    return tuple(c for c in candidates_of(call, target, precision) if c.valid)


def candidates_of(call: Call, target: Target, precision: Precision = "standard") -> tuple[Candidate, ...]:
    """All that the operator's strategy offers for a call, in order of registration.

    Raises ``SelectionError`` where the operator has no strategy for the target.
    """
    assert isinstance(call.op, Op)
    offered = strategy_of(call.op, call.attrs, [a.type for a in call.args], call.type, target).candidates()
    return tuple(Candidate(made, condition, _verdicts(condition, made, precision)) for condition, made in offered)


def _verdicts(
    condition: SpecializedCondition | None, implementation: OpImplementation, precision: Precision
) -> tuple[Verdict, ...]:
    clauses = () if condition is None else condition.verdicts()
    own = ((KEEPS_ORDER, implementation.keeps_order),) if precision == "strict" else ()
    return (*((str(clause), holds) for clause, holds in clauses), *own)


def select_implementation(call: Call, target: Target, precision: Precision = "standard") -> Selection:
    """The valid implementation of highest priority; the first registered among equals.

    Raises ``SelectionError`` where none is valid.
    """
    candidates = candidates_of(call, target, precision)
    valid = [c.implementation for c in candidates if c.valid]
    if not valid:
        types = ", ".join(str(a.type) for a in call.args)
        raise SelectionError(f"no implementation serves {call.op.name}({types}): {_listed(candidates)}")
    best = max(valid, key=lambda i: i.plevel)  # the first among equals
    return Selection(call.op.name, best, _reason(best, valid), candidates)


def _reason(best: OpImplementation, valid: Sequence[OpImplementation]) -> str:
    if len(valid) == 1:
        return "the only one"
    equals = [i for i in valid if i.plevel == best.plevel]
    tie = f", the first registered of {len(equals)} (a tie with {_names(equals[1:])})" if len(equals) > 1 else ""
    return f"highest priority {best.plevel} of {len(valid)}{tie}"


def _names(implementations: Sequence[OpImplementation]) -> str:
    return ", ".join(i.name for i in implementations)


def _listed(candidates: Sequence[Candidate]) -> str:
    return "; ".join(f"{c.implementation.name}: {_why_not(c)}" for c in candidates) or "it has none"


def _why_not(candidate: Candidate) -> str:
    if candidate.rejected is not None:
        return candidate.rejected
    return f"holds only where {', '.join(candidate.guards)}"
