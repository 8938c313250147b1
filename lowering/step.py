"""Scheduling steps: data that can be stored, compared and replayed, and a pure function from state to state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, fields
from typing import ClassVar, TypeAlias

from ..base.brief import one_line
from ..base.dataclass import dataclass
from .report import literal
from .rules.invariants import check_invariants
from .state import ScheduleState

JsonValue: TypeAlias = "str | int | float | list[JsonValue] | None"

STEPS: dict[str, type[Step]] = {}
"""The kinds of steps that were imported, by the name of their primitive. Mutable: each subclass of ``Step`` adds
itself; ``lowering.primitives`` has all of them."""

_EACH_STEP: ContextVar[bool] = ContextVar("loopwright_rules_each_step", default=True)
"""Whether the rules of a schedule are checked behind each step."""


@contextmanager
def rules_checked(*, each_step: bool) -> Iterator[None]:
    """Steps of this block have the rules of schedules checked behind each, or not, so that the caller has to
    (``check_invariants``) before it gives a schedule away. Each step's own conditions are checked all the same."""
    token = _EACH_STEP.set(each_step)
    try:
        yield
    finally:
        _EACH_STEP.reset(token)


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """The base class of all steps. Fields are stage names, loop ids and plain values, so that a step is a record of
    JSON.

    The method named ``primitive`` makes the step. Traces print as calls of it.
    """

    primitive: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "primitive" in vars(cls):
            STEPS[cls.primitive] = cls

    def apply(self, state: ScheduleState) -> ScheduleState:
        """The state after this step, after a check that the step itself is legal. Each primitive has its own."""
        raise NotImplementedError

    def next_state(self, state: ScheduleState) -> ScheduleState:
        """The state after this step. Raises ``ScheduleError`` if it is illegal, or breaks what earlier ones made; the
        second not in a block of ``rules_checked(each_step=False)``."""
        new = self.apply(state)
        if _EACH_STEP.get():
            check_invariants(new, state)
        return new

    def to_dict(self) -> dict[str, JsonValue]:
        """The step as a JSON object; ``trace_json`` reads it."""
        return {"primitive": self.primitive} | {f.name: _json_value(getattr(self, f.name)) for f in fields(self)}

    def call(self, write: Callable[[object], str]) -> str:
        """The call that makes this step, as Python; ``write`` gives the text of a value."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.call(literal)

    def __repr__(self) -> str:
        return one_line(str(self))


@dataclass(frozen=True, slots=True, repr=False)
class StageStep(Step):
    """Base of the steps that change a stage, ``stage``.

    The method of ``StageView`` named ``primitive`` (of ``Schedule``, if ``on_schedule``) makes the step: it takes the
    fields behind ``stage`` in order, those with a default by name; of the field named ``spread`` the items one by one.
    It gives the loops that the step makes if ``returns_loops``.
    """

    on_schedule: ClassVar[bool] = False
    returns_loops: ClassVar[bool] = False
    spread: ClassVar[str] = ""

    stage: str

    def call(self, write: Callable[[object], str]) -> str:
        """The step as a call in Python, as traces print it; ``write`` gives the text of an argument."""
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


def _json_value(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [_json_value(item) for item in value]
    assert value is None or isinstance(value, (str, int, float)), f"a step cannot hold {value!r}"
    return value
