"""Scheduling steps: data that can be stored, compared and replayed, and a pure function from state to state."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

from .report import schedule_error, stale_loop_error
from .state import Inlined, ScheduleState, Stage

JsonValue: TypeAlias = "str | int | list[str] | None"


@dataclass(frozen=True, slots=True)
class Step:
    """Base of all steps. ``primitive`` is the name users call; fields are stage names, loop ids and numbers."""

    primitive: ClassVar[str]

    stage: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state after this step. Raises ``ScheduleError`` if the step is illegal there."""
        raise NotImplementedError

    def to_json(self) -> dict[str, JsonValue]:
        """A dict of JSON values, from which ``step_from_json`` makes the step again."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"primitive": self.primitive} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def __str__(self) -> str:
        """The call that makes this step, as Python."""
        arguments = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name != "stage"]
        return f"s[{self.stage!r}].{self.primitive}({', '.join(arguments)})"


def leaf_stage(state: ScheduleState, stage_name: str, loops: tuple[str, ...]) -> Stage:
    """The stage, after a check that all the loops are leaves of it, each named once."""
    stage = state.stage(stage_name)
    stage.compute  # noqa: B018  an input has no loops: raises
    if isinstance(stage.place, Inlined):
        raise schedule_error(
            state,
            f"{stage.name} is inlined: it has no loops",
            f"Schedule the stages that read it, or take the inlining back by s[{stage.name!r}].compute_root().",
        )
    for loop in loops:
        if loop not in stage.leaves:
            raise stale_loop_error(state, stage, loop)
    if len(set(loops)) != len(loops):
        raise schedule_error(state, f"a loop of {stage.name} is named twice", "Name each loop once.", loops)
    return stage


def require_serial(state: ScheduleState, stage: Stage, loop: str, verb: str) -> None:
    """Refuse what would lose an annotation."""
    kind = stage.kind(loop)
    if kind != "serial":
        name = stage.loops[loop].name
        raise schedule_error(
            state,
            f"cannot {verb} loop {name} of {stage.name}: it is {kind} already",
            f"{verb} before it is {kind}.",
            [loop],
        )


def require_unattached(state: ScheduleState, stage: Stage, loop: str, verb: str) -> None:
    """Refuse what would take away the loop that another stage is computed at."""
    attached = state.attached(stage.name, loop)
    if attached:
        name = stage.loops[loop].name
        raise schedule_error(
            state,
            f"cannot {verb} loop {name} of {stage.name}: {attached[0].name} is computed at it",
            f"{verb} first, then call compute_at with the loop that results.",
            [loop],
        )
