"""Bound inference: which part of each stage is computed where the schedule places it, from consumers to producers."""

from __future__ import annotations

from ..ir.errors import InternalError
from ..ir.expr import ONE, ZERO, Expr, TensorRead, Var, const, maximum, minimum
from ..ir.facts import NO_FACTS, Facts, prove
from ..ir.relax import relax
from ..ir.simplify import simplify
from ..ir.visit import free_vars, rewrite, substitute, tensor_reads, walk
from ..te.tensor import ComputeOp, ExternOp, ScanOp, Tensor
from .finished import finished, region_after
from .inference import Inference, Region
from .loops import StageLoops, derive_loops
from .nesting import enclosing_loops, homes, reads_of
from .scans import scan_of
from .state import After, At, Inlined, ScheduleState, Stage


def infer(state: ScheduleState) -> Inference:
    """Regions, loops and memory of all stages that are computed."""
    bodies = inline_bodies(state)
    reads = reads_of(state, bodies)
    loops: dict[str, StageLoops] = {}
    regions: dict[str, Region] = {}
    memory: dict[str, Region] = {}
    known = Inference(bodies, reads, homes(state, reads), loops, regions, memory, _dimension_facts(state))

    def add(stage: Stage) -> None:
        if stage.name in regions:
            return
        if isinstance(stage.place, After):
            add(state.stage(stage.place.stage))
        region = _region(state, stage, known)
        regions[stage.name] = region
        loops[stage.name] = _stage_loops(stage, region)

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
    return _stage_loops(stage, _whole(stage))


def _stage_loops(stage: Stage, region: Region) -> StageLoops:
    of_region = iter(region.extents)
    extents = [next(of_region) if axis.kind == "spatial" else axis.extent for axis in stage.axis_of.values()]
    return derive_loops(stage, extents)


def inline_bodies(state: ScheduleState) -> dict[str, tuple[Expr, ...]]:
    """The bodies of all stages that are not inlined, with the inlined ones put in where they are read.

    Externs and scans have none, but an entry: what they read is ``op.inputs``.
    """
    bodies: dict[str, tuple[Expr, ...]] = {}
    inlined: dict[Tensor, Expr] = {}

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
        body = tuple(rewrite(expr, put_in) for expr in stage.op.body)
        if not isinstance(stage.place, Inlined):
            bodies[stage.name] = body
            continue
        for tensor, expr in zip(stage.tensors, body, strict=True):
            inlined[tensor] = expr
            axes_of[tensor] = tuple(axis.var for axis in stage.op.axis)
    return bodies


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
            scan = scan_of(state, stage)
            return _needed(state, stage, place, known) if scan is None else _one_step(stage, scan, known)
        case After() as place:
            return region_after(state, known, stage, place)
        case _:
            return _whole(stage)


def _one_step(update: Stage, scan: Stage, known: Inference) -> Region:
    """What an iteration of a scan's time loop updates."""
    (now,) = known.axis_values(scan).values()
    shape = update.tensors[0].shape
    return Region((now, *[ZERO] * (len(shape) - 1)), (ONE, *shape[1:]))


def _whole(stage: Stage) -> Region:
    shape = stage.tensors[0].shape
    return Region((ZERO,) * len(shape), shape)


def _needed(state: ScheduleState, stage: Stage, place: At, known: Inference) -> Region:
    """The box of the stage's elements that one iteration of the loop it is placed at reads."""
    fixed = {known.loops[s.name].vars[leaf] for s, leaf in enclosing_loops(state, place)}
    varying: dict[Var, tuple[Expr, Expr]] = {}
    facts = known.facts
    for loops in known.loops.values():
        for leaf, var in loops.vars.items():
            facts = facts.with_range(var, ZERO, loops.extents[leaf])
            if var not in fixed:
                varying[var] = (ZERO, simplify(loops.extents[leaf] - ONE))
    own = set(stage.tensors)
    bounds: list[tuple[Expr, Expr] | None] | None = None
    for name, bodies in known.bodies.items():
        if isinstance(state.stage(name).op, ExternOp) and own.intersection(state.stage(name).op.inputs):
            return _whole(stage)
        reads = [r for body in bodies for r in tensor_reads(body) if r.tensor in own]
        if not reads:
            continue
        values = known.axis_values(state.stage(name))
        for read in reads:
            boxes = [relax(simplify(substitute(i, values), facts), varying, facts) for i in read.indices]
            bounds = boxes if bounds is None else [_hull(a, b) for a, b in zip(bounds, boxes, strict=True)]
    if bounds is None:
        raise InternalError(f"stage {stage.name} is placed at a loop, but nothing reads it")
    shape = stage.tensors[0].shape
    sides = [_side(box, extent, facts, fixed) for box, extent in zip(bounds, shape, strict=True)]
    return Region(tuple(low for low, _ in sides), tuple(extent for _, extent in sides))


def _hull(a: tuple[Expr, Expr] | None, b: tuple[Expr, Expr] | None) -> tuple[Expr, Expr] | None:
    if a is None or b is None:
        return None
    return minimum(a[0], b[0]), maximum(a[1], b[1])


def _side(box: tuple[Expr, Expr] | None, whole: Expr, facts: Facts, fixed: set[Var]) -> tuple[Expr, Expr]:
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
        extent = const(largest, "index")
    if prove(extent >= whole, facts):
        return ZERO, whole
    return low, extent
