"""The choice among the implementations of a call, with a record of its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..graph.node import Call
from ..ir.errors import SelectionError
from ..ir.target import Target
from .registry import Op
from .strategy import OpImplementation, strategy_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """One implementation that was looked at; ``rejected`` says why it is not valid here, None if it is."""

    implementation: OpImplementation
    rejected: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen for a call, why, and among what."""

    op: str
    chosen: OpImplementation
    reason: str
    candidates: tuple[Candidate, ...]


def select_implementation(call: Call, target: Target) -> Selection:
    """The valid implementation of highest priority; the first registered among equals.

    Raises ``SelectionError`` where none is valid.
    """
    op = call.op
    assert isinstance(op, Op)
    strategy = strategy_of(op, call.attrs, [a.type for a in call.args], call.type, target)
    candidates = []
    for condition, implementation in strategy.candidates():
        failed = () if condition is None else (*condition.failed(), *condition.undecided())
        problem = f"needs {', '.join(map(str, failed))}" if failed else None
        candidates.append(Candidate(implementation, problem))
    valid = [c.implementation for c in candidates if c.rejected is None]
    if not valid:
        raise SelectionError(f"no implementation of {op.name} serves the call {call}: {_listed(candidates)}")
    best = max(valid, key=lambda i: i.plevel)
    equals = [i for i in valid if i.plevel == best.plevel]
    reason = "the only one" if len(valid) == 1 else f"highest priority {best.plevel} of {len(valid)}"
    if len(equals) > 1:
        reason += f", first registered of {len(equals)}"
    return Selection(op.name, best, reason, tuple(candidates))


def _listed(candidates: Sequence[Candidate]) -> str:
    return "; ".join(f"{c.implementation.name}: {c.rejected}" for c in candidates) or "it has none"
