"""What stages that are rounded up read beyond the ends of others. Part of bound inference.

A stage that is read there is computed so far, too; which of these there may be, ``rules/rounding.py`` says. The terms
of a reduction beyond its end run without a condition where they are proved to be the identity of the reducer, from the
bodies of the stages that they read: as they are of copies that hold 0 there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import mul

from ...ir.constants import ONE, ZERO, const_int
from ...ir.contents import free_vars, substitute
from ...ir.expr import Axis, Binary, Expr, Reduce, TensorRead, Var
from ...ir.facts import Facts, prove
from ...ir.linear import linear_of
from ...ir.makers import maximum
from ...ir.relax import Limits, Range
from ...ir.simplify import simplify
from ...ir.visit import Node, rewrite, walk
from ...te.tensor import Tensor
from ..passes.guards import conjuncts
from ..passes.linear import difference
from ..relations import RoundUpRelation
from ..stage import At, Stage
from ..state import ScheduleState
from .inference import Inference, ReadBeyond
from .nesting import enclosing_loops, readers_of
from .read_ranges import LoopRanges, loop_ranges, margin, reads_with_conditions
from .rounding import axis_behind, rounded_axes, rounded_loops

MOST_STAGES_READ_THROUGH = 4
"""How many stages, one reading the next, a proof looks through."""


def ends_read(known: Inference, stage: Stage) -> tuple[Expr, ...]:
    """How far a stage is read along each dimension: to the end of its tensor, or beyond it."""
    ends = list(stage.tensors[0].shape)
    for found in known.beyond[stage.name]:
        if found.bounds is not None:
            end = simplify(_with_positive_divisors(found.bounds[1] + ONE, known.facts))
            further = prove(end >= ends[found.dim], known.facts)
            ends[found.dim] = end if further else simplify(maximum(end, ends[found.dim]), known.facts)
    return tuple(ends)


def _with_positive_divisors(e: Expr, facts: Facts) -> Expr:
    """A number of elements where each divisor that may be 0 is at least 1: there are no elements where it is 0, but
    memory is had also then."""

    def positive(node: Node) -> Expr | None:
        if not (isinstance(node, Binary) and node.op in ("//", "%")) or prove(node.b > ZERO, facts):
            return None
        return node.a // maximum(node.b, ONE) if node.op == "//" else node.a % maximum(node.b, ONE)

    return rewrite(e, positive)


def reads_beyond(state: ScheduleState, known: Inference, source: Stage) -> Iterator[ReadBeyond]:
    """The reads of a stage, or an input, that may go beyond the ends of its tensors."""
    if not any(known.unguarded.values()):
        return
    for reader in readers_of(state, known.reads, source):
        if known.unguarded.get(reader.name):  # what runs after its producer is met later, and not rounded up
            yield from _of_reader(state, known, reader, source)


def _of_reader(state: ScheduleState, known: Inference, reader: Stage, source: Stage) -> Iterator[ReadBeyond]:
    unguarded = {reader.axis_of[loop].var for loop in known.unguarded[reader.name]}
    moved_by = unguarded | _bounded_by(unguarded, known, reader)
    reads = [
        (read, conditions, dims)
        for read, conditions in reads_with_conditions(known.bodies[reader.name])
        if read.tensor in source.tensors
        if (dims := [dim for dim, index in enumerate(read.indices) if not moved_by.isdisjoint(walk(index))])
    ]
    if not reads:
        return
    found = {var: value for var, value in known.axis_values(reader).items() if var in unguarded}
    ranges = _ranges(state, known, reader, found)
    around, begun = _margins_around(state, known, reader), list(_begun(known, reader, found))

    def inside(e: Expr) -> Expr:
        return simplify(substitute(e, found), ranges.facts)

    def bounds_of(index: Expr, within: LoopRanges) -> Range | None:
        moved = inside(index)
        return within.ended(within.narrowed(within.box(moved), moved, margins), moved, [*margins, *around])

    own = [axis for axis in _axes(known, reader) if axis.var in unguarded]
    has_elements = all(prove(axis.extent >= ONE, ranges.facts) for axis in own)
    for read, conditions, dims in reads:
        if _are_ended(own, conditions):
            continue
        margins = [inside(m) for condition in conditions for m in _margins(condition)]
        exact = ranges.dividing([inside(part) for condition in conditions for part in conjuncts(condition)])
        for dim in dims:
            index, extent = read.indices[dim], read.tensor.shape[dim]
            bounds = bounds_of(index, exact)
            # an index that is clamped leaves only a tensor without elements, and that also where nothing is rounded up
            end = maximum(extent, ONE) if has_elements else extent
            begins, ends = _begins(bounds, ZERO, ranges), _ends(bounds, end, ranges)
            if not (begins and ends):
                apart = ranges.box_of_parts(index, found, [m for c in conditions for m in _margins(c)])
                begins, ends = begins or _begins(apart, ZERO, ranges), ends or _ends(apart, end, ranges)
            if begins and ends:
                continue
            there = _where(ranges, index, margins)
            dividend, first, last = _dividend(index, extent, there.facts)
            whole = bounds_of(dividend, there)
            if not ((begins or _begins(whole, first, there)) and (ends or _ends(whole, last, there))):
                if bounds is not None:
                    bounds = bounds[0], exact.last(bounds[1], inside(index), begun)
                yield ReadBeyond(reader, read, dim, bounds)


def _are_ended(axes: Sequence[Axis], conditions: Sequence[Expr]) -> bool:
    """Whether conditions say of all these axes that they are not beyond their ends: nothing is read then that would not
    be read otherwise, as where a copy holds a number beyond the ends of what it computes."""
    margins = [m for condition in conditions for m in _margins(condition)]
    return bool(axes) and all(any(difference(a.extent - ONE - a.var, m) == 0 for m in margins) for a in axes)


def _where(ranges: LoopRanges, index: Expr, margins: Sequence[Expr]) -> LoopRanges:
    """The ranges where these margins are >= 0, with what they say of the divisors in an index: that n is positive where
    i < 17 * n, of an i that is >= 0."""
    facts = ranges.facts
    for divisor in (e.b for e in walk(index) if isinstance(e, Binary) and e.op in ("//", "%")):
        if not prove(divisor > ZERO, facts) and any(_needs_positive(m, divisor, facts) for m in margins):
            facts = facts.with_condition(divisor > ZERO)
    limits = ranges.varying if facts is ranges.facts else Limits.of(ranges.varying.ranges, facts)
    return LoopRanges(limits, ranges.ragged, facts)


def _needs_positive(margin: Expr, divisor: Expr, facts: Facts) -> bool:
    """Whether a margin is >= 0 only where a divisor is positive: it is less than a multiple of that."""
    for term in linear_of(margin):
        if any(factor is divisor for factor in term.factors) and term.coefficient > 0:
            product = reduce(mul, term.factors)
            if all(prove(f >= ZERO, facts) for f in term.factors) and prove(margin < product * term.coefficient, facts):
                return True
    return False


def _dividend(index: Expr, extent: Expr, facts: Facts) -> tuple[Expr, Expr, Expr]:
    """What an index is a quotient of, or a quotient moved by a number, which conditions speak of; and from where on and
    below what that stays where the index is at least 0 and below an extent."""
    first, end = ZERO, extent
    while (quotient := _quotient(index)) is not None and prove(quotient.b > ZERO, facts):
        offset = linear_of(index).constant
        first, end = (simplify((bound - offset) * quotient.b, facts) for bound in (first, end))
        index = quotient.a
    return index, first, end


def _quotient(e: Expr) -> Binary | None:
    """The quotient that an expression is, but for a number that is added."""
    terms = list(linear_of(e).terms.values())
    match terms[0].factors if len(terms) == 1 and terms[0].coefficient == 1 else ():
        case (Binary("//") as quotient,):
            return quotient
    return None


def _margins(condition: Expr) -> Iterator[Expr]:
    return (m for part in conjuncts(condition) if (m := margin(part)) is not None)


def first_of_tile(known: Inference, stage: Stage, value: Expr) -> Expr:
    """The first element of the tile that an element is in, of an axis that is computed on beyond its end. A loop that
    was rounded up to a tile is one, all others inside of the outermost one are."""
    loops, used = known.loops[stage.name], set(free_vars(value))
    of_axis = [leaf for leaf in stage.leaves if loops.vars[leaf] in used]
    tile = [leaf for k, leaf in enumerate(of_axis) if k or _is_one_tile(stage, leaf, loops.extents[leaf])]
    return substitute(value, {loops.vars[leaf]: ZERO for leaf in tile})


def _is_one_tile(stage: Stage, loop: str, extent: Expr) -> bool:
    """Whether a loop runs over as many elements as it was rounded up to a multiple of."""
    rounded = (r for r in stage.relations if isinstance(r, RoundUpRelation) and r.rounded == loop)
    return any(const_int(extent) == (relation.factor or relation.to) for relation in rounded)


def _begun(known: Inference, reader: Stage, unguarded: Mapping[Var, Expr]) -> Iterator[Expr]:
    """What is >= 0 wherever a stage is computed, as the guards say that it has: its tiles begin before the end."""
    if isinstance(reader.place, At):
        region, read = known.regions[reader.name], ends_read(known, reader)
        for dim, axis in enumerate(reader.compute.axis):
            if axis.var in unguarded and not region.is_whole(dim, axis.extent):
                yield read[dim] - ONE - first_of_tile(known, reader, unguarded[axis.var])


def _margins_around(state: ScheduleState, known: Inference, reader: Stage) -> list[Expr]:
    """What is >= 0 wherever a stage is computed, as the guards say that stand around its place."""
    around = enclosing_loops(state, reader.place)
    running = {known.loops[stage.name].vars[leaf] for stage, leaf in around}
    stages = {stage.name: stage for stage, _ in around}
    return [
        found
        for name in stages
        for guard in known.loops[name].guards
        if guard.tail == "guard" and not guard.reduce and running.issuperset(free_vars(guard.condition))
        for found in _margins(guard.condition)
    ]


def _begins(bounds: Range | None, first: Expr, ranges: LoopRanges) -> bool:
    return bounds is not None and prove(bounds[0] >= first, ranges.facts)


def _ends(bounds: Range | None, end: Expr, ranges: LoopRanges) -> bool:
    return bounds is not None and prove(bounds[1] < end, ranges.facts)


def _bounded_by(variables: set[Var], known: Inference, reader: Stage) -> set[Var]:
    """The axes of a reduction whose bounds depend on these variables, and so go as far as they do."""
    return {
        axis.var
        for axis in _axes(known, reader)
        if axis.var not in variables and not variables.isdisjoint((*walk(axis.min), *walk(axis.extent)))
    }


def _ranges(state: ScheduleState, known: Inference, reader: Stage, unguarded: Mapping[Var, Expr]) -> LoopRanges:
    """The ranges of the loops around a stage's body, and of its axes, which guards keep within their ends, but for the
    ``unguarded`` ones, which are given in terms of the loops."""
    loops = [*enclosing_loops(state, reader.place), *((reader, leaf) for leaf in reader.leaves)]
    ranges = loop_ranges(known, loops, set())
    varying, ragged = dict(ranges.varying.ranges), dict(ranges.ragged)
    facts = ranges.facts
    running, bounded = _running_axes(reader), _bounded_by(set(unguarded), known, reader)
    for axis in _axes(known, reader):
        if axis.var in running:
            facts = facts.with_condition(axis.extent >= ONE)
        if axis.var in unguarded:
            continue
        if any(isinstance(node, TensorRead) for node in (*walk(axis.min), *walk(axis.extent))):
            ragged[axis.var] = None
        elif axis.var in bounded:
            ragged[axis.var] = _widest(axis, unguarded, Limits.of(varying, facts))
        else:
            varying[axis.var] = (axis.min, simplify(axis.min + axis.extent - ONE))
            facts = facts.with_range(axis.var, axis.min, axis.extent)
    return LoopRanges(Limits.of(varying, facts), ragged, facts)


def _widest(axis: Axis, unguarded: Mapping[Var, Expr], limits: Limits) -> Range | None:
    """All that an axis runs over whose bounds depend on ``unguarded`` axes, None where that is not known."""
    first = limits.relax(simplify(substitute(axis.min, unguarded)))
    last = limits.relax(simplify(substitute(axis.min + axis.extent - ONE, unguarded)))
    return None if first is None or last is None else (first[0], last[1])


def _running_axes(stage: Stage) -> set[Var]:
    """The axes that have an element where the body of a stage runs, though it runs beyond their ends: of no elements
    the next multiple is none."""
    rounded = ((relation, axis_behind(stage, loop)) for relation, loop in rounded_loops(stage))
    return {
        stage.axis_of[axis].var
        for relation, axis in rounded
        if axis is not None and not (isinstance(relation, RoundUpRelation) and relation.to is not None)
    }


def _axes(known: Inference, stage: Stage) -> tuple[Axis, ...]:
    """The axes of a stage, those of its reduction as they are once inlined stages are put in."""
    reduction = known.reduction(stage)
    return (*stage.compute.axis, *(() if reduction is None else reduction.axes))


def unguarded_axes(state: ScheduleState, known: Inference, stage: Stage, ends: tuple[Expr, ...]) -> frozenset[str]:
    """The axes that need no condition beyond their end, by their first loops: of the spatial ones those that are
    rounded up or read there, of a reduction's those along which the terms beyond the end change nothing."""
    rounded = rounded_axes(stage)
    found: set[str] = set()
    spatial = iter(zip(ends, stage.tensors[0].shape, strict=True))
    for loop, axis in stage.axis_of.items():
        if axis.kind == "spatial":
            end, extent = next(spatial)
            if loop in rounded or end is not extent:
                found.add(loop)
        elif loop in rounded and _is_neutral_beyond(state, known, stage, axis):
            found.add(loop)
    return frozenset(found)


def _is_neutral_beyond(state: ScheduleState, known: Inference, stage: Stage, axis: Axis) -> bool:
    """Whether all terms of a reduction beyond the end of an axis are the identity."""
    reduction = known.reduction(stage)
    if reduction is None:
        return False
    own = next(a for a in reduction.axes if a.var is axis.var)
    facts = known.facts.with_condition(axis.var >= own.min + own.extent)
    for other in _axes(known, stage):
        if other.var is not axis.var:
            facts = facts.with_condition(other.var >= other.min)
    terms = (simplify(_read_through(state, known, source), facts) for source in reduction.sources)
    return all(term is e for term, e in zip(terms, reduction.combiner.identity, strict=True))


def _read_through(state: ScheduleState, known: Inference, e: Expr) -> Expr:
    """An expression in which the elements of stages that are no reductions stand as their bodies."""
    for _ in range(MOST_STAGES_READ_THROUGH):
        read_through = rewrite(e, lambda node: _body_of(state, known, node))
        if read_through is e:
            break
        e = read_through
    return e


def _body_of(state: ScheduleState, known: Inference, node: Node) -> Expr | None:
    if not (isinstance(node, TensorRead) and isinstance(node.tensor, Tensor)):
        return None
    source = state.stage_of(node.tensor)
    body = known.bodies.get(source.name)
    if not body or not source.is_compute or isinstance(body[0], Reduce):
        return None
    element = body[source.tensors.index(node.tensor)]
    axes: Mapping[Var, Expr] = dict(zip((a.var for a in source.compute.axis), node.indices, strict=True))
    return substitute(element, axes)
