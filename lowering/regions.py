"""Bound inference: which part of each stage is computed where the schedule places it, from consumers to producers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.errors import InternalError
from ..ir.expr import ONE, ZERO, Expr, Reduce, TensorBase, TensorRead, Var, const, maximum, minimum
from ..ir.facts import NO_FACTS, Facts, prove
from ..ir.relax import relax
from ..ir.simplify import simplify
from ..ir.visit import free_vars, rewrite, substitute, tensor_reads, walk
from ..te.tensor import ComputeOp, ExternOp, ScanOp, Tensor
from .loops import StageLoops, derive_loops
from .scans import scan_of
from .state import At, Before, Inlined, ScheduleState, Stage


@dataclass(frozen=True, slots=True)
class Region:
    """Per dimension, the first element that is computed, and how many are."""

    lows: tuple[Expr, ...]
    extents: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Inference:
    """All that bound inference finds. ``bodies`` are those of the computes after inlining."""

    bodies: Mapping[str, tuple[Expr, ...]]
    loops: Mapping[str, StageLoops]
    regions: Mapping[str, Region]
    facts: Facts

    def reduction(self, stage: Stage) -> Reduce | None:
        """The stage's reduction, if it is one; of several outputs the first, for they share all but ``index``."""
        first = next(iter(self.bodies[stage.name]), None)
        return first if isinstance(first, Reduce) else None

    def axis_values(self, stage: Stage) -> dict[Var, Expr]:
        """What stands for the axes of a stage inside its nest."""
        region, loops = self.regions[stage.name], self.loops[stage.name]
        of_region = iter(region.lows)
        values: dict[Var, Expr] = {}
        for loop, axis in stage.axis_of.items():
            low = next(of_region) if axis.kind == "spatial" else axis.min
            values[axis.var] = loops.values[loop] if low is ZERO else low + loops.values[loop]
        return values


def infer(state: ScheduleState) -> Inference:
    """Regions and loops of all stages that are computed."""
    bodies = inline_bodies(state)
    computed = [s for s in state.stages if s.name in bodies]
    loops: dict[str, StageLoops] = {}
    regions: dict[str, Region] = {}
    facts = _dimension_facts(state)
    inference = Inference(bodies, loops, regions, facts)
    for stage in reversed(computed):
        region = _region(state, stage, inference)
        regions[stage.name] = region
        loops[stage.name] = _stage_loops(stage, region)
    return inference


def loops_of(state: ScheduleState, stage: Stage) -> StageLoops:
    """The loops of one stage. Those of a stage that is computed whole follow from its shape, without its readers."""
    if isinstance(stage.place, At):
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


def enclosing_loops(state: ScheduleState, place: At) -> list[tuple[Stage, str]]:
    """The loops around the point where ``place`` puts a stage, outermost first."""
    target = state.stage(place.stage)
    around = target.place
    while isinstance(around, Before):
        around = state.stage(around.stage).place
    outer = enclosing_loops(state, around) if isinstance(around, At) else []
    upto = target.leaves.index(place.loop) + 1
    return [*outer, *((target, leaf) for leaf in target.leaves[:upto])]


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


def readers_of(state: ScheduleState, stage: Stage) -> list[Stage]:
    """The stages that read this one once inlined stages are put in."""
    own = set(stage.tensors)
    return [
        state.stage(name)
        for name, bodies in inline_bodies(state).items()
        if any(t in own for t in _tensors_read(state.stage(name), bodies))
    ]


def _tensors_read(stage: Stage, bodies: tuple[Expr, ...]) -> list[TensorBase]:
    if isinstance(stage.op, ComputeOp):
        return [read.tensor for body in bodies for read in tensor_reads(body)]
    return [*stage.op.inputs]


def _region(state: ScheduleState, stage: Stage, known: Inference) -> Region:
    """What of a stage is computed where it is placed. Externs and scans are always computed whole."""
    if not isinstance(stage.place, At) or not isinstance(stage.op, ComputeOp):
        return _whole(stage)
    scan = scan_of(state, stage)
    return _one_step(stage, scan, known) if scan is not None else _needed(state, stage, stage.place, known)


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
