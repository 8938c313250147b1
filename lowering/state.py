"""The state of a schedule: an immutable value. Primitives (``primitives/``) map a state and a step to a new state.

    state ::= ScheduleState(stages, outputs, decisions)  stages in order of computation, producers first

``stage.py`` has the stages, and ``relations.py`` what derives their loops from each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from ..base.brief import listed
from ..base.dataclass import dataclass
from ..base.errors import ScheduleError
from ..ir.stmt import LoopKind
from ..te.order import operations_behind
from ..te.tensor import Operation, Tensor
from .decisions import Decision
from .stage import After, At, Inlined, Stage, make_stage

Aspect: TypeAlias = Literal["all", "bounds", "bodies"]
"""What an answer about a state may depend on: all of it; all but the kinds of loops, prefetches and notes, and how
elements lie in memory, as what loops run over; the bodies of computes, and which of them are inlined."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScheduleState:
    """All stages in order of computation, the names of those whose tensors the caller gets, and what was decided.

    ``answers`` remembers what functions found that are asked ``once``, by what they depend on; ``outdated`` what they
    found of the states before this one, of which they may take over what still holds.
    """

    stages: tuple[Stage, ...]
    outputs: tuple[str, ...]
    decisions: tuple[Decision, ...] = ()
    answers: dict[Aspect, dict[object, object]] = field(
        default_factory=lambda: {aspect: {} for aspect in get_args(Aspect)}, init=False
    )
    outdated: dict[object, object] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<ScheduleState of {listed(self.outputs, 60)}: stages {listed(s.name for s in self.stages)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return ScheduleState, (self.stages, self.outputs, self.decisions)

    def stage(self, name: str) -> Stage:
        """The stage of a name. Raises ``ScheduleError``, with the names that there are, if there is none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        names = ", ".join(s.name for s in self.stages)
        raise ScheduleError(f"the schedule has no stage {name!r}; there are {names}")

    def stage_of(self, tensor: Tensor) -> Stage:
        """The stage that computes a tensor."""
        for stage in self.stages:
            if any(t is tensor for t in stage.tensors):
                return stage
        raise ScheduleError(f"{tensor!r} is not part of this schedule: its outputs do not depend on it")

    def with_stage(self, stage: Stage) -> ScheduleState:
        """The state with this stage in place of the one of its name. The answers that hold for both are shared."""
        new = self.with_stages(tuple(stage if s.name == stage.name else s for s in self.stages))
        old = self.stage(stage.name)
        for aspect in get_args(Aspect):
            if is_same(old, stage, aspect):
                new.answers[aspect] = self.answers[aspect]
        return new

    def with_stages(self, stages: tuple[Stage, ...]) -> ScheduleState:
        """The state with these stages."""
        new = replace(self, stages=stages)
        new.outdated.update(self.outdated | self.answers["bounds"])
        return new

    def with_decision(self, decision: Decision) -> ScheduleState:
        """The state with one more decision, which no answer depends on. Raises ``ScheduleError`` for a second one of a
        name."""
        if any(known.name == decision.name for known in self.decisions):
            raise ScheduleError(f"the schedule decides {decision.name!r} already; give each decision a name of its own")
        new = replace(self, decisions=(*self.decisions, decision))
        new.answers.update(self.answers)
        new.outdated.update(self.outdated)
        return new

    def with_kind(self, stage: Stage, loop: str, kind: LoopKind) -> ScheduleState:
        """The state in which a loop of the stage is of another kind, as vectorized or parallel."""
        return self.with_stage(replace(stage, kinds=MappingProxyType({**stage.kinds, loop: kind})))

    def consumers(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages that read an output of this one, in order of computation."""
        own = set(stage.tensors)
        return tuple(s for s in self.stages if own.intersection(s.op.inputs))

    def fresh_name(self, base: str) -> str:
        """A name that no stage has: ``base``, or with the first free number behind it, as ``base_1``."""
        taken = {s.name for s in self.stages}
        number, name = 0, base
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        return name

    def attached(self, stage: str, loop: str | None = None) -> tuple[Stage, ...]:
        """The stages computed at, or after, (a given loop of) a stage."""
        return tuple(
            s
            for s in self.stages
            if isinstance(s.place, (At, After)) and s.place.stage == stage and loop in (None, s.place.loop)
        )


_BOUNDS = tuple(
    f.name for f in fields(Stage) if f.name not in ("kinds", "prefetches", "notes", "scope", "layout", "alignments")
)


def is_same(a: Stage, b: Stage, aspect: Aspect) -> bool:
    """Whether two stages, which may stand for each other, are the same in an aspect."""
    match aspect:
        case "all":
            return a is b
        case "bounds":
            return a is b or all(getattr(a, name) is getattr(b, name) for name in _BOUNDS)
        case "bodies":
            same = a.op is b.op and a.tensors is b.tensors
            return same and isinstance(a.place, Inlined) == isinstance(b.place, Inlined)


A = TypeVar("A")


def once(aspect: Aspect) -> Callable[[Callable[[ScheduleState], A]], Callable[[ScheduleState], A]]:
    """A function that depends on one aspect of a state works once; states that are the same in it share the answer."""

    def decorate(function: Callable[[ScheduleState], A]) -> Callable[[ScheduleState], A]:
        @wraps(function)
        def answer(state: ScheduleState) -> A:
            answers = state.answers[aspect]
            if function not in answers:
                answers[function] = function(state)
            return cast(A, answers[function])

        return answer

    return decorate


def renewed_once(
    aspect: Aspect,
) -> Callable[[Callable[[ScheduleState, A | None], A]], Callable[[ScheduleState], A]]:
    """A function that works once, as with ``once``, and is given its answer for the state before, or None, to take over
    what still holds."""

    def decorate(function: Callable[[ScheduleState, A | None], A]) -> Callable[[ScheduleState], A]:
        @wraps(function)
        def answer(state: ScheduleState) -> A:
            answers = state.answers[aspect]
            if function not in answers:
                answers[function] = function(state, cast("A | None", state.outdated.get(function)))
            return cast(A, answers[function])

        return answer

    return decorate


def initial_state(outputs: tuple[Tensor, ...]) -> ScheduleState:
    """One stage an operation, producers first in the order in which the outputs reach them."""
    state = ScheduleState((), ())
    names: dict[Operation, str] = {}
    for op in operations_behind(outputs):
        names[op] = state.fresh_name(op.name)
        state = replace(state, stages=(*state.stages, make_stage(names[op], op)))
    return replace(state, outputs=tuple(dict.fromkeys(names[t.op] for t in outputs)))
