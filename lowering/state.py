"""The state of a schedule: an immutable value. Primitives (``primitives/``) map a state and a step to a new state.

    state ::= ScheduleState(stages, outputs, decisions)  stages in order of computation, producers first
    stage ::= Stage(op, loops, relations, leaves, kinds, place, scope, layout, alignments, tensorized,
                    prefetches, notes)
    relation ::= SplitRelation(parent, outer, inner, factor | nparts, tail) | FuseRelation(outer, inner, fused)
               | RoundUpRelation(parent, rounded, factor | to) | FactorRelation(moved, loop, stage)
               | AccumulateRelation(fold, along, reverse)
    place ::= Root | Inlined | At(stage, loop) | After(stage, loop) | Before(stage)

A stage begins with one loop for each axis of its compute; a scan has its time loop, an extern none. Relations derive
loops from loops; the leaves are the loops that stand now, outermost first. Loops have stable ids, ``<stage>#<number>``
in order of creation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from ..base.brief import listed
from ..base.errors import ScheduleError
from ..ir.buffer import Scope
from ..ir.expr import Axis
from ..ir.stmt import LoopKind, Notes
from ..te.order import operations_behind
from ..te.tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, StateOp, Tensor
from .decisions import Decision
from .index_map import IndexMap


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of a stage, past or present. ``reduce`` tells whether it runs over a reduction axis."""

    id: str
    name: str
    reduce: bool


Tail: TypeAlias = Literal["guard", "mask", "peel", "shift", "round_up"]
"""What becomes of the last tile of a split that does not divide its loop; ``primitives.Split`` tells."""


@dataclass(frozen=True, slots=True)
class SplitRelation:
    """One loop became two: ``parent = outer * extent(inner) + inner``. Given is ``factor`` (extent of inner) or
    ``nparts`` (of outer)."""

    parent: str
    outer: str
    inner: str
    factor: int | None
    nparts: int | None
    tail: Tail = "guard"

    @property
    def consumed(self) -> tuple[str, ...]:
        """The loops that are no leaves any more since this relation makes others of them: here the one that was
        split."""
        return (self.parent,)

    @property
    def made(self) -> tuple[str, ...]:
        """The loops that stand after it: of the tiles, and in a tile."""
        return (self.outer, self.inner)


@dataclass(frozen=True, slots=True)
class FuseRelation:
    """Two loops became one: ``fused = outer * extent(inner) + inner``."""

    outer: str
    inner: str
    fused: str

    @property
    def consumed(self) -> tuple[str, ...]:
        """The loops that were fused, outer one first."""
        return (self.outer, self.inner)

    @property
    def made(self) -> tuple[str, ...]:
        """The loop that stands after it."""
        return (self.fused,)


@dataclass(frozen=True, slots=True)
class RoundUpRelation:
    """One loop became a longer one: ``parent = rounded``, which runs on to a multiple of ``factor``, or ``to`` an
    extent."""

    parent: str
    rounded: str
    factor: int | None
    to: int | None

    @property
    def consumed(self) -> tuple[str, ...]:
        """The loop that was rounded up."""
        return (self.parent,)

    @property
    def made(self) -> tuple[str, ...]:
        """The loop that stands after it."""
        return (self.rounded,)


@dataclass(frozen=True, slots=True)
class FactorRelation:
    """The reduction loops ``moved`` went to another stage; ``loop`` runs over an axis of that stage's results."""

    moved: tuple[str, ...]
    loop: str
    stage: str

    @property
    def consumed(self) -> tuple[str, ...]:
        """The reduction loops that went to another stage."""
        return self.moved

    @property
    def made(self) -> tuple[str, ...]:
        """The loop that stands after it."""
        return (self.loop,)


@dataclass(frozen=True, slots=True)
class AccumulateRelation:
    """The reduction loop ``fold`` stands no more: an iteration of ``along`` folds one term into what those before it
    have folded: the last one of its elements. In ``reverse`` the loop goes along its axis from the end."""

    fold: str
    along: str
    reverse: bool

    @property
    def consumed(self) -> tuple[str, ...]:
        """The reduction loop that no longer stands."""
        return (self.fold,)

    @property
    def made(self) -> tuple[str, ...]:
        """No loop stands in its place."""
        return ()


Relation: TypeAlias = SplitRelation | FuseRelation | RoundUpRelation | FactorRelation | AccumulateRelation


@dataclass(frozen=True, slots=True)
class StrideAlignment:
    """The stride of a dimension of a stage's memory: a multiple of ``factor``, plus ``offset``."""

    factor: int
    offset: int


@dataclass(frozen=True, slots=True)
class Tensorized:
    """An intrinsic, by name, takes the place of a loop and of all loops inside it."""

    loop: str
    intrinsic: str


@dataclass(frozen=True, slots=True)
class PrefetchAt:
    """A prefetch: each iteration of a loop fetches what the one ``distance`` later reads of a stage's tensors."""

    tensor: str
    loop: str
    distance: int


@dataclass(frozen=True, slots=True)
class Root:
    """The stage is computed whole, before the stages that read it."""


@dataclass(frozen=True, slots=True)
class Inlined:
    """The stage is computed where it is read, without memory."""


@dataclass(frozen=True, slots=True)
class At:
    """The stage is computed in each iteration of a loop of another stage, as much as that iteration needs."""

    stage: str
    loop: str


@dataclass(frozen=True, slots=True)
class After:
    """The stage is computed at the end of each iteration of a loop of another stage, from what that iteration has
    finished."""

    stage: str
    loop: str


@dataclass(frozen=True, slots=True)
class Before:
    """The stage is computed whole, just before the loops of another stage: the first steps of a scan."""

    stage: str


Place: TypeAlias = Root | Inlined | At | After | Before


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stage:
    """How one operation is computed. ``tensors`` are the handles others read; they stay when ``op`` is replaced."""

    name: str
    op: Operation
    tensors: tuple[Tensor, ...]
    loops: Mapping[str, Loop] = field(default_factory=lambda: MappingProxyType({}))
    axis_of: Mapping[str, Axis] = field(default_factory=lambda: MappingProxyType({}))
    relations: tuple[Relation, ...] = ()
    leaves: tuple[str, ...] = ()
    kinds: Mapping[str, LoopKind] = field(default_factory=lambda: MappingProxyType({}))
    place: Place = Root()
    scope: Scope | None = None
    layout: IndexMap | None = None
    alignments: Mapping[int, StrideAlignment] = field(default_factory=lambda: MappingProxyType({}))
    tensorized: Tensorized | None = None
    prefetches: tuple[PrefetchAt, ...] = ()
    notes: Mapping[str, Notes] = field(default_factory=lambda: MappingProxyType({}))

    def __repr__(self) -> str:
        return f"<Stage {self.name}: loops {listed(self.loops[leaf].name for leaf in self.leaves) or 'none'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        values = (getattr(self, f.name) for f in fields(self))
        return _stage_of, tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)

    @property
    def is_input(self) -> bool:
        """Whether the caller gives the tensor."""
        return isinstance(self.op, PlaceholderOp)

    @property
    def is_compute(self) -> bool:
        """Whether the stage has loops over the axes of a compute, which can be scheduled."""
        return isinstance(self.op, ComputeOp)

    @property
    def compute(self) -> ComputeOp:
        """The compute; asking for that of another operation is an error of the caller."""
        return self.require_compute()

    def require_compute(self) -> ComputeOp:
        """The stage's operation as a compute. Raises ``ScheduleError`` if it is none, so that it has no loops to
        schedule."""
        match self.op:
            case ComputeOp() as op:
                return op
            case ExternOp():
                raise ScheduleError(
                    f"{self.name} is an extern: it runs as its statement is written, and has no loops to schedule"
                )
            case ScanOp():
                updates = ", ".join(dict.fromkeys(t.op.name for t in self.op.update))
                raise ScheduleError(
                    f"{self.name} is a scan, whose loop over time runs step by step: schedule the loops of its update, "
                    f"{updates}"
                )
            case PlaceholderOp():
                raise ScheduleError(f"{self.name} is an input: it has no loops to schedule; cache_read gives it some")
            case StateOp():
                raise ScheduleError(f"{self.name} is the state of a scan, and has no loops: schedule what reads it")

    @property
    def tensorized_leaves(self) -> tuple[str, ...]:
        """The loops that an intrinsic takes the place of, outermost first."""
        return () if self.tensorized is None else self.leaves[self.leaves.index(self.tensorized.loop) :]

    @property
    def along(self) -> str | None:
        """The loop along which the stage accumulates, if it does."""
        return next((r.along for r in self.relations if isinstance(r, AccumulateRelation)), None)

    def kind(self, loop: str) -> LoopKind:
        """How the iterations of a loop that stands run."""
        return self.kinds.get(loop, "serial")

    def leaves_of(self, loop: str) -> tuple[str, ...]:
        """The loops that stand now of those that a loop has become part of."""
        found = {loop}
        for relation in self.relations:
            if found.intersection(relation.consumed):
                found.update(relation.made)
        return tuple(leaf for leaf in self.leaves if leaf in found)

    def loop_names(self) -> str:
        """The names of the loops that stand now, outermost first, as messages list them."""
        return ", ".join(self.loops[leaf].name for leaf in self.leaves)


def _stage_of(*values: Any) -> Stage:
    """The stage with these fields, tables among them as a pickle holds them."""
    tables: list[Any] = [MappingProxyType(v) if isinstance(v, dict) else v for v in values]
    return Stage(*tables)


def make_stage(name: str, op: Operation, tensors: tuple[Tensor, ...] | None = None) -> Stage:
    """A stage as it is before any primitive: one serial loop for each axis, in order, reductions innermost."""
    tensors = op.outputs if tensors is None else tensors
    axes = (*op.axis, *op.reduce_axis)
    loops = {f"{name}#{k}": Loop(f"{name}#{k}", a.name, a.kind == "reduce") for k, a in enumerate(axes)}
    axis_of = dict(zip(loops, axes, strict=True))
    return Stage(name, op, tensors, MappingProxyType(loops), MappingProxyType(axis_of), leaves=tuple(loops))


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
