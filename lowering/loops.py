"""The loops of one stage, derived from the extents of its axes: forward for extents, backward for the axes' values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir.build import index_var
from ..ir.dtype import INDEX
from ..ir.expr import ONE, Expr, Var, const, const_int
from ..ir.simplify import simplify
from .state import FactorRelation, FuseRelation, SplitRelation, Stage


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which an iteration counts: a split that does not divide its loop makes one."""

    condition: Expr
    reduce: bool


@dataclass(frozen=True, slots=True)
class StageLoops:
    """``extents`` and ``values`` are of all loops, past and present; ``vars`` of those that stand."""

    extents: Mapping[str, Expr]
    vars: Mapping[str, Var]
    values: Mapping[str, Expr]
    guards: tuple[Guard, ...]


def ceildiv(a: Expr, b: Expr) -> Expr:
    """``a / b`` rounded up, for positive b."""
    rounded_up: Expr = (a + (b - ONE)) // b
    return simplify(rounded_up)


def derive_loops(stage: Stage, axis_extents: Sequence[Expr]) -> StageLoops:
    """The loops of a stage whose axes (spatial, then reduction axes) have the given extents."""
    extents = dict(zip(stage.axis_of, axis_extents, strict=True))
    for relation in stage.relations:
        match relation:
            case SplitRelation(parent, outer, inner, factor, nparts):
                whole = extents[parent]
                if factor is not None:
                    extents[inner] = const(factor, INDEX)
                    extents[outer] = ceildiv(whole, extents[inner])
                else:
                    extents[outer] = const(nparts or 1, INDEX)
                    extents[inner] = ceildiv(whole, extents[outer])
            case FuseRelation(outer, inner, fused):
                extents[fused] = simplify(extents[outer] * extents[inner])
            case FactorRelation():
                pass  # its loop runs over an axis
    variables = {leaf: index_var(stage.loops[leaf].name) for leaf in stage.leaves}
    values: dict[str, Expr] = {**variables}
    guards: list[Guard] = []
    for relation in reversed(stage.relations):
        match relation:
            case SplitRelation(parent, outer, inner):
                values[parent] = values[outer] * extents[inner] + values[inner]
                if not _divides(extents[inner], extents[outer], extents[parent]):
                    guards.append(Guard(values[parent] < extents[parent], stage.loops[parent].reduce))
            case FuseRelation(outer, inner, fused):
                # An empty inner loop makes an empty fused loop; its divisor is never used, but must not be 0.
                divisor = ONE if const_int(extents[inner]) == 0 else extents[inner]
                values[outer] = values[fused] // divisor
                values[inner] = values[fused] % divisor
            case FactorRelation():
                pass
    return StageLoops(extents, variables, values, tuple(guards))


def _divides(inner: Expr, outer: Expr, whole: Expr) -> bool:
    return simplify(inner * outer) is whole
