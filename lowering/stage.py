"""A stage of a schedule: how one operation is computed, an immutable value.

    stage ::= Stage(op, loops, relations, leaves, kinds, place, scope, layout, alignments, tensorized,
                    prefetches, notes)
    place ::= Root | Inlined | At(stage, loop) | After(stage, loop) | Before(stage)

A stage begins with one loop for each axis of its compute; a scan has its time loop, an extern none. Relations
(``relations.py``) derive loops from loops; the leaves are the loops that stand now, outermost first. Loops have stable
ids, ``<stage>#<number>`` in order of creation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, TypeAlias

from ..base.brief import listed
from ..base.dataclass import dataclass
from ..base.errors import ScheduleError
from ..ir.buffer import Scope
from ..ir.expr import Axis
from ..ir.stmt import LoopKind, Notes
from ..te.tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, StateOp, Tensor
from .index_map import IndexMap
from .relations import AccumulateRelation, Relation


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of a stage, past or present. ``reduce`` tells whether it runs over a reduction axis."""

    id: str
    name: str
    reduce: bool


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
