"""Other axes for a stage that ``cache_read`` or ``cache_write`` makes: those that an index map gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...base.dataclass import dataclass
from ...base.errors import ScheduleError
from ...ir.build import index_var
from ...ir.constants import ONE, ZERO
from ...ir.contents import substitute
from ...ir.expr import Axis, Binary, Const, Expr, Reduce, TensorRead, Var
from ...ir.facts import NO_FACTS, Facts, prove
from ...ir.makers import logical_and, maximum, minimum
from ...ir.relax import Limits, Range
from ...ir.simplify import simplify
from ...ir.visit import Node, rewrite, walk
from ...te.tensor import ComputeOp
from ..index_map import IndexMap, Inverse, index_map
from ..nest.read_ranges import LoopRanges, margin, reads_with_conditions
from ..nest.scans import starting_place
from ..passes.guards import conjuncts
from ..report import schedule_error
from ..rules.ragged import has_ragged_loops
from ..stage import At, Stage
from ..state import ScheduleState


@dataclass(frozen=True, slots=True, eq=False)
class Rearranged:
    """New ``axes``, and the element that they are at, by a ``layout``; None: the axes as they were.

    ``leaves_gaps`` says that the new axes are at some elements that the old ones do not have.
    """

    axes: tuple[Axis, ...]
    element: Inverse
    layout: IndexMap | None = None
    leaves_gaps: bool = False

    @property
    def text(self) -> str:
        """The index map as a trace writes it; empty where the axes stay as they were."""
        return "" if self.layout is None else repr(self.layout.text)

    def inside(self, indices: Sequence[Expr], extents: Sequence[Expr]) -> Expr:
        """The condition that there is an element with these indices."""
        ends = [self._below(index, end) for index, end in zip(indices, extents, strict=True)]
        begins = [index >= ZERO for index in indices] if self._has_earlier else []
        return logical_and([*begins, *ends])

    def nearest(self, indices: Sequence[Expr], extents: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices of the element that is nearest to these, of a box that is not empty."""
        before_end = [minimum(index, end - 1) for index, end in zip(indices, extents, strict=True)]
        return tuple(maximum(index, ZERO) for index in before_end) if self._has_earlier else tuple(before_end)

    @property
    def _has_earlier(self) -> bool:
        """Whether the new axes are at indices before the first, too."""
        return self.layout is not None and self.layout.adds_constants

    def _below(self, index: Expr, end: Expr) -> Expr:
        """The condition that an index of the element is before an end. If the index is ``number // 9`` of a number that
        loops count, the condition is one on the number."""
        match index:
            case Binary("//", Var() as number, Const() as divisor) if number in self.element.numbers:
                return number < end * divisor
        return index < end

    def body(self, e: Expr, facts: Facts) -> Expr:
        """What is computed at ``element.indices``, by the new axes.

        What is read is simplified while its indices are made of axes and numbers: once these are split,
        ``p // 10 * 10 + p % 10`` may not be found to be p.
        """
        if self.layout is None:
            return e

        def simpler(node: Node) -> Expr | None:
            if not isinstance(node, TensorRead):
                return None
            return TensorRead(node.tensor, tuple(simplify(index, facts) for index in node.indices))

        return substitute(rewrite(e, simpler), self.element.numbers)

    def of(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where the new axes are at the element with these indices, as it is written: ``(i * 5 + j) // 4`` of
        ``i = p // 5`` and ``j = p % 5`` is ``p // 4``, which is found where p is known."""
        return indices if self.layout is None else self.layout(indices)


def rearranged_axes(
    state: ScheduleState, stage: Stage, old: tuple[Axis, ...], text: str | None, verb: str
) -> Rearranged:
    """The axes that an index map gives in place of the ``old`` ones of a stage. Raises ``ScheduleError`` where that
    does not tell which element they are at."""
    if text is None:
        return Rearranged(old, Inverse(tuple(a.var for a in old), {}))
    if has_ragged_loops(stage):
        raise schedule_error(
            state, f"cannot {verb} {stage.name} with axes: it has loops whose extent varies", "Leave axes out."
        )
    if isinstance(starting_place(state, stage), At):
        raise schedule_error(
            state,
            f"cannot {verb} {stage.name} with axes: it depends on the state of a scan, whose steps go along an axis of "
            "their own",
            "Leave axes out.",
        )
    try:
        layout = index_map(text, len(old))
    except ScheduleError as error:
        advice = "An index map is such as lambda i, j: (i // 8, j, i % 8)."
        raise schedule_error(state, f"cannot {verb} {stage.name} with axes: {error}", advice) from None
    extents = tuple(a.extent for a in old)
    shape = layout.shape(extents, _dimensions(extents))
    variables = [index_var(name) for name in _names(layout, old)]
    element = None if shape is None else layout.inverse(variables, extents, dense=True)
    if shape is None or element is None:
        box = ", ".join(map(str, extents))
        raise schedule_error(
            state,
            f"cannot {verb} {stage.name} with axes={layout.text}: they do not tell which of the ({box}) elements they "
            "are at",
            "Write down all digits of each index, as lambda i, j: (i // 8, j, i % 8) does; "
            "to join indices, multiply by a constant, at least the extent of those below: i * 16 + j.",
        )
    kept: dict[Expr, Expr] = dict(zip(layout.parameters, extents, strict=True))
    placed = zip(layout.results, shape, strict=True)
    full = [_axis_extent(result, kept.get(result, extent)) for result, extent in placed]
    axes = tuple(Axis(var, ZERO, extent, "spatial") for var, extent in zip(variables, full, strict=True))
    return Rearranged(axes, element, layout, not layout.is_onto(extents, full))


def check_gaps(state: ScheduleState, stage: Stage, computing: ComputeOp, given: Rearranged) -> None:
    """Raise ``ScheduleError`` where elements between those of a stage may read what does not exist."""
    old = {index: axis.extent for index, axis in zip(given.element.indices, stage.compute.axis, strict=True)}
    moved = {axis.var for axis in given.axes if old.get(axis.var) is not axis.extent}
    reduced = {axis.var: axis for body in computing.body if isinstance(body, Reduce) for axis in body.axes}
    running = {a.var: (a.min, simplify(a.min + a.extent - ONE)) for a in (*computing.axis, *reduced.values())}
    facts = _dimensions([axis.extent for axis in computing.axis])
    ranges = LoopRanges(Limits.of(running, facts), {}, facts)
    for read, conditions in reads_with_conditions(computing.body):
        parts = [part for condition in conditions for part in conjuncts(condition)]
        margins = [m for part in parts if (m := margin(part)) is not None]
        within = ranges.dividing(parts)
        known: Facts | None = None
        for dim, (read_at, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
            if moved.isdisjoint(walk(read_at)):
                continue
            index = simplify(read_at, facts)  # made of digits now, which ``body`` has put in place of numbers
            bounds = within.ended(within.narrowed(within.box(index), index, margins), index, margins)
            if bounds is not None and prove(bounds[0] >= ZERO, facts) and prove(bounds[1] < extent, facts):
                continue
            known = known or _where_read(running, conditions, facts)
            if not (prove(index >= ZERO, known) and prove(index < extent, known)):
                raise _beyond(state, stage, read, dim, given)


def _where_read(running: Mapping[Var, Range], conditions: Sequence[Expr], facts: Facts) -> Facts:
    """What holds where conditions do, while variables run from first to last."""
    for var, (first, last) in running.items():
        facts = facts.with_range(var, first, last + ONE)
    for condition in conditions:
        facts = facts.with_condition(condition)
    return facts


def _beyond(state: ScheduleState, stage: Stage, read: TensorRead, dim: int, given: Rearranged) -> ScheduleError:
    name = read.tensor.name
    return schedule_error(
        state,
        f"cannot cache_write {stage.name} with axes={given.text}: between its elements {read} may be beyond the "
        f"ends of {name}, along dimension {dim}",
        f"Let it read a copy of {name} with such axes first, which has elements there: s.cache_read(…, pad=0, axes=…).",
    )


def _axis_extent(result: Expr, extent: Expr) -> Expr:
    """The extent of an axis: that of the box of all places, or of the old axis that it is, but of digits below a
    number, ``… % 16``, that number."""
    return result.b if isinstance(result, Binary) and result.op == "%" else extent


def _names(layout: IndexMap, old: Sequence[Axis]) -> list[str]:
    """Names for the new axes: of the old ones that they are made of."""
    name_of = {parameter: axis.var.name for parameter, axis in zip(layout.parameters, old, strict=True)}
    return [
        "_".join(dict.fromkeys(name_of[node] for node in walk(result) if isinstance(node, Var))) or "one"
        for result in layout.results
    ]


def _dimensions(extents: Sequence[Expr]) -> Facts:
    """The fact that no symbolic extent is negative."""
    facts = NO_FACTS
    for var in dict.fromkeys(node for extent in extents for node in walk(extent) if isinstance(node, Var)):
        facts = facts.with_condition(var >= ZERO)
    return facts
