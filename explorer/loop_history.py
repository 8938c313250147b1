"""The loops that a schedule has had, step by step: which step made each, of which others, and what it became."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from ..base.dataclass import dataclass
from ..lowering.primitives.caching import CacheRead
from ..lowering.schedule import Schedule
from ..lowering.stage import Loop, Stage
from ..lowering.state import ScheduleState
from ..lowering.step import StageStep, Step


@dataclass(frozen=True, slots=True)
class TracedLoop:
    """A loop of a schedule, past or present, by its ``id`` there and its ``name`` in the nest.

    ``made_by`` is the index of the step that made it, None for an axis of a compute; ``changed_by`` are the later steps
    that name it. ``made_of`` and ``became`` are the loops, as indices, that it was split or fused from and into. Where
    a step has made a stage of another (``rfactor``, ``cache_write``), or made it anew, its loops are made of those that
    had their names. ``copies`` is the loop over the same dimension of the tensor that a ``cache_read`` copies, unless
    it gives the copy other axes.
    """

    id: str
    name: str
    stage: str
    reduce: bool
    made_by: int | None
    changed_by: tuple[int, ...] = ()
    made_of: tuple[int, ...] = ()
    became: tuple[int, ...] = ()
    copies: int | None = None


@dataclass(frozen=True, slots=True)
class LoopHistory:
    """``states`` are those of the schedule, the first without a step; ``keys`` beside them have the loops of each, by
    their ids: an id that a step gives to another loop is another key from there on. ``first_stages`` has for each
    stage, by its name, those of the first state that steps made it of."""

    states: tuple[ScheduleState, ...]
    keys: tuple[Mapping[str, int], ...]
    loops: tuple[TracedLoop, ...]
    first_stages: Mapping[str, tuple[str, ...]]


def loop_history(schedule: Schedule) -> LoopHistory:
    """The history of a schedule's loops, by applying the steps of its trace once more."""
    start = schedule.trace.start
    assert start is not None, "a schedule's trace knows where it started"
    recorder = _Recorder()
    recorder.state(start, None)
    states, keys = [start], [dict(recorder.keys)]
    for number, step in enumerate(schedule.trace):
        states.append(step.apply(states[-1]))
        recorder.names(step, number)
        recorder.state(states[-1], number, step)
        keys.append(dict(recorder.keys))
    states[-1] = schedule.state
    return LoopHistory(tuple(states), tuple(keys), tuple(recorder.loops), recorder.first_stages)


class _Recorder:
    """Mutable: the loops found so far, the ``keys`` of those that the ids stand for now, and the ``first_stages``."""

    def __init__(self) -> None:
        self.loops: list[TracedLoop] = []
        self.keys: dict[str, int] = {}
        self.first_stages: dict[str, tuple[str, ...]] = {}
        self._seen: dict[str, Loop] = {}

    def state(self, state: ScheduleState, number: int | None, step: Step | None = None) -> None:
        """Take up the loops that a state has and the ones before had not, and what became of others."""
        named = {(self.loops[key].stage, self.loops[key].name): key for key in self.keys.values()}
        first_fresh = len(self.loops)
        for stage in state.stages:
            source = step.stage if isinstance(step, StageStep) and stage.name not in self.first_stages else stage.name
            copied = self._copied(state.stage(source), step)
            self.first_stages.setdefault(stage.name, self._made_of_stages(state, source, step))
            for position, loop in enumerate(stage.loops.values()):
                if self._seen.get(loop.id) is not loop:
                    self._seen[loop.id] = loop
                    of = None if isinstance(step, CacheRead) else named.get((source, loop.name))
                    made_of = () if of is None else (of,)
                    copies = copied[position] if copied else None
                    traced = TracedLoop(loop.id, loop.name, stage.name, loop.reduce, number, (), made_of, (), copies)
                    self.keys[loop.id] = len(self.loops)
                    self.loops.append(traced)
        fresh = range(first_fresh, len(self.loops))
        for stage in state.stages:
            self._relate(stage, fresh)
        for key in fresh:
            for part in self.loops[key].made_of:
                self.loops[part] = replace(self.loops[part], became=(*self.loops[part].became, key))

    def _copied(self, source: Stage, step: Step | None) -> list[int]:
        """The loops over the dimensions of what a step copies; none of what has no axes, such as an input, and of a
        copy that has other axes."""
        if not isinstance(step, CacheRead) or step.axes is not None or not source.is_compute:
            return []
        return [self.keys[loop] for loop in source.loops]

    def _made_of_stages(self, state: ScheduleState, source: str, step: Step | None) -> tuple[str, ...]:
        """The stages of the fresh schedule that a new stage stands for, which a step has made of ``source``. An input
        has no lines of its own in a nest: a copy of it is a part of the stages that read it."""
        if isinstance(step, CacheRead) and state.stage(source).is_input:
            return tuple(dict.fromkeys(name for reader in step.readers for name in self.first_stages[reader]))
        return self.first_stages.get(source, (source,))

    def _relate(self, stage: Stage, fresh: range) -> None:
        for relation in stage.relations:
            made = tuple(self.keys[loop] for loop in relation.made)
            of = tuple(self.keys[loop] for loop in relation.consumed)
            for key in made:
                if key in fresh:
                    self.loops[key] = replace(self.loops[key], made_of=of)

    def names(self, step: Step, number: int) -> None:
        """Note a step with the loops that its fields name, as they are before it."""
        values = [getattr(step, f.name) for f in fields(step)]
        named = {part for value in values for part in (value if isinstance(value, tuple) else (value,))}
        for loop_id, key in self.keys.items():
            if loop_id in named:
                self.loops[key] = replace(self.loops[key], changed_by=(*self.loops[key].changed_by, number))
