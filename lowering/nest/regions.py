"""Bound inference: which part of each stage is computed where the schedule places it, from consumers to producers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...ir.errors import InternalError
from ...ir.expr import ONE, ZERO, Expr, Reduce, TensorRead, Var, const, maximum, minimum
from ...ir.facts import NO_FACTS, Facts, prove
from ...ir.relax import Limits, Range, relax
from ...ir.simplify import simplify
from ...ir.visit import free_vars, rewrite, substitute, tensor_reads, walk
from ...te.tensor import ComputeOp, ExternOp, ScanOp, Tensor
from ..state import After, At, Inlined, ScheduleState, Stage, once
from .fences import fence_shared, fenced
from .finished import finished, region_after
from .inference import Inference, Region
from .loops import StageLoops, derive_loops
from .nesting import Reads, enclosing_loops, homes, reads_of
from .scans import Steps, scan_of, steps_of


@once("bounds")
def infer(state: ScheduleState) -> Inference:
    """Regions, loops and memory of all stages that are computed."""
    bodies = inline_bodies(state)
    reads = who_reads(state)
    loops: dict[str, StageLoops] = {}
    regions: dict[str, Region] = {}
    memory: dict[str, Region] = {}
    known = Inference(bodies, reads, homes(state, reads), loops, regions, memory, _dimension_facts(state))

    steps = steps_of(state, bodies)

    def add(stage: Stage) -> None:
        if stage.name in regions:
            return
        if isinstance(stage.place, After):
            add(state.stage(stage.place.stage))
        region = _region(state, stage, known)
        if stage.name in steps and isinstance(stage.place, (At, After)):
            region = _at_steps(region, steps[stage.name], known)
        regions[stage.name] = region
        loops[stage.name] = _stage_loops(stage, region, bodies[stage.name])

    computed = [s for s in state.stages if s.name in bodies]
    for stage in reversed(computed):
        add(stage)
    for stage in computed:
        memory[stage.name] = _memory(state, known, stage)
    return known


def _memory(state: ScheduleState, known: Inference, stage: Stage) -> Region:
    """The elements that the memory of a stage has room for, where it lives."""
    home = known.homes.get(stage.name)
    if isinstance(stage.place, At) or (home is None and not isinstance(stage.place, After)):
        return known.regions[stage.name]
    if home is None:
        return _whole(stage)
    spans = finished(state, known, stage, After(*home))
    return _whole(stage) if spans is None else Region(tuple(s.low for s in spans), tuple(s.extent for s in spans))


def loops_of(state: ScheduleState, stage: Stage) -> StageLoops:
    """The loops of one stage. Those of a stage that is computed whole follow from its shape, without its readers."""
    if isinstance(stage.place, (At, After)):
        return infer(state).loops[stage.name]
    return _stage_loops(stage, _whole(stage), stage.op.body if isinstance(stage.op, ComputeOp) else ())


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


def _stage_loops(stage: Stage, region: Region, bodies: tuple[Expr, ...]) -> StageLoops:
    reduced = {axis.var: axis.extent for body in bodies if isinstance(body, Reduce) for axis in body.axes}
    of_region = iter(region.extents)
    extents = [
        next(of_region) if axis.kind == "spatial" else reduced.get(axis.var, axis.extent)
        for axis in stage.axis_of.values()
    ]
    loops = derive_loops(stage, extents)
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
    """In how many places of the bodies each tensor is read."""
    found: Counter[Tensor] = Counter()
    for stage in state.stages:
        if isinstance(stage.op, ComputeOp):
            reads = dict.fromkeys(read for body in stage.op.body for read in tensor_reads(body))
            found.update(read.tensor for read in reads if isinstance(read.tensor, Tensor))
    return found


@once("bodies")
def who_reads(state: ScheduleState) -> Reads:
    """For each stage, which stages it reads once inlined ones are put in."""
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


def _region(state: ScheduleState, stage: Stage, known: Inference) -> Region:
    """What of a stage is computed where it is placed. Externs and scans are always computed whole."""
    if not isinstance(stage.op, ComputeOp):
        return _whole(stage)
    match stage.place:
        case At() as place:
            return _whole(stage) if scan_of(state, stage) is not None else _needed(state, stage, place, known)
        case After() as place:
            return region_after(state, known, stage, place)
        case _:
            return _whole(stage)


def _at_steps(region: Region, steps: Steps, known: Inference) -> Region:
    """The part of a region that is of the steps of a scan which there are in an iteration of its time loop."""
    (now,) = known.axis_values(steps.scan).values()
    back = const(steps.back, "index")
    lows, extents = list(region.lows), list(region.extents)
    lows[steps.dim], extents[steps.dim] = simplify(now - back), simplify(back + ONE)
    return replace(region, lows=tuple(lows), extents=tuple(extents))


def _whole(stage: Stage) -> Region:
    shape = stage.tensors[0].shape
    return Region((ZERO,) * len(shape), shape)


def _needed(state: ScheduleState, stage: Stage, place: At, known: Inference) -> Region:
    """The box of the stage's elements that one iteration of the loop it is placed at reads."""
    around = enclosing_loops(state, place)
    fixed = {known.loops[s.name].vars[leaf] for s, leaf in around}
    own = set(stage.tensors)
    bounds: list[Range | None] | None = None
    for name, bodies in known.bodies.items():
        if isinstance(state.stage(name).op, ExternOp) and own.intersection(state.stage(name).op.inputs):
            return _whole(stage)
        reads = [r for body in bodies for r in tensor_reads(body) if r.tensor in own]
        if not reads:
            continue
        reader = state.stage(name)
        values = known.axis_values(reader)
        loops = [*enclosing_loops(state, reader.place), *((reader, leaf) for leaf in reader.leaves)]
        ranges = _loop_ranges(known, loops, fixed)
        indices = dict.fromkeys(i for read in reads for i in read.indices)  # neighbours share most of theirs
        found = {i: ranges.box(simplify(substitute(i, values), ranges.facts)) for i in indices}
        for read in reads:
            boxes = [found[i] for i in read.indices]
            bounds = boxes if bounds is None else [_hull(a, b) for a, b in zip(bounds, boxes, strict=True)]
    if bounds is None:
        raise InternalError(f"stage {stage.name} is placed at a loop, but nothing reads it")
    shape = stage.tensors[0].shape
    facts = _loop_ranges(known, around, fixed).facts  # readers inside may run or not
    sides = [_side(box, extent, facts, fixed) for box, extent in zip(bounds, shape, strict=True)]
    return Region(tuple(low for low, _ in sides), tuple(extent for _, extent in sides))


@dataclass(frozen=True, slots=True, eq=False)
class _LoopRanges:
    """Between what the variables of loops run; those of ragged loops are None where that is not known.

    ``facts`` are of the other loops: that a ragged one runs at all says something of the loops around it, which holds
    for what is read inside of it only.
    """

    varying: Limits
    ragged: Mapping[Var, Range | None]
    facts: Facts

    def box(self, index: Expr) -> Range | None:
        """Bounds of an index while the loops run."""
        ragged: dict[Var, Range] = {}
        for var in free_vars(index):
            if var in self.ragged:
                ends = self.ragged[var]
                if ends is None:
                    return None
                ragged[var] = ends
        limits = Limits.of({**self.varying.ranges, **ragged}, self.facts) if ragged else self.varying
        return limits.relax(index)


def _loop_ranges(known: Inference, inside: Sequence[tuple[Stage, str]], fixed: set[Var]) -> _LoopRanges:
    """The ranges of the loops that a place is ``inside``, but for those that stand still, the ``fixed`` ones."""
    loops = [(known.loops[stage.name], leaf) for stage, leaf in inside]
    extents = {found.vars[leaf]: found.extents[leaf] for found, leaf in loops}
    ragged = {v for v, e in extents.items() if any(n in extents or isinstance(n, TensorRead) for n in walk(e))}
    facts, whole = known.facts, {}
    for var, extent in extents.items():
        if var not in ragged:
            facts = facts.with_range(var, ZERO, extent)
            whole[var] = (ZERO, simplify(extent - ONE))
    widest = {v: relax(simplify(extents[v] - ONE), whole, facts) for v in extents if v in ragged and v not in fixed}
    return _LoopRanges(
        Limits.of({v: r for v, r in whole.items() if v not in fixed}, facts),
        {v: None if r is None else (ZERO, r[1]) for v, r in widest.items()},
        facts,
    )


def _hull(a: Range | None, b: Range | None) -> Range | None:
    if a is None or b is None:
        return None
    return minimum(a[0], b[0]), maximum(a[1], b[1])


def _side(box: Range | None, whole: Expr, facts: Facts, fixed: set[Var]) -> tuple[Expr, Expr]:
    """First element and number of elements of one dimension; all of it where the box is not known or no smaller."""
    if box is None:
        return ZERO, whole
    low, high = simplify(box[0], facts), simplify(box[1], facts)
    extent = simplify(high - low + ONE, facts)
    if fixed.intersection(free_vars(extent)):
        # The size of the buffer must not change from one iteration to the next: take the largest.
        largest = facts.interval(extent).high
        if largest is None:
            return ZERO, whole
        extent = const(max(largest, 0), "index")
    if prove(extent >= whole, facts):
        return ZERO, whole
    if not prove(extent >= ZERO, facts):
        extent = simplify(maximum(extent, ZERO), facts)
    return low, extent
