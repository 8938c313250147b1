"""The box of a stage's elements that one iteration of the loop it is placed at needs. Part of bound inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...base.dataclass import dataclass
from ...base.errors import InternalError
from ...ir.constants import ONE, TRUE, ZERO, const, const_int
from ...ir.contents import free_vars, substitute
from ...ir.expr import Expr, Select, Var
from ...ir.facts import Facts, prove
from ...ir.makers import logical_and, maximum, minimum
from ...ir.relax import Range, lower_bounds, upper_bounds
from ...ir.simplify import simplify
from ...ir.visit import tensor_reads
from ...te.tensor import ExternOp
from ..passes.guards import conjuncts
from ..stage import At, Stage
from ..state import ScheduleState
from .inference import ElementBox, Inference, whole
from .nesting import enclosing_loops
from .read_ranges import LoopRanges, loop_ranges, margin, reads_with_conditions

Box = list["Range | None"]
"""The bounds of each index; None where there are none."""


def needed(state: ScheduleState, stage: Stage, place: At, known: Inference, ends: tuple[Expr, ...]) -> ElementBox:
    """The box of the stage's elements that one iteration of the loop it is placed at reads, before these ends.

    Its size is the same in all iterations, and it may reach beyond the tensor: what lies outside is not computed.
    """
    around = enclosing_loops(state, place)
    fixed = {known.loops[s.name].vars[leaf] for s, leaf in around}
    readers = []
    for name, bodies in known.bodies.items():
        reader = state.stage(name)
        if isinstance(reader.op, ExternOp) and set(stage.tensors).intersection(reader.op.inputs):
            return whole(stage)
        own = [body for body in bodies if any(r.tensor in stage.tensors for r in tensor_reads(body))]
        if own:
            loops = [*enclosing_loops(state, reader.place), *((reader, leaf) for leaf in reader.leaves)]
            readers.append(_Reader(stage, own, known.axis_values(reader), loop_ranges(known, loops, fixed)))
    if not readers:
        raise InternalError(f"stage {stage.name} is placed at a loop, but nothing reads it")
    facts = loop_ranges(known, around, fixed).facts  # readers inside may run or not
    box = _hull([found for reader in readers for found in reader.boxes()])
    sides = [_steady_side(r, extent, facts, fixed) for r, extent in zip(box, ends, strict=True)]
    if None in sides:
        possible = [found for reader in readers for found in reader.boxes_under_conditions()]
        box = _hull_of_possible(possible, facts)
        sides = [
            _steady_side(r, extent, facts, fixed) or _largest_side(r, extent, facts)
            for r, extent in zip(box, ends, strict=True)
        ]
    found = [side for side in sides if side is not None]
    return ElementBox(tuple(low for low, _ in found), tuple(extent for _, extent in found))


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """The bodies of one stage that read ``stage``, with the values of its axes and the ranges of its loops."""

    stage: Stage
    bodies: Sequence[Expr]
    values: Mapping[Var, Expr]
    ranges: LoopRanges

    def boxes(self) -> Iterator[Box]:
        """What each read reads while the loops run, whether or not a condition keeps it from being made."""
        reads = [r for body in self.bodies for r in tensor_reads(body) if r.tensor in self.stage.tensors]
        indices = dict.fromkeys(i for read in reads for i in read.indices)  # neighbours share most of theirs
        found = {i: self.ranges.box(self._inside(i)) for i in indices}
        return ([found[i] for i in read.indices] for read in reads)

    def boxes_under_conditions(self) -> Iterator[tuple[Expr, Box]]:
        """The same, of reads that conditions allow. Each comes with a condition that holds wherever the read may be
        made while the loops run."""
        for read, conditions in reads_with_conditions(self.bodies):
            if read.tensor in self.stage.tensors:
                margins = [
                    self._inside(m) for c in conditions for part in conjuncts(c) if (m := margin(part)) is not None
                ]
                ends = (self.ranges.box(margin) for margin in margins)
                may = logical_and([end[1] >= ZERO for end in ends if end is not None])
                indices = [self._inside(i) for i in read.indices]
                box = [self.ranges.narrowed(self.ranges.box(i), i, margins) for i in indices]
                yield simplify(may, self.ranges.facts), box

    def _inside(self, e: Expr) -> Expr:
        return simplify(substitute(e, self.values), self.ranges.facts)


def _hull(boxes: Sequence[Box]) -> Box:
    """The smallest box around some."""
    first, *others = boxes
    result = first
    for box in others:
        result = [_join(a, b) for a, b in zip(result, box, strict=True)]
    return result


def _join(a: Range | None, b: Range | None) -> Range | None:
    if a is None or b is None:
        return None
    return minimum(a[0], b[0]), maximum(a[1], b[1])


def _hull_of_possible(boxes: Sequence[tuple[Expr, Box]], facts: Facts) -> Box:
    """The smallest box around those whose condition holds; of the first, whatever that is."""
    (_, result), *others = sorted(boxes, key=lambda found: found[0] is not TRUE)
    for may, box in others:
        result = [_join_if(may, a, b, facts) for a, b in zip(result, box, strict=True)]
    return result


def _join_if(may: Expr, a: Range | None, b: Range | None, facts: Facts) -> Range | None:
    """Ends around ``a``, and around ``b`` where the condition holds."""
    if a is None or b is None:
        return None
    there = facts.with_condition(may)
    low = a[0] if prove(b[0] >= a[0], there) else Select(may, minimum(a[0], b[0]), a[0])
    high = a[1] if prove(b[1] <= a[1], there) else Select(may, maximum(a[1], b[1]), a[1])
    return simplify(low, facts), simplify(high, facts)


def _steady_side(box: Range | None, extent: Expr, facts: Facts, fixed: set[Var]) -> tuple[Expr, Expr] | None:
    """First element and number of elements of one dimension; all of it where the box is not known or no smaller.

    The size of the buffer must not change from one iteration to the next. Where that of the box does, as it is cut off
    by the ends of a tensor, ends further out are taken, so that it does not; None if there are none.
    """
    if box is None:
        return ZERO, extent
    low, high = simplify(box[0], facts), simplify(box[1], facts)
    count = simplify(high - low + ONE, facts)
    if fixed.isdisjoint(free_vars(count)):
        return _clipped(low, count, extent, facts)
    steady: list[tuple[Expr, Expr]] = []
    for first in lower_bounds(low, facts):
        counts = (simplify(last - first + ONE, facts) for last in upper_bounds(high, facts))
        steady += [(first, number) for number in counts if fixed.isdisjoint(free_vars(number))]
    if not steady:
        return None
    first, number = min(steady, key=lambda side: (const_int(side[1]) is None, const_int(side[1]) or 0))
    return _clipped(first, number, extent, facts)


def _largest_side(box: Range | None, extent: Expr, facts: Facts) -> tuple[Expr, Expr]:
    """The same where the size of the box changes: as many elements as it has in any iteration."""
    if box is None:
        return ZERO, extent
    low, high = simplify(box[0], facts), simplify(box[1], facts)
    ends = [facts.interval(count).high for count in upper_bounds(simplify(high - low + ONE, facts), facts)]
    largest = min((end for end in ends if end is not None), default=None)
    if largest is None:
        return ZERO, extent
    return _clipped(low, const(max(largest, 0), "index"), extent, facts)


def _clipped(low: Expr, count: Expr, extent: Expr, facts: Facts) -> tuple[Expr, Expr]:
    if prove(count >= extent, facts):
        return ZERO, extent
    if not prove(count >= ZERO, facts):
        count = simplify(maximum(count, ZERO), facts)
    return low, count
