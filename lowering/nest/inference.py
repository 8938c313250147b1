"""What bound inference finds of a schedule's state: values, which ``regions.py`` computes and ``realize`` uses."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.dataclass import dataclass
from ...ir.constants import ZERO
from ...ir.contents import substitute
from ...ir.expr import Axis, Expr, Reduce, TensorRead, Var
from ...ir.facts import Facts
from ...ir.relax import Range
from ..stage import Stage
from .loops import StageLoops
from .nesting import Reads


@dataclass(frozen=True, slots=True, eq=False)
class ElementBox:
    """A box of elements: per dimension, the first element, how many there are, and limits that guards keep all of them
    below.

    Of a stage this is what is computed where it is placed, of memory what it has room for.
    """

    lows: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    limits: tuple[tuple[Expr, ...], ...] = ()

    def limits_of(self, dim: int) -> tuple[Expr, ...]:
        """The limits of one dimension, below each of which a guard keeps its elements; none where the whole box is
        computed."""
        return self.limits[dim] if self.limits else ()

    def is_whole(self, dim: int, extent: Expr) -> bool:
        """Whether the box has all of a dimension that is ``extent`` long. Both are compared as objects: equal ones are
        one."""
        return self.lows[dim] is ZERO and self.extents[dim] is extent


def whole(stage: Stage) -> ElementBox:
    """All elements of a stage."""
    shape = stage.tensors[0].shape
    return ElementBox((ZERO,) * len(shape), shape)


@dataclass(frozen=True, slots=True, eq=False)
class ReadBeyond:
    """A read that may leave its tensor along a dimension, since its reader is rounded up. ``bounds`` are those of the
    index; None where they are not known."""

    reader: Stage
    read: TensorRead
    dim: int
    bounds: Range | None


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """All that bound inference finds. ``bodies`` are those of the computes after inlining, ``reads`` who reads whom.

    ``unguarded`` has, of each stage, the first loops of the axes that run on beyond their end without a condition;
    ``beyond``, of each stage and input, the reads that may go there.

    ``regions`` says what of each stage is computed where it is placed, ``memory`` for what its memory has room. That
    lives in the iterations of the loop named in ``homes``; without an entry there, all the time.
    """

    bodies: Mapping[str, tuple[Expr, ...]]
    reads: Reads
    homes: Mapping[str, tuple[str, str]]
    loops: Mapping[str, StageLoops]
    regions: Mapping[str, ElementBox]
    memory: Mapping[str, ElementBox]
    unguarded: Mapping[str, frozenset[str]]
    beyond: Mapping[str, tuple[ReadBeyond, ...]]
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
            low = next(of_region) if axis.kind == "spatial" else substitute(self._first(stage, axis), values)
            values[axis.var] = loops.values[loop] if low is ZERO else low + loops.values[loop]
        return values

    def _first(self, stage: Stage, axis: Axis) -> Expr:
        """Where an axis begins, after inlining."""
        reduction = self.reduction(stage)
        axes = () if reduction is None else reduction.axes
        return next((a.min for a in axes if a.var is axis.var), axis.min)
