"""The primitive that folds each element of a stage from the one before it: accumulate."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from ...base.dataclass import dataclass
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Axis, Reduce
from ...ir.simplify import simplify
from ...ir.visit import walk
from ...te.tensor import ComputeOp
from ..relations import AccumulateRelation
from ..report import schedule_error
from ..rules.loops import require_serial, require_unattached, stage_with_changeable_loops
from ..stage import Stage
from ..state import ScheduleState
from ..step import StageStep


@dataclass(frozen=True, slots=True, repr=False)
class Accumulate(StageStep):
    """Fold each element along a loop from the one before it, which has folded all terms but the last.

    So running sums, whose definition sums all terms of each element anew, take one addition an element: they go on from
    a fold that the stage keeps, an element of it for each iteration of the loops inside. Terms are folded in the order
    of the definition.

    Arguments: ``loop``, which runs over a spatial axis.
    Preconditions: the loop stands, is serial and the axis' own; the stage is a reduction over one axis, which begins at
    0 and gets longer by 1 from element to element, from 0 or 1: ``te.reduce_axis((0, k + 1))`` or ``(0, k)``, or, from
    the last of ``n`` elements to the first, ``(0, n - k)`` or ``(0, n - 1 - k)``. Its terms do not depend on the loop's
    axis otherwise. The loop stays serial, or is unrolled, in no vectorized loop, and all elements along it are computed
    where the stage is.

    Rewrite, ``s[B].accumulate(k)``::

        for i in range(4):                        for i in range(4):
            for k in range(8):                        B.fold[] = 0.0
                B[i, k] = 0.0                →        for k in range(8):
                for j in range(k + 1):                    B.fold[] += A[i, k]
                    B[i, k] += A[i, j]                    B[i, k] = B.fold[]

    Source: the reuse of partial results in Gautam and Rajopadhye, "Simplifying Reductions", POPL 2006.
    """

    primitive: ClassVar[str] = "accumulate"

    loop: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        require_serial(state, stage, self.loop, "accumulate along")
        relation = self._relation(state, stage)
        require_serial(state, stage, relation.fold, "fold away")
        require_unattached(state, stage, relation.fold, "fold away")
        leaves = tuple(leaf for leaf in stage.leaves if leaf != relation.fold)
        return state.with_stage(replace(stage, relations=(*stage.relations, relation), leaves=leaves))

    def _relation(self, state: ScheduleState, stage: Stage) -> AccumulateRelation:
        axis = stage.axis_of.get(self.loop)
        way = None if axis is None or axis.kind != "spatial" else accumulation(stage.compute, axis)
        folds = [loop for loop in stage.leaves if stage.loops[loop].reduce]
        if way is not None and len(folds) == 1 and folds[0] in stage.axis_of:
            return AccumulateRelation(folds[0], self.loop, way == "reverse")
        if way is None:
            problem = "its elements are not those before them with one more term, along a whole axis"
            advice = (
                "Along k, te.sum(x[j], axis=j) of j = te.reduce_axis((0, k + 1)) can be accumulated, or another "
                "reduction whose terms do not depend on k."
            )
        else:
            problem, advice = (
                "its reduction loop is not what it was",
                "Accumulate before the reduction loop is changed.",
            )
        message = f"cannot accumulate along loop {stage.loops[self.loop].name} of {stage.name}: {problem}"
        raise schedule_error(state, message, advice, [self.loop])


def accumulation(op: ComputeOp, axis: Axis) -> Literal["forward", "reverse"] | None:
    """Which way along a spatial axis each element of a reduction folds the terms of the one before it, and one more;
    None if neither way."""
    if (reduction := op.reduction) is None or len(reduction.axes) != 1 or _terms_depend(reduction, axis):
        return None
    (folded,) = reduction.axes
    if folded.min is not ZERO:
        return None
    if const_int(simplify(folded.extent - axis.var)) in (0, 1):
        return "forward"
    return "reverse" if const_int(simplify(folded.extent + axis.var + ONE - axis.extent)) in (0, 1) else None


def _terms_depend(reduction: Reduce, axis: Axis) -> bool:
    terms = (*reduction.sources, *(() if reduction.condition is None else (reduction.condition,)))
    return any(node is axis.var for term in terms for node in walk(term))
