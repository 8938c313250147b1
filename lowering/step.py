"""Scheduling steps: data that can be stored, compared and replayed, and a pure function from state to state."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from ..te.tensor import ScanOp
from .invariants import check_invariants
from .report import schedule_error, stale_loop_error
from .state import Inlined, ScheduleState, Stage

JsonValue: TypeAlias = "str | int | float | list[JsonValue] | None"

_PRIMITIVES: dict[str, type[Step]] = {}
"""All kinds of steps by the name of their primitive. Mutable: each subclass of ``Step`` adds itself."""


def primitives() -> Mapping[str, type[Step]]:
    """The kinds of steps there are, by the name of their primitive."""
    return MappingProxyType(_PRIMITIVES)


@dataclass(frozen=True, slots=True)
class Step:
    """Base of all steps. Fields are stage names, loop ids and plain values, so that a step is a record of JSON.

    The method of ``StageView`` named ``primitive`` (of ``Schedule``, if ``on_schedule``) makes the step: it takes the
    fields behind ``stage`` in order, those with a default by name; of the field named ``spread`` the items one by one.
    It gives the loops that the step makes if ``returns_loops``. Traces print as such calls.
    """

    primitive: ClassVar[str]
    on_schedule: ClassVar[bool] = False
    returns_loops: ClassVar[bool] = False
    spread: ClassVar[str] = ""

    stage: str

    def __init_subclass__(cls) -> None:
        _PRIMITIVES[cls.primitive] = cls

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state after this step, after a check that the step itself is legal. Each primitive has its own."""
        raise NotImplementedError

    def next_state(self, state: ScheduleState) -> ScheduleState:
        """The state after this step. Raises ``ScheduleError`` if it is illegal, or breaks what earlier ones made."""
        new = self.apply(state)
        check_invariants(new, state)
        return new

    def to_dict(self) -> dict[str, JsonValue]:
        """The step as a JSON object; ``trace_json`` reads it."""
        return {"primitive": self.primitive} | {f.name: _json_value(getattr(self, f.name)) for f in fields(self)}

    def call(self, write: Callable[[object], str]) -> str:
        """The call that makes this step, as Python; ``write`` gives the text of a value."""
        given = [write(self.stage)] if self.on_schedule else []
        for f in fields(self)[1:]:
            value = getattr(self, f.name)
            if f.name == self.spread:
                given += map(write, value)
            elif f.default is MISSING:
                given.append(write(value))
            elif value != f.default:
                given.append(f"{f.name}={write(value)}")
        target = "s" if self.on_schedule else f"s[{literal(self.stage)}]"
        return f"{target}.{self.primitive}({', '.join(given)})"

    def __str__(self) -> str:
        return self.call(literal)


def literal(value: object) -> str:
    """A step's value as Python, strings in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"[{', '.join(map(literal, value))}]"
    return repr(value)


def _json_value(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [_json_value(item) for item in value]
    assert value is None or isinstance(value, (str, int, float)), f"a step cannot hold {value!r}"
    return value


def leaf_stage(state: ScheduleState, stage_name: str, loops: tuple[str, ...]) -> Stage:
    """The stage, after a check that all the loops are leaves of it, each named once, and may be changed."""
    stage = standing_loops(state, stage_name, loops)
    if isinstance(stage.op, ScanOp):
        updates = ", ".join(dict.fromkeys(state.stage_of(t).name for t in stage.op.update))
        raise schedule_error(
            state,
            f"loop {stage.loop_names()} of {stage.name} runs over the steps of a scan: each reads what those before it "
            "wrote, so they stay one serial loop",
            f"Schedule the loops inside: those of its update, {updates}. The time loop itself can be unrolled.",
            stage.leaves,
        )
    return stage


def standing_loops(state: ScheduleState, stage_name: str, loops: tuple[str, ...]) -> Stage:
    """The stage, after a check that all the loops are leaves of it, each named once."""
    stage = state.stage(stage_name)
    if not isinstance(stage.op, ScanOp):
        stage.compute  # noqa: B018  what has no loops raises
    if isinstance(stage.place, Inlined):
        raise schedule_error(
            state,
            f"{stage.name} is inlined: it has no loops",
            f"Schedule the stages that read it, or take the inlining back by s[{stage.name!r}].compute_root().",
        )
    for loop in loops:
        if loop not in stage.leaves:
            raise stale_loop_error(state, stage, loop)
        if loop in stage.tensorized_leaves:
            assert stage.tensorized is not None
            raise schedule_error(
                state,
                f"loop {stage.loops[loop].name} of {stage.name} is part of the intrinsic {stage.tensorized.intrinsic}",
                "Call tensorize last, when the loops inside are as the intrinsic needs them.",
                [loop],
            )
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
            f"A loop has one annotation, its last step: split or fuse {name} before, and annotate what results.",
            [loop],
        )


def require_unattached(state: ScheduleState, stage: Stage, loop: str, verb: str) -> None:
    """Refuse what would take away the loop that another stage is computed at, or that something is noted at."""
    name = stage.loops[loop].name
    prefetched = [p.tensor for p in stage.prefetches if p.loop == loop]
    if prefetched or loop in stage.notes:
        what = f"{prefetched[0]} is prefetched" if prefetched else f"{stage.notes[loop][0][0]!r} is noted"
        raise schedule_error(
            state,
            f"cannot {verb} loop {name} of {stage.name}: {what} at it",
            f"{verb.capitalize()} before.",
            [loop],
        )
    attached = state.attached(stage.name, loop)
    if attached:
        raise schedule_error(
            state,
            f"cannot {verb} loop {name} of {stage.name}: {attached[0].name} is computed at it",
            f"{verb.capitalize()} first, then compute {attached[0].name} at the loop that results: "
            f"s[{literal(attached[0].name)}].compute_root() takes it out.",
            [loop],
        )
