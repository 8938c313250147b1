"""The schedule that users hold: a handle on an immutable state, with a method for each primitive.

Mutable: ``Schedule.state`` and ``Schedule.trace`` advance with each primitive. Everything else here is a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from ..base.brief import listed
from ..base.errors import ScheduleError
from ..base.quantities import count_text
from ..te.tensor import Tensor
from .decisions import NONE_DECIDED, Decision, DecisionValue, Outputs, V, departures, nearest
from .loop_names import LoopLike, LoopView, stage_named
from .nest.scans import place_scans
from .primitives import CacheRead, CacheWrite, Decide, RFactor
from .recomputed import recomputations
from .report import nest_diff, nest_text
from .stage import Stage
from .stage_view import StageLike, StageView
from .state import ScheduleState, initial_state
from .step import Step
from .step_arguments import json_number, map_text, plain
from .trace import Trace

__all__ = ["LoopLike", "LoopView", "Schedule", "StageLike", "StageView", "create_schedule"]


class Schedule:
    """How tensors are computed. ``s[tensor]`` or ``s["C"]`` is a stage; ``print(s)`` shows the loop nest, and warns
    above it of stages that are computed more than twice. ``decided`` are values for its decisions, by name."""

    def __init__(self, state: ScheduleState, decided: Mapping[str, DecisionValue] = NONE_DECIDED) -> None:
        self.state = state
        self.trace = Trace(start=state)
        self.decided = decided

    def __getitem__(self, stage: StageLike) -> StageView:
        return StageView(self, self._stage(stage).name)

    def __str__(self) -> str:
        warnings = (f"# {each}" for each in recomputations(self.state))
        return "\n".join([*warnings, nest_text(self.state)])

    def __repr__(self) -> str:
        return f"Schedule of {listed(self.state.outputs)} ({count_text(len(self.trace), 'step')})"

    def _repr_html_(self) -> str:
        from .schedule_html import schedule_html  # it knows schedules

        return schedule_html(self)

    @property
    def stages(self) -> tuple[StageView, ...]:
        """All stages, inputs among them, in order of computation."""
        return tuple(StageView(self, stage.name) for stage in self.state.stages)

    def apply(self, step: Step) -> None:
        """Apply a step, and remember it in the trace. If it is illegal, ``ScheduleError`` comes and nothing changes."""
        if not isinstance(step, Step):
            raise ScheduleError(f"apply takes a step, as those of a trace, found {step!r}")
        self.state = step.next_state(self.state)
        self.trace = self.trace.then(step)

    def replay(self, trace: Trace) -> None:
        """Apply all steps of a trace, of this or another schedule.

        Raises ``TraceError``, which names the first step that is not legal here, and then applies none.
        """
        if not isinstance(trace, Trace):
            raise ScheduleError(f"replay takes a trace, s.trace or lw.Trace.from_json(text), not {trace!r}")
        self.state = trace.replay(self.state)
        self.trace = self.trace.then(*trace)

    def diff(self, since: int | Schedule = 1) -> str:
        """What the last step changed in the loop nest, as a unified diff: ``-`` before, ``+`` after.

        ``since`` is a number of steps to go back, or another schedule to compare with. Empty where nothing changed.
        """
        if isinstance(since, Schedule):
            return nest_diff(since.state, self.state, "other", "this")
        if type(since) is not int or not 0 <= since <= len(self.trace):
            raise ScheduleError(
                f"diff takes a number of steps to go back, of {len(self.trace)} there are, or a schedule, not {since!r}"
            )
        steps = self.trace[len(self.trace) - since :]
        return nest_diff(self.trace.before(since), self.state, "before", "; ".join(map(str, steps)))

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Several steps as one: if one is illegal, none of them is applied."""
        state, trace = self.state, self.trace
        try:
            yield
        except ScheduleError:
            self.state, self.trace = state, trace
            raise

    def copy(self) -> Schedule:
        """A schedule in the same state, of the same tensors, which goes its own way from here."""
        twin = Schedule(self.state, self.decided)
        twin.trace = self.trace
        return twin

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> Schedule:
        return self.copy()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided, in order."""
        return self.state.decisions

    @property
    def departures(self) -> tuple[str, ...]:
        """What became of each decision that did not get the value in ``decided``, since that is not legal here."""
        return departures(self.decided, self.decisions)

    def decide(
        self, name: str, legal: Sequence[V], default: V, *, reorders_sum: bool = False, value: V | None = None
    ) -> V:
        """Choose a value by its name; gives it. See ``Decide``.

        That is ``value``; else what ``create_schedule`` was given for the name, of which an illegal number becomes the
        nearest legal one, anything else the default; else the default. Make every decision on every way through a
        function, with one legal value where there is no choice, so that a record that has the name serves all shapes.
        """
        given: object = legal
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ScheduleError(f"the legal values of decision {name!r} are a sequence, found {given!r}")
        known = tuple(map(plain, legal))
        own = Decision(name, known, plain(default), plain(default) if value is None else plain(value), reorders_sum)
        taken = nearest(plain(self.decided[name]), own) if value is None and name in self.decided else own.value
        self.apply(Decide(name, known, own.default, taken, reorders_sum))
        return cast(V, taken)

    def cache_read(
        self,
        tensor: StageLike,
        scope: str,
        readers: StageLike | Sequence[StageLike],
        pad: bool | float | str | None = None,
        axes: Callable[..., Any] | str | None = None,
    ) -> Tensor:
        """Copy a tensor into memory of its own for one or several readers; gives the copy. ``pad`` is what the copy
        holds beyond the ends of the tensor, where a reader is rounded up: a number, or the nearest element if it is
        ``"edge"``; ``axes``, an index map, gives it other axes.

        See ``primitives/caching.py``.
        """
        source = self._stage(tensor)
        several = readers if isinstance(readers, Sequence) and not isinstance(readers, str) else [readers]
        names = tuple(self._stage(r).name for r in several)
        return self._make_tensor(CacheRead(source.name, scope, names, json_number(pad), map_text(axes, source)))

    def cache_write(self, tensor: StageLike, scope: str, axes: Callable[..., Any] | str | None = None) -> Tensor:
        """Compute a tensor in memory of its own, then copy it; gives what is computed. ``axes``, an index map, gives
        that other axes. See ``primitives/caching.py``.

        Of a stage with several outputs it gives the one that corresponds to ``tensor``.
        """
        source = self._stage(tensor)
        return self._make_tensor(CacheWrite(source.name, scope, map_text(axes, source)), tensor)

    def rfactor(self, tensor: StageLike, loop: LoopLike, factor_axis: int = 0) -> Tensor:
        """Make a reduction loop an axis of a stage of its own, which can be vectorized or run in parallel; gives what
        that stage computes. See ``primitives/reduction.py``.

        Of a reduction with several outputs it gives the one that corresponds to ``tensor``; its ``op.outputs`` are all.
        """
        source = self[tensor]
        return self._make_tensor(RFactor(source.name, source.loop_id(loop), factor_axis), tensor)

    def _make_tensor(self, step: Step, like: StageLike | None = None) -> Tensor:
        """The output of the one stage that a step adds that corresponds to an output of the stage it was made from."""
        before = {stage.name for stage in self.state.stages}
        self.apply(step)
        (made,) = (stage for stage in self.state.stages if stage.name not in before)
        return made.tensors[like.index if isinstance(like, Tensor) else 0]

    def _stage(self, stage: StageLike) -> Stage:
        return stage_named(self.state, stage.name if isinstance(stage, StageView) else stage)


def create_schedule(outputs: Tensor | Sequence[Tensor], decided: Mapping[str, DecisionValue] | None = None) -> Schedule:
    """The naive schedule of one or several tensors: each stage whole, in order, serial; nothing automatic.

    ``decided`` are values for the schedule's decisions, by name; by default those that ``outputs`` come with where a
    schedule function is given them. Raises ``ScheduleError`` where an output is not computed.
    """
    tensors = (outputs,) if not isinstance(outputs, Sequence) else tuple(outputs)
    if not tensors or not all(isinstance(t, Tensor) for t in tensors):
        raise ScheduleError("create_schedule takes a tensor, or a sequence of tensors")
    state = initial_state(tensors)
    for name in state.outputs:
        if state.stage(name).is_input:
            raise ScheduleError(f"{name} is an input: there is nothing to compute")
    if decided is None:
        decided = outputs.decided if isinstance(outputs, Outputs) else NONE_DECIDED
    return Schedule(place_scans(state), decided)
