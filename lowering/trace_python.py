"""The steps of a trace as Python in which loops are variables, named as the printed nest names them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields

from .report import literal
from .stage import Stage
from .state import ScheduleState
from .step import StageStep, Step


def python_lines(steps: Sequence[Step], start: ScheduleState) -> list[str]:
    """The calls that lead from ``start`` through all the steps. Loops are fetched where they are first needed."""
    return [line for lines in python_steps(steps, start) for line in lines]


def python_steps(steps: Sequence[Step], start: ScheduleState) -> list[list[str]]:
    """The lines of each step: its call, behind those that fetch the loops which it is the first to need."""
    names = _LoopNames()
    found: list[list[str]] = []
    state = start
    for step in steps:
        lines = [names.fetch(stage) for stage in state.stages if names.lack(stage, step)]
        call = step.call(names.write)
        before, state = state, step.apply(state)
        if isinstance(step, StageStep) and step.returns_loops:
            stage, known = state.stage(step.stage), before.stage(step.stage).loops
            call = f"{names.make(stage, [loop for loop in stage.loops if loop not in known])} = {call}"
        found.append([*lines, call])
    return found


def _strings(step: Step) -> set[str]:
    """All strings among the values of a step: the loops that it names are among them."""
    values = [getattr(step, f.name) for f in fields(step)]
    return {s for value in values for s in (value if isinstance(value, tuple) else (value,)) if isinstance(s, str)}


class _LoopNames:
    """The variable that stands for each loop id. Mutable: grows as the loops come up."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken = {"s"}

    def lack(self, stage: Stage, step: Step) -> bool:
        """Whether the step names a loop of the stage that is no variable yet."""
        return not _strings(step).intersection(stage.leaves).issubset(self._names)

    def fetch(self, stage: Stage) -> str:
        """The line that gives all loops of a stage their names."""
        text = self._assigned(stage, stage.leaves)
        return f"{f'({text},)' if len(stage.leaves) == 1 else text} = s[{literal(stage.name)}].loops"

    def make(self, stage: Stage, loops: Iterable[str]) -> str:
        """The names of loops that a step has just made."""
        made = list(loops)
        for loop in made:
            self._names.pop(loop, None)  # cache_write numbers the loops of its stage anew
        return self._assigned(stage, made)

    def write(self, value: object) -> str:
        """The text of a step's value: of a loop, its variable."""
        return self._names[value] if isinstance(value, str) and value in self._names else literal(value)

    def _assigned(self, stage: Stage, loops: Iterable[str]) -> str:
        return ", ".join(self._name(loop, stage.loops[loop].name) for loop in loops)

    def _name(self, loop: str, wanted: str) -> str:
        if loop not in self._names:
            base = re.sub(r"\W", "_", wanted)
            if not base.isidentifier() or keyword.iskeyword(base):
                base = f"loop_{base}"
            name, number = base, 0
            while name in self._taken:
                number += 1
                name = f"{base}_{number}"
            self._taken.add(name)
            self._names[loop] = name
        return self._names[loop]
