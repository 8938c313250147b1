"""Bound inference: which part of each stage is computed where the schedule places it, from consumers to producers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from threading import RLock

from ...base.dataclass import dataclass
from ...ir.constants import ONE, ZERO, const
from ...ir.expr import Expr, Reduce, Var
from ...ir.facts import NO_FACTS, Facts
from ...ir.simplify import simplify
from ...ir.visit import walk
from ...te.tensor import ComputeOp
from ..stage import After, At, Inlined, Stage
from ..state import ScheduleState, is_same, once, renewed_once
from .beyond_ends import ends_read, reads_beyond, unguarded_axes
from .bodies import inline_bodies, who_reads
from .finished import finished, region_after
from .inference import ElementBox, Inference, ReadBeyond, whole
from .loops import StageLoops, derive_loops
from .needed import needed
from .nesting import enclosing_loops, homes, readers_of
from .rounding import rounded_axes, rounds_up
from .scans import Steps, scan_of, steps_of


@dataclass(frozen=True, slots=True, eq=False)
class _Basis:
    """What the bounds of a stage were found from: stages, as far as bounds depend on them, and what was known of these,
    objects of which equal ones are one."""

    stages: tuple[Stage, ...]
    known: tuple[object, ...]

    def is_same(self, other: _Basis) -> bool:
        """Whether the same is found from the other."""
        return (
            len(self.stages) == len(other.stages)
            and len(self.known) == len(other.known)
            and all(a is b for a, b in zip(self.known, other.known, strict=True))
            and all(is_same(a, b, "bounds") for a, b in zip(self.stages, other.stages, strict=True))
        )


@dataclass(frozen=True, slots=True, eq=False)
class _StageBounds:
    """What is found of one stage, as an ``Inference`` holds it. No other state can take over what has no basis."""

    basis: _Basis | None
    beyond: tuple[ReadBeyond, ...]
    unguarded: frozenset[str]
    loops: StageLoops
    region: ElementBox


class _Bounds:
    """Bound inference of a state, as far as it was asked for: readers come before what they read.

    Mutable: ``known`` grows, by the tables that it shows, under a lock, as threads may lower one schedule. A step
    changes few stages: what was found of the others, in states before, is in ``earlier``, and holds where its basis
    does.
    """

    known: Inference

    def __init__(self, state: ScheduleState, before: _Bounds | None) -> None:
        bodies, reads = inline_bodies(state), who_reads(state)
        self.dimensions = _dimensions(state)
        self.found: dict[str, _StageBounds] = {}
        self.earlier: dict[str, _StageBounds] = {}
        facts = None
        if before is not None and set(self.dimensions) == set(before.dimensions):
            self.earlier, facts = before.earlier | before.found, before.known.facts
        self._lock = RLock()
        self._steps = steps_of(state, bodies)
        self._waiting = [stage.name for stage in state.stages if stage.name in bodies]
        self._loops: dict[str, StageLoops] = {}
        self._regions: dict[str, ElementBox] = {}
        self._memory: dict[str, ElementBox] = {}
        self._unguarded: dict[str, frozenset[str]] = {}
        self._beyond: dict[str, tuple[ReadBeyond, ...]] = {}
        self.known = Inference(
            bodies,
            reads,
            homes(state, reads),
            self._loops,
            self._regions,
            self._memory,
            self._unguarded,
            self._beyond,
            _facts(self.dimensions) if facts is None else facts,
        )

    def upto(self, state: ScheduleState, name: str) -> Inference:
        """What is known once a stage is."""
        with self._lock:
            while name not in self.found:
                self._add_next(state)
        return self.known

    def all(self, state: ScheduleState) -> Inference:
        """What is known in the end."""
        with self._lock:
            while self._waiting:
                self._add_next(state)
            for stage in state.stages:
                if stage.name not in self._beyond:  # inputs, and states of scans
                    self._beyond[stage.name] = tuple(reads_beyond(state, self.known, stage))
            for name in self.found:
                self._memory[name] = _memory(state, self.known, state.stage(name))
        return self.known

    def _add_next(self, state: ScheduleState) -> None:
        self._add(state, state.stage(self._waiting[-1]))
        self._waiting.pop()  # it waits on where the state is found to be illegal

    def _add(self, state: ScheduleState, stage: Stage) -> None:
        if stage.name in self.found:
            return
        if isinstance(stage.place, After):
            self._add(state, state.stage(stage.place.stage))
        basis, earlier = self._basis(state, stage), self.earlier.get(stage.name)
        if basis is None or earlier is None or earlier.basis is None or not earlier.basis.is_same(basis):
            self._infer(state, stage, basis)
            return
        self.found[stage.name] = earlier
        self._beyond[stage.name], self._unguarded[stage.name] = earlier.beyond, earlier.unguarded
        self._loops[stage.name], self._regions[stage.name] = earlier.loops, earlier.region

    def _basis(self, state: ScheduleState, stage: Stage) -> _Basis | None:
        """What a region follows from; None where much else has a say: in the cell of a scan, and behind what iterations
        have finished."""
        if stage.name in self._steps or isinstance(stage.place, After):
            return None
        stages, known = [stage], list[object]()
        if isinstance(stage.place, At) or rounds_up(state):
            readers = readers_of(state, self.known.reads, stage)
            places = [stage.place, *(reader.place for reader in readers)]
            around = [holder for place in places for holder, _ in enclosing_loops(state, place)]
            stages = list(dict.fromkeys((stage, *readers, *around)))
            known += [self.found.get(s.name) for s in stages[1:]]
            known += [self.known.bodies] if rounded_axes(stage) else []
        bodies = (body for s in stages for body in self.known.bodies[s.name])
        return _Basis(tuple(stages), (*known, *bodies))

    def _infer(self, state: ScheduleState, stage: Stage, basis: _Basis | None) -> None:
        known, name = self.known, stage.name
        beyond = self._beyond[name] = tuple(reads_beyond(state, known, stage))
        ends = ends_read(known, stage)
        region = _region(state, stage, known, ends)
        if name in self._steps and isinstance(stage.place, (At, After)):
            region = _at_steps(region, self._steps[name], known)
        unguarded = self._unguarded[name] = unguarded_axes(state, known, stage, ends)
        loops = self._loops[name] = _stage_loops(stage, region, known.bodies[name], unguarded)
        self._regions[name] = _computed(stage, region, loops)
        self.found[name] = _StageBounds(basis, beyond, unguarded, loops, self._regions[name])


@renewed_once("bounds")
def _bounds(state: ScheduleState, before: _Bounds | None) -> _Bounds:
    return _Bounds(state, before)


@once("bounds")
def infer(state: ScheduleState) -> Inference:
    """Regions, loops and memory of all stages that are computed."""
    return _bounds(state).all(state)


def _memory(state: ScheduleState, known: Inference, stage: Stage) -> ElementBox:
    """The elements that the memory of a stage has room for, where it lives."""
    home = known.homes.get(stage.name)
    if isinstance(stage.place, At) or (home is None and not isinstance(stage.place, After)):
        return known.regions[stage.name]
    if home is None:
        return whole(stage)
    spans = finished(state, known, stage, After(*home))
    return whole(stage) if spans is None else ElementBox(tuple(s.low for s in spans), tuple(s.extent for s in spans))


def _computed(stage: Stage, region: ElementBox, loops: StageLoops) -> ElementBox:
    """A region as far as the loops of the stage go, some of which may be rounded up."""
    if not rounded_axes(stage):
        return region
    extents = (loops.extents[loop] for loop, axis in stage.axis_of.items() if axis.kind == "spatial")
    return replace(region, extents=tuple(extents))


def loops_of(state: ScheduleState, stage: Stage) -> StageLoops:
    """The loops of one stage. Those of a stage that is computed whole follow from its shape, without its readers, if
    these read no more than that."""
    if isinstance(stage.place, (At, After)) or (rounds_up(state) and not isinstance(stage.place, Inlined)):
        return _bounds(state).upto(state, stage.name).loops[stage.name]
    return _stage_loops(stage, whole(stage), stage.op.body if isinstance(stage.op, ComputeOp) else ())


def extents_of(state: ScheduleState, stage: Stage) -> Mapping[str, Expr]:
    """The extents of the loops of one stage, which the state remembers."""
    known = _known_extents(state)
    if stage.name not in known:
        known[stage.name] = loops_of(state, stage).extents
    return known[stage.name]


@once("bounds")
def _known_extents(_: ScheduleState) -> dict[str, Mapping[str, Expr]]:
    """Mutable: grows as extents are asked for, by stage."""
    return {}


def _stage_loops(
    stage: Stage, region: ElementBox, bodies: tuple[Expr, ...], unguarded: Collection[str] = frozenset()
) -> StageLoops:
    reduced = {axis.var: axis.extent for body in bodies if isinstance(body, Reduce) for axis in body.axes}
    of_region = iter(region.extents)
    extents = [
        next(of_region) if axis.kind == "spatial" else reduced.get(axis.var, axis.extent)
        for axis in stage.axis_of.values()
    ]
    loops = derive_loops(stage, extents, unguarded)
    if not (isinstance(stage.op, ComputeOp) and stage.op.ragged_axes):
        return loops
    spatial = [(loop, axis) for loop, axis in stage.axis_of.items() if axis.kind == "spatial"]
    return loops.at(
        {axis.var: low + loops.values[loop] for (loop, axis), low in zip(spatial, region.lows, strict=True)}
    )


@once("bodies")
def _dimensions(state: ScheduleState) -> tuple[Var, ...]:
    """The variables of the shapes, extents of at least 0."""
    extents = (extent for stage in state.stages for tensor in stage.tensors for extent in tensor.shape)
    return tuple(dict.fromkeys(node for extent in extents for node in walk(extent) if isinstance(node, Var)))


def _facts(dimensions: Collection[Var]) -> Facts:
    facts = NO_FACTS
    for var in dimensions:
        facts = facts.with_condition(var >= ZERO)
    return facts


def _region(state: ScheduleState, stage: Stage, known: Inference, ends: tuple[Expr, ...]) -> ElementBox:
    """What of a stage is computed where it is placed, of elements before these ends. Externs and scans are always
    computed whole."""
    if not isinstance(stage.op, ComputeOp):
        return whole(stage)
    match stage.place:
        case At() as place:
            return whole(stage) if scan_of(state, stage) is not None else needed(state, stage, place, known, ends)
        case After() as place:
            return region_after(state, known, stage, place)
        case _:
            return ElementBox((ZERO,) * len(ends), ends)


def _at_steps(region: ElementBox, steps: Steps, known: Inference) -> ElementBox:
    """The part of a region that is of the steps of a scan which there are in an iteration of its time loop."""
    (now,) = known.axis_values(steps.scan).values()
    back = const(steps.back, "index")
    lows, extents = list(region.lows), list(region.extents)
    lows[steps.dim], extents[steps.dim] = simplify(now - back), simplify(back + ONE)
    return replace(region, lows=tuple(lows), extents=tuple(extents))
