"""What an iteration of a loop has finished: the elements that stages computed after it may read.

Part of bound inference. A stage may stand in the nest of its producer if each iteration there finishes a box of the
producer's elements, no element in two boxes, and the stage reads them so that each of its own elements depends on one
box only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from ...base.dataclass import dataclass
from ...ir.constants import ONE, ZERO, const_int
from ...ir.contents import free_vars
from ...ir.expr import Axis, Expr, TensorRead, Var
from ...ir.facts import prove
from ...ir.simplify import simplify
from ...ir.visit import tensor_reads, walk
from ...te.tensor import ComputeOp
from ..relations import AccumulateRelation, FactorRelation, FuseRelation, RoundUpRelation, SplitRelation
from ..stage import After, Stage
from ..state import ScheduleState
from .inference import ElementBox, Inference
from .loops import StageLoops
from .nesting import is_inside


class UnfinishedError(Exception):
    """An iteration does not finish what a stage after it reads. ``loops`` are those to blame."""

    def __init__(self, problem: str, advice: str, loops: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.problem, self.advice, self.loops = problem, advice, loops


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """The elements ``low <= x < low + extent`` of a dimension that are also below all of ``limits``.

    It differs from one iteration to the next, or else is ``whole``: all elements, in each iteration. Of a loop it is
    ``still`` if it is the one value that the loop has.
    """

    low: Expr
    extent: Expr
    limits: tuple[Expr, ...] = ()
    whole: bool = False
    still: bool = False

    def moved(self, by: Expr) -> Span:
        """The span of what counts from elsewhere."""
        limits = tuple(simplify(limit + by) for limit in self.limits)
        return replace(self, low=simplify(self.low + by), limits=limits)

    def below(self, limits: Sequence[Expr]) -> Span:
        """The part of the span that is below these limits too."""
        return replace(self, limits=tuple(dict.fromkeys((*self.limits, *limits))))


def region_after(state: ScheduleState, known: Inference, stage: Stage, place: After) -> ElementBox:
    """What a stage computes in an iteration of the loop that it is placed after."""
    spans = finished(state, known, stage, place)
    if spans is None:
        sources = ", ".join(name for name in known.reads[stage.name] if name in known.reads) or "inputs only"
        raise UnfinishedError(
            f"{stage.name} reads nothing that is computed in that loop of {place.stage}",
            f"Name a loop of a stage that {stage.name} reads: {sources}.",
            [place.loop],
        )
    return ElementBox(
        tuple(s.low for s in spans), tuple(s.extent for s in spans), tuple(() if s.whole else s.limits for s in spans)
    )


def finished(state: ScheduleState, known: Inference, stage: Stage, level: After) -> list[Span] | None:
    """The elements of a stage inside a loop that do not change any more once the loop's iteration has run its stage.

    None if the stage reads nothing that the iteration finishes. Raises ``UnfinishedError`` where its elements cannot be
    told apart by the iteration that finishes all they read.
    """
    if stage.name == level.stage:
        return _computed(stage, known, level.loop)
    sources: dict[str, list[Span]] = {}
    for name in known.reads[stage.name]:
        source = state.stage(name)
        if name in known.reads and is_inside(state, source, level.stage, level.loop):
            spans = finished(state, known, source, level)
            if spans is not None:
                sources[name] = spans
    if not sources:
        return None
    if not isinstance(stage.op, ComputeOp):
        return _all_from(stage, sources)
    return _mapped(state, known, stage, sources)


def _computed(stage: Stage, known: Inference, loop: str) -> list[Span]:
    """What the loops inside ``loop`` compute of their own stage."""
    outside = stage.leaves[: stage.leaves.index(loop) + 1]
    loops, region = known.loops[stage.name], known.regions[stage.name]
    if reduction := [leaf for leaf in outside if stage.loops[leaf].reduce]:
        names = ", ".join(stage.loops[leaf].name for leaf in reduction)
        further_out = outside[: outside.index(reduction[0])]
        advice = f"name {stage.loops[further_out[-1]].name}, outside of it" if further_out else "compute it at the root"
        if not stage.loops[loop].reduce:
            advice = f"reorder {stage.name} so that {names} stands inside {stage.loops[loop].name}, or {advice}"
        raise UnfinishedError(
            f"{stage.name} is not finished there: its reduction goes on in loop {names}",
            f"{advice[0].upper()}{advice[1:]}.",
            reduction,
        )
    spans = _loop_spans(stage, loops, frozenset(outside))
    result = []
    for k, axis_loop in enumerate(x for x, axis in stage.axis_of.items() if axis.kind == "spatial"):
        span = spans.get(axis_loop)
        if span is None:
            name = stage.loops[axis_loop].name
            raise UnfinishedError(
                f"the elements of {stage.name} that an iteration of {stage.loops[loop].name} computes do not lie "
                f"side by side along {name}",
                f"Let the inner part of {name} run inside {stage.loops[loop].name}, and leave loops unfused there.",
                [x for x in stage.leaves if x in outside],
            )
        if span.whole:
            is_whole = region.is_whole(k, stage.tensors[0].shape[k])
            result.append(Span(region.lows[k], region.extents[k], region.limits_of(k), is_whole))
        else:
            result.append(span.moved(region.lows[k]).below(region.limits_of(k)))
    return result


def _loop_spans(stage: Stage, loops: StageLoops, outside: frozenset[str]) -> dict[str, Span | None]:
    """The part of each loop, past and present, that runs while those ``outside`` stand still; None if that has gaps."""
    spans: dict[str, Span | None] = {}
    for leaf in stage.leaves:
        still = leaf in outside and const_int(loops.extents[leaf]) != 1
        spans[leaf] = Span(loops.vars[leaf], ONE, still=True) if still else _all_of(loops, leaf)
    for relation in reversed(stage.relations):
        match relation:
            case SplitRelation(parent):
                spans[parent] = _split_span(relation, loops, spans)
            case FuseRelation(outer, inner, fused):
                span = spans[fused]
                for part in (outer, inner):
                    if span is None or not (span.whole or span.still):
                        spans[part] = None
                    elif span.whole or const_int(loops.extents[part]) == 1:
                        spans[part] = _all_of(loops, part)
                    else:
                        spans[part] = Span(simplify(loops.values[part]), ONE, still=True)
            case RoundUpRelation(parent, rounded):
                spans[parent] = spans[rounded]
            case AccumulateRelation(along=along):
                span = spans[along]
                if span is not None and span.still:
                    spans[along] = Span(simplify(loops.values[along]), ONE, still=True)
            case FactorRelation():
                pass
            case _:
                assert_never(relation)
    return spans


def _all_of(loops: StageLoops, loop: str) -> Span:
    return Span(ZERO, loops.extents[loop], whole=True)


def _split_span(relation: SplitRelation, loops: StageLoops, spans: Mapping[str, Span | None]) -> Span | None:
    outer, inner = spans[relation.outer], spans[relation.inner]
    width, whole = loops.extents[relation.inner], loops.extents[relation.parent]
    if outer is None or inner is None:
        return None
    if outer.whole and inner.whole:
        return _all_of(loops, relation.parent)
    limits = () if simplify(width * loops.extents[relation.outer]) is whole else (whole,)
    # A tile begins where the outer loop says, or earlier if it is shifted.
    start = simplify(loops.values[relation.parent] - loops.values[relation.inner])
    if outer.still:
        return replace(inner, whole=False).moved(start).below(limits)
    if inner.whole and start is simplify(loops.values[relation.outer] * width):
        ends = [simplify(limit * width) for limit in outer.limits]
        return Span(simplify(outer.low * width), simplify(outer.extent * width)).below([*ends, *limits])
    return inner.below(limits) if const_int(loops.extents[relation.outer]) == 1 else None


def _all_from(stage: Stage, sources: Mapping[str, list[Span]]) -> list[Span]:
    """What a stage that is always computed whole gives; its sources have to be finished as a whole."""
    for name, spans in sources.items():
        if not all(span.whole for span in spans):
            raise UnfinishedError(
                f"{stage.name} needs all of {name}, of which an iteration finishes a part",
                f"Compute {stage.name} at the root.",
            )
    return [Span(ZERO, extent, whole=True) for extent in stage.tensors[0].shape]


def _mapped(state: ScheduleState, known: Inference, stage: Stage, sources: Mapping[str, list[Span]]) -> list[Span]:
    """The elements of a stage whose reads of the sources lie in these spans: those of one iteration, of no other."""
    first: dict[Var, Span] | None = None
    first_read: TensorRead | None = None
    for read in dict.fromkeys(r for body in known.bodies[stage.name] for r in tensor_reads(body)):
        source = next((s for s in sources if any(t is read.tensor for t in state.stage(s).tensors)), None)
        if source is None:
            continue
        spans = _spans_of_axes(known, stage, read, sources[source])
        if first is None or first_read is None:
            first, first_read = spans, read
        elif not _agree(first, spans):
            raise UnfinishedError(
                f"{stage.name} reads {first_read} and {read}: what one element needs is finished in several iterations",
                f"Compute the stage before at a loop of {stage.name} instead (compute_at), or name a loop outside the "
                "one that runs along that dimension.",
            )
        else:
            first = {var: span.below(spans[var].limits) for var, span in first.items()}
    found = first or {}
    whole = {a.var: Span(ZERO, a.extent, whole=True) for a in stage.compute.axis}
    return [found.get(a.var, whole[a.var]) for a in stage.compute.axis]


def _agree(a: Mapping[Var, Span], b: Mapping[Var, Span]) -> bool:
    return a.keys() == b.keys() and all(s.low is b[v].low and s.extent is b[v].extent for v, s in a.items())


def _spans_of_axes(known: Inference, stage: Stage, read: TensorRead, spans: Sequence[Span]) -> dict[Var, Span]:
    """The parts of the axes by which a read goes along dimensions of which an iteration finishes only a part."""
    found: dict[Var, Span] = {}
    for dim, (index, span) in enumerate(zip(read.indices, spans, strict=True)):
        if span.whole:
            continue
        axis, offset = _axis_and_offset(stage, index)
        fits = axis is not None and prove(offset >= ZERO, known.facts)
        if axis is None or not fits or axis.var in found:
            raise UnfinishedError(
                f"{stage.name} reads {read}, but each iteration finishes a part of dimension {dim} only, and of that "
                "it must read one element for each of its own: one axis, each in one dimension, plus a constant",
                f"Leave {stage.name} at the root, or name a loop that does not run along that dimension.",
            )
        if not prove(axis.extent + offset <= read.tensor.shape[dim], known.facts):
            raise UnfinishedError(
                f"{stage.name} has {axis.extent} elements along {axis.name}, more than the iterations finish: it reads "
                f"{read}, of extent {read.tensor.shape[dim]}",
                f"Leave {stage.name} at the root.",
            )
        found[axis.var] = span.moved(-offset)
    return found


def _axis_and_offset(stage: Stage, index: Expr) -> tuple[Axis | None, Expr]:
    """An index as ``axis + offset``, the offset the same for all elements; no axis if it is not of that form."""
    axes = stage.compute.axis
    for axis in axes:
        offset = simplify(index - axis.var)
        variables = set(free_vars(offset))
        inside = {a.var for a in (*axes, *stage.compute.reduce_axis)}
        if not inside & variables and not any(isinstance(node, TensorRead) for node in walk(offset)):
            return axis, offset
    return None, ZERO
