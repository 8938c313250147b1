"""The schedule that users hold: a handle on an immutable state, with a method for each primitive.

Mutable: ``Schedule.state`` and ``Schedule.trace`` advance with each primitive. Everything else here is a view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from ..base.brief import listed
from ..base.errors import ScheduleError
from ..base.quantities import count_text
from ..ir.expr import Axis, Expr
from ..te.tensor import ComputeOp, Operation, Tensor
from .decisions import NONE_DECIDED, Decision, DecisionValue, Outputs, V, departures, nearest
from .index_map import IndexMap
from .index_map import index_map as parse_index_map
from .loop_names import LoopLike, LoopView, dimension_named, loop_id, stage_named, view_of
from .nest.bodies import inline_bodies
from .nest.scans import place_scans
from .primitives import (
    Accumulate,
    Annotate,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    Decide,
    Fuse,
    Parallel,
    Prefetch,
    Reorder,
    ReverseComputeAt,
    RFactor,
    RoundUp,
    SetScope,
    Split,
    StorageAlign,
    Tensorize,
    TransformLayout,
    Unroll,
    Vectorize,
)
from .recomputed import recomputations
from .relations import Tail
from .report import nest_diff, nest_text
from .rules.loops import stage_with_loops
from .stage import Inlined, Stage
from .state import ScheduleState, initial_state
from .step import Step
from .tensor_intrinsic import TensorIntrinsic
from .trace import Trace

__all__ = ["LoopLike", "LoopView", "Schedule", "StageLike", "StageView", "create_schedule"]

T = TypeVar("T")


StageLike: TypeAlias = "StageView | Tensor | Operation | str"
"""A stage as users name it: ``s[tensor]``, what it computes, or its name, as ``"C"``."""


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
        known = tuple(map(_plain, legal))
        own = Decision(name, known, _plain(default), _plain(default) if value is None else _plain(value), reorders_sum)
        taken = nearest(_plain(self.decided[name]), own) if value is None and name in self.decided else own.value
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
        return self._make_tensor(CacheRead(source.name, scope, names, _plain_pad(pad), _map_text(axes, source)))

    def cache_write(self, tensor: StageLike, scope: str, axes: Callable[..., Any] | str | None = None) -> Tensor:
        """Compute a tensor in memory of its own, then copy it; gives what is computed. ``axes``, an index map, gives
        that other axes. See ``primitives/caching.py``.

        Of a stage with several outputs it gives the one that corresponds to ``tensor``.
        """
        source = self._stage(tensor)
        return self._make_tensor(CacheWrite(source.name, scope, _map_text(axes, source)), tensor)

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


def _plain(number: T) -> T | int:
    """An integer of numpy as Python's; steps are JSON. All else as it is: the step judges it."""
    return int(number) if isinstance(number, Integral) and not isinstance(number, bool) else number


def _map_text(index_map: T | Callable[..., Any], stage: Stage) -> T | str:
    """The text of an index map of the elements of a stage, if it is a function."""
    return parse_index_map(index_map, stage.tensors[0].ndim).text if callable(index_map) else index_map


def _plain_pad(pad: Any) -> Any:
    """Likewise of any number; those that are not finite, of which JSON has none, by name."""
    plain = pad.item() if isinstance(pad, np.generic) else pad
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain


class StageView:
    """One stage of a schedule; primitives on its loops are methods here."""

    __slots__ = ("_schedule", "name")

    def __init__(self, schedule: Schedule, name: str) -> None:
        self._schedule = schedule
        self.name = name

    def __repr__(self) -> str:
        return f"stage {self.name}: loops {listed(loop.name for loop in self.loops) or 'none'}"

    @property
    def _stage(self) -> Stage:
        return self._schedule.state.stage(self.name)

    @property
    def op(self) -> Operation:
        """The operation that the stage computes: ``op.axis`` and ``op.reduce_axis`` are its first loops."""
        return self._stage.op

    @property
    def layout(self) -> IndexMap | None:
        """Where the elements of the results lie, as ``transform_layout`` says; None where they lie row by row."""
        return self._stage.layout

    @property
    def computes(self) -> tuple[ComputeOp, ...]:
        """The compute of the stage, and those of the stages that are inlined into it."""
        state = self._schedule.state
        found = [self._stage]
        for stage in found:
            inputs = [state.stage_of(tensor) for tensor in stage.op.inputs]
            found += [s for s in inputs if isinstance(s.place, Inlined) and s not in found]
        return tuple(stage.compute for stage in found)

    @property
    def bodies(self) -> tuple[Expr, ...]:
        """What is computed of each output of a compute, with the inlined stages put in where they are read."""
        return inline_bodies(self._schedule.state)[self.name]

    @property
    def loops(self) -> tuple[LoopView, ...]:
        """The loops that stand now, outermost first."""
        stage = self._stage
        return tuple(view_of(stage, leaf) for leaf in stage.leaves)

    def split(
        self, loop: LoopLike, factor: int | None = None, nparts: int | None = None, tail: Tail = "guard"
    ) -> tuple[LoopView, LoopView]:
        """Split a loop into an outer and an inner one; gives both. See ``Split``."""
        self._schedule.apply(Split(self.name, self.loop_id(loop), _plain(factor), _plain(nparts), tail))
        outer, inner = self._newest()
        return outer, inner

    def round_up(self, loop: LoopLike, factor: int | None = None, to: int | None = None) -> LoopView:
        """Let a loop run on to a multiple of ``factor``, or ``to`` an extent; gives it. See ``RoundUp``."""
        self._schedule.apply(RoundUp(self.name, self.loop_id(loop), _plain(factor), _plain(to)))
        (rounded,) = self._newest()
        return rounded

    def tile(
        self, y: LoopLike, x: LoopLike, y_factor: int, x_factor: int, tail: Tail = "guard"
    ) -> tuple[LoopView, LoopView, LoopView, LoopView]:
        """Split two loops, and put the outer halves around the inner ones: y_outer, x_outer, y_inner, x_inner."""
        y, x = self._standing((y, x))
        with self._schedule.all_or_nothing():
            y_outer, y_inner = self.split(y, y_factor, tail=tail)
            x_outer, x_inner = self.split(x, x_factor, tail=tail)
            self.reorder(y_outer, x_outer, y_inner, x_inner)
        return y_outer, x_outer, y_inner, x_inner

    def fuse(self, *loops: LoopLike) -> LoopView:
        """Make one loop of several that stand directly inside each other, the outermost first. See ``Fuse``."""
        if not loops:
            raise ScheduleError("fuse needs at least one loop")
        fused, *others = self._standing(loops)
        with self._schedule.all_or_nothing():
            for loop in others:
                self._schedule.apply(Fuse(self.name, fused.id, loop.id))
                (fused,) = self._newest()
        return fused

    def reorder(self, *loops: LoopLike) -> None:
        """Put loops into the given order, outermost first. See ``Reorder``."""
        self._schedule.apply(Reorder(self.name, tuple(self.loop_id(loop) for loop in loops)))

    def accumulate(self, loop: LoopLike) -> None:
        """Fold each element along a loop from the one before it. See ``Accumulate``."""
        self._schedule.apply(Accumulate(self.name, self.loop_id(loop)))

    def vectorize(self, loop: LoopLike) -> None:
        """Run the iterations of a loop as one vector operation. See ``Vectorize``."""
        self._schedule.apply(Vectorize(self.name, self.loop_id(loop)))

    def unroll(self, loop: LoopLike) -> None:
        """Write out the iterations of a loop. See ``Unroll``."""
        self._schedule.apply(Unroll(self.name, self.loop_id(loop)))

    def parallel(self, loop: LoopLike) -> None:
        """Spread the iterations of a loop over threads. See ``Parallel``."""
        self._schedule.apply(Parallel(self.name, self.loop_id(loop)))

    def compute_at(self, target: StageLike, loop: LoopLike) -> None:
        """Compute this stage inside a loop of another. See ``ComputeAt``."""
        other = self._schedule[target]
        self._schedule.apply(ComputeAt(self.name, other.name, other.loop_id(loop)))

    def reverse_compute_at(self, target: StageLike, loop: LoopLike) -> None:
        """Compute this stage inside a loop of its producer, after the part that it reads. See ``ReverseComputeAt``."""
        other = self._schedule[target]
        self._schedule.apply(ReverseComputeAt(self.name, other.name, other.loop_id(loop)))

    def compute_inline(self) -> None:
        """Compute this stage where it is read. See ``ComputeInline``."""
        self._schedule.apply(ComputeInline(self.name))

    def compute_root(self) -> None:
        """Compute this stage whole, before the stages that read it. See ``ComputeRoot``."""
        self._schedule.apply(ComputeRoot(self.name))

    def tensorize(self, loop: LoopLike, intrinsic: TensorIntrinsic | str) -> None:
        """Replace a loop and all inside it by an intrinsic, given itself or by its name. See ``Tensorize``."""
        name = intrinsic.name if isinstance(intrinsic, TensorIntrinsic) else intrinsic
        self._schedule.apply(Tensorize(self.name, self.loop_id(loop), name))

    def prefetch(self, tensor: StageLike, loop: LoopLike, distance: int) -> None:
        """Fetch ahead what the iteration ``distance`` later reads of a tensor, or stores. See ``Prefetch``."""
        self._schedule.apply(Prefetch(self.name, self._schedule[tensor].name, self.loop_id(loop), _plain(distance)))

    def annotate(self, loop: LoopLike, key: str, value: str | int | bool) -> None:
        """Write a note at a loop. See ``Annotate``."""
        self._schedule.apply(Annotate(self.name, self.loop_id(loop), key, value))

    def set_scope(self, scope: str) -> None:
        """Say in which kind of memory the elements are kept. See ``SetScope``."""
        self._schedule.apply(SetScope(self.name, scope))

    def storage_align(self, dim: int | Axis | str, factor: int, offset: int = 0) -> None:
        """Pad the memory so that a dimension's stride is a multiple of factor, plus offset. See ``StorageAlign``."""
        position = dimension_named(self._stage, dim)
        self._schedule.apply(StorageAlign(self.name, position, _plain(factor), _plain(offset)))

    def transform_layout(self, index_map: Callable[..., Any] | str) -> None:
        """Choose where each element is stored: ``lambda i, j: (j // 8, i, j % 8)``. See ``TransformLayout``."""
        self._schedule.apply(TransformLayout(self.name, _map_text(index_map, self._stage)))

    def _standing(self, loops: Sequence[LoopLike]) -> list[LoopView]:
        """The loops that are named, after a check that all of them stand: for what takes several steps."""
        ids = tuple(self.loop_id(loop) for loop in loops)
        stage = stage_with_loops(self._schedule.state, self.name, ids)
        return [view_of(stage, loop) for loop in ids]

    def _newest(self) -> tuple[LoopView, ...]:
        stage = self._stage
        return tuple(view_of(stage, new) for new in stage.relations[-1].made)

    def loop_id(self, loop: LoopLike) -> str:
        """The id of a loop of this stage, however it is named; it may be stale."""
        return loop_id(self._schedule.state, self._stage, loop)


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
