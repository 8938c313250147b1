"""Bound inference: which part of each stage is computed where the schedule places it, from consumers to producers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from ...ir.constants import ONE, ZERO, const
from ...ir.expr import Expr, Reduce, TensorRead, Var
from ...ir.facts import NO_FACTS, Facts
from ...ir.simplify import simplify
from ...ir.visit import rewrite, substitute, tensor_reads, walk
from ...te.tensor import ComputeOp, ExternOp, ScanOp, Tensor
from ..state import After, At, Inlined, ScheduleState, Stage, once
from .beyond_ends import ends_read, reads_beyond, unguarded_axes
from .fences import fence_shared, fenced
from .finished import finished, region_after
from .inference import ElementBox, Inference, ReadBeyond, whole
from .loops import StageLoops, derive_loops
from .needed import needed
from .nesting import Reads, homes, reads_of
from .rounding import rounded_axes, rounds_up
from .scans import Steps, scan_of, steps_of


@once("bounds")
def infer(state: ScheduleState) -> Inference:
    """Regions, loops and memory of all stages that are computed."""
    bodies = inline_bodies(state)
    reads = who_reads(state)
    loops: dict[str, StageLoops] = {}
    regions: dict[str, ElementBox] = {}
    memory: dict[str, ElementBox] = {}
    unguarded: dict[str, frozenset[str]] = {}
    beyond: dict[str, tuple[ReadBeyond, ...]] = {}
    facts = _dimension_facts(state)
    known = Inference(bodies, reads, homes(state, reads), loops, regions, memory, unguarded, beyond, facts)
    steps = steps_of(state, bodies)

    def add(stage: Stage) -> None:
        if stage.name in regions:
            return
        if isinstance(stage.place, After):
            add(state.stage(stage.place.stage))
        beyond[stage.name] = tuple(reads_beyond(state, known, stage))
        ends = ends_read(known, stage)
        region = _region(state, stage, known, ends)
        if stage.name in steps and isinstance(stage.place, (At, After)):
            region = _at_steps(region, steps[stage.name], known)
        unguarded[stage.name] = unguarded_axes(state, known, stage, ends)
        loops[stage.name] = _stage_loops(stage, region, bodies[stage.name], unguarded[stage.name])
        regions[stage.name] = _computed(stage, region, loops[stage.name])

    computed = [s for s in state.stages if s.name in bodies]
    for stage in reversed(computed):
        add(stage)
    for stage in state.stages:
        if stage.name not in beyond:  # inputs, and states of scans
            beyond[stage.name] = tuple(reads_beyond(state, known, stage))
    for stage in computed:
        memory[stage.name] = _memory(state, known, stage)
    return known


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
        return infer(state).loops[stage.name]
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
def inline_bodies(state: ScheduleState) -> dict[str, tuple[Expr, ...]]:
    """The bodies of all stages that are not inlined, with the inlined ones put in where they are read.

    Externs and scans have none, but an entry: what they read is ``op.inputs``. What several places read is fenced, so
    that all see one value (see ``fences.py``).
    """
    bodies: dict[str, tuple[Expr, ...]] = {}
    inlined: dict[Tensor, Expr] = {}
    places = _places_that_read(state)

    def put_in(node: object) -> Expr | None:
        if isinstance(node, TensorRead) and isinstance(node.tensor, Tensor) and node.tensor in inlined:
            axes = axes_of[node.tensor]
            return substitute(inlined[node.tensor], dict(zip(axes, node.indices, strict=True)))
        return None

    axes_of: dict[Tensor, tuple[Var, ...]] = {}
    for stage in state.stages:
        if not isinstance(stage.op, ComputeOp):
            if isinstance(stage.op, (ExternOp, ScanOp)):
                bodies[stage.name] = ()
            continue
        body = fence_shared(tuple(rewrite(expr, put_in) for expr in stage.op.body))
        if not isinstance(stage.place, Inlined):
            bodies[stage.name] = body
            continue
        for tensor, expr in zip(stage.tensors, body, strict=True):
            inlined[tensor] = fenced(expr) if places[tensor] > 1 else expr
            axes_of[tensor] = tuple(axis.var for axis in stage.op.axis)
    return bodies


def _places_that_read(state: ScheduleState) -> Counter[Tensor]:
    """How many reads of each tensor the bodies have."""
    found: Counter[Tensor] = Counter()
    for stage in state.stages:
        if isinstance(stage.op, ComputeOp):
            reads = dict.fromkeys(read for body in stage.op.body for read in tensor_reads(body))
            found.update(read.tensor for read in reads if isinstance(read.tensor, Tensor))
    return found


@once("bodies")
def who_reads(state: ScheduleState) -> Reads:
    """The stages that each stage reads once inlined ones are put in."""
    return reads_of(state, inline_bodies(state))


def _dimension_facts(state: ScheduleState) -> Facts:
    facts = NO_FACTS
    dimensions: dict[Var, None] = {}
    for stage in state.stages:
        for tensor in stage.tensors:
            for extent in tensor.shape:
                dimensions.update((node, None) for node in walk(extent) if isinstance(node, Var))
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
