"""The loops of one stage, derived from the extents of its axes: forward for extents, backward for the axes' values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from ...base.dataclass import dataclass
from ...base.dtype import INDEX
from ...ir.build import index_var
from ...ir.constants import ONE, ZERO, const, const_int
from ...ir.contents import substitute
from ...ir.expr import Expr, Var
from ...ir.makers import maximum, minimum
from ...ir.simplify import simplify
from ..relations import AccumulateRelation, FactorRelation, FuseRelation, RoundUpRelation, SplitRelation, Tail
from ..stage import Stage
from .rounding import axis_behind, made_of, rounded_axes


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """A condition under which an iteration counts: a split that does not divide its loop makes one.

    ``tail`` says what becomes of the condition. ``full`` holds in no iteration in which ``condition`` fails, and does
    not speak of the loop inside a tile: where it holds, ``tails.py`` makes loops without the condition.
    """

    condition: Expr
    reduce: bool
    tail: Tail = "guard"
    full: Expr | None = None

    def with_values(self, values: Mapping[Var, Expr]) -> Predicate:
        """The guard where these values stand for variables."""
        full = None if self.full is None else substitute(self.full, values)
        return replace(self, condition=substitute(self.condition, values), full=full)


@dataclass(frozen=True, slots=True, eq=False)
class StageLoops:
    """``extents`` and ``values`` are of all loops, past and present; ``vars`` of those that stand."""

    extents: Mapping[str, Expr]
    vars: Mapping[str, Var]
    values: Mapping[str, Expr]
    guards: tuple[Predicate, ...]

    def at(self, axes: Mapping[Var, Expr]) -> StageLoops:
        """The loops where extents depend on axes, at these values of the axes."""

        def put(found: Mapping[str, Expr]) -> dict[str, Expr]:
            return {loop: simplify(substitute(e, axes)) for loop, e in found.items()}

        guards = tuple(guard.with_values(axes) for guard in self.guards)
        return StageLoops(put(self.extents), self.vars, put(self.values), guards)


def ceildiv(a: Expr, b: Expr) -> Expr:
    """``a / b`` rounded up, for positive b."""
    rounded_up: Expr = (a + (b - ONE)) // b
    return simplify(rounded_up)


def derive_loops(stage: Stage, axis_extents: Sequence[Expr], unguarded: Collection[str] = frozenset()) -> StageLoops:
    """The loops of a stage whose axes (spatial, then reduction axes) have the given extents.

    The extents of axes that are rounded up come out longer. Terms of a reduction beyond the end are guarded then,
    but along the axes in ``unguarded``, given by their first loops: there they are known to change no result.
    """
    given = dict(zip(stage.axis_of, axis_extents, strict=True))
    extents = _extents(stage, given)
    variables = {leaf: index_var(stage.loops[leaf].name) for leaf in stage.leaves}
    values: dict[str, Expr] = {**variables}
    guards: list[Predicate] = []
    for relation in reversed(stage.relations):
        match relation:
            case SplitRelation(parent, outer, inner):
                start = values[outer] * extents[inner]
                if not _divides(extents[inner], extents[outer], extents[parent]):
                    start, guard = _tail(stage, relation, extents, values)
                    guards += [] if guard is None else [guard]
                values[parent] = start + values[inner]
            case FuseRelation(outer, inner, fused) if const_int(extents[outer]) == 1:
                values[outer], values[inner] = ZERO, values[fused]  # also behind the end, where tiles may reach
            case FuseRelation(outer, inner, fused):
                # An empty inner loop makes an empty fused loop; its divisor is never used, but must not be 0.
                divisor = ONE if const_int(extents[inner]) == 0 else extents[inner]
                values[outer] = values[fused] // divisor
                values[inner] = values[fused] % divisor
            case RoundUpRelation(parent, rounded):
                values[parent] = values[rounded]
            case AccumulateRelation(fold, along, reverse):
                values[along] = extents[along] - ONE - variables[along] if reverse else variables[along]
                values[fold] = extents[fold] - ONE
                guards.append(Predicate(extents[fold] >= ONE, reduce=True))
            case FactorRelation():
                pass
            case _:
                assert_never(relation)
    for axis in sorted(rounded_axes(stage)):
        if stage.loops[axis].reduce and axis not in unguarded and extents[axis] is not given[axis]:
            guards.append(Predicate(values[axis] < given[axis], reduce=True))
    return StageLoops(extents, variables, values, tuple(guards))


def _extents(stage: Stage, given: Mapping[str, Expr]) -> dict[str, Expr]:
    """The extents of all loops, past and present, from those of the axes."""
    extents = dict(given)
    for relation in stage.relations:
        match relation:
            case SplitRelation(parent, outer, inner, factor, nparts, tail):
                whole = extents[parent]
                if factor is not None:
                    extents[inner] = _tile_width(factor, whole, tail)
                    extents[outer] = ceildiv(whole, extents[inner])
                else:
                    extents[outer] = const(nparts or 1, INDEX)
                    extents[inner] = ceildiv(whole, extents[outer])
                if tail == "round_up":
                    _lengthen(stage, extents, parent, simplify(extents[outer] * extents[inner]))
            case FuseRelation(outer, inner, fused):
                extents[fused] = simplify(extents[outer] * extents[inner])
            case RoundUpRelation(parent, rounded, factor, to):
                extents[rounded] = _rounded_up(extents[parent], factor, to)
                _lengthen(stage, extents, parent, extents[rounded])
            case FactorRelation() | AccumulateRelation():
                pass  # its loop runs over an axis
            case _:
                assert_never(relation)
    return extents


def _rounded_up(extent: Expr, factor: int | None, to: int | None) -> Expr:
    if factor is not None:
        return simplify(ceildiv(extent, const(factor, INDEX)) * const(factor, INDEX))
    most = const(to or 0, INDEX)
    return simplify(minimum(extent * most, maximum(extent, most)))  # what is empty stays so


def _lengthen(stage: Stage, extents: dict[str, Expr], loop: str, extent: Expr) -> None:
    """Make a loop longer, and those that it was made of; inside a tile it stays as it is, and is guarded."""
    if axis_behind(stage, loop) is None:
        return
    extents[loop] = extent
    for relation in made_of(stage, loop):
        match relation:
            case SplitRelation(parent, outer, inner):
                extents[parent] = simplify(extents[outer] * extents[inner])
            case FuseRelation(outer, inner, fused):
                inner_extent = extents[inner] if const_int(extents[inner]) else maximum(extents[inner], ONE)  # or empty
                extents[outer] = ceildiv(extents[fused], inner_extent)
            case RoundUpRelation(parent, rounded):
                extents[parent] = extents[rounded]
            case FactorRelation() | AccumulateRelation():
                pass
            case _:
                assert_never(relation)


def _tile_width(factor: int, whole: Expr, tail: Tail) -> Expr:
    """The extent of an inner loop; a tile that is to be shifted shrinks where the whole loop is shorter."""
    extent = const_int(whole)
    if tail == "shift" and extent is not None:
        factor = max(1, min(factor, extent))
    return const(factor, INDEX)


def _tail(
    stage: Stage, relation: SplitRelation, extents: Mapping[str, Expr], values: Mapping[str, Expr]
) -> tuple[Expr, Predicate | None]:
    """Where the tiles of a split begin that does not divide its loop, and what guards them."""
    whole, width = extents[relation.parent], extents[relation.inner]
    outer, inner = values[relation.outer], values[relation.inner]
    start = outer * width
    if relation.tail != "shift":
        reduce = stage.loops[relation.parent].reduce
        full = None
        if relation.tail == "peel":
            full = outer < whole // (width if const_int(width) is not None else maximum(width, ONE))
        return start, Predicate(start + inner < whole, reduce, relation.tail, full)
    start = minimum(start, simplify(whole - width))
    if const_int(whole) is not None or relation.nparts is not None:
        return start, None  # a tile is no wider than the whole
    return maximum(start, ZERO), Predicate(inner < whole, reduce=False, tail="shift", full=whole >= width)


def _divides(inner: Expr, outer: Expr, whole: Expr) -> bool:
    return simplify(inner * outer) is whole
