"""Errors of schedules: the loop nest with the offending loops marked, the rule, and what to do instead."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import assert_never

from ..base.errors import LoopwrightError, ScheduleError
from ..ir.expr import Var
from ..ir.printer import Marker, stmt_text
from ..ir.stmt import For, Stmt
from .nest.realize import realize
from .relations import AccumulateRelation, FactorRelation, FuseRelation, RoundUpRelation, SplitRelation
from .stage import Stage
from .state import ScheduleState


def nest_text(state: ScheduleState, marked: Iterable[str] = (), mark: str = "# <-- here") -> str:
    """The loop nest of a state, the given loops marked."""
    realized = realize(state)
    return stmt_text(realized.body, _marker(realized.loop_of, set(marked), mark))


def nest_diff(before: ScheduleState, after: ScheduleState, old: str, new: str) -> str:
    """A unified diff of two nests under the given headings; empty if they print the same."""
    lines = difflib.unified_diff(nest_text(before).splitlines(), nest_text(after).splitlines(), old, new, lineterm="")
    return "\n".join(lines)


def _marker(loop_of: Mapping[Var, str], marked: set[str], mark: str) -> Marker:
    def note(stmt: Stmt) -> str | None:
        return mark if isinstance(stmt, For) and loop_of.get(stmt.var) in marked else None

    return note


def schedule_error(state: ScheduleState, problem: str, advice: str, loops: Iterable[str] = ()) -> ScheduleError:
    """A ``ScheduleError`` that says what is wrong and what to do, and shows the nest as it stands."""
    try:
        nest = nest_text(state, loops)
    except LoopwrightError as error:
        nest = f"(the loop nest cannot be shown: {error})"
    return ScheduleError(f"{problem}\n{advice}\nThe loop nest as it stands:\n{nest}")


def stale_loop_error(state: ScheduleState, stage: Stage, loop: str) -> ScheduleError:
    """The error for a loop that no longer stands, which says what became of it."""
    if loop not in stage.loops:
        known = ", ".join(_names_and_ids(stage, stage.leaves)) or "none"
        return schedule_error(
            state,
            f"{stage.name} has no loop {loop}; its loops are {known}",
            "Use what s[tensor].op.axis, split, fuse or s[tensor].loops gave, a name, or an id as a trace has it.",
        )
    name = stage.loops[loop].name
    for relation in stage.relations:
        if loop in relation.consumed:
            left = relation.made
            match relation:
                case SplitRelation():
                    how = "split into"
                case FuseRelation(outer, inner):
                    how = f"({stage.loops[outer].name} and {stage.loops[inner].name}) fused into"
                case RoundUpRelation():
                    how = "rounded up to"
                case FactorRelation(stage=partial):
                    how = f"(rfactor) moved it to {partial}, and left"
                case AccumulateRelation(along=along):
                    how, left = "(accumulate) folds its terms along", (along,)
                case _:
                    assert_never(relation)
            made = " and ".join(_names_and_ids(stage, left))
            return schedule_error(
                state,
                f"loop {name} ({loop}) of {stage.name} is stale: an earlier step {how} {made}",
                f"Use one of the loops that stand now: {stage.loop_names()}.",
                left,
            )
    return schedule_error(state, f"loop {name} ({loop}) of {stage.name} is gone", "Start from s[tensor].loops.")


def _names_and_ids(stage: Stage, loops: Iterable[str]) -> list[str]:
    return [f"{stage.loops[loop].name} ({loop})" for loop in loops]


def literal(value: object) -> str:
    """A step's value as Python, strings in double quotes: traces print it, and the calls that errors advise."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value)
