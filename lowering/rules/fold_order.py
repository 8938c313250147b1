"""The order in which a reduction folds its terms, and who minds that a schedule changes it.

Integers and most reducers of floats don't, but for rounding. A reducer whose result depends on the order does, and so
does a build with strict rounding.
"""

from __future__ import annotations

from ...base.errors import ScheduleError
from ...ir.expr import Binary, Call, Cast, Combiner
from ...ir.visit import walk
from ...te.reducer_laws import order_counterexample
from ..relations import AccumulateRelation, FactorRelation, FuseRelation, RoundUpRelation, SplitRelation
from ..report import schedule_error
from ..stage import Stage
from ..state import ScheduleState


def keeps_order(stage: Stage) -> bool:
    """Whether a stage's reduction loops run through the terms in the order of its axes, the last of them innermost."""
    order = [loop for loop, axis in stage.axis_of.items() if axis.kind == "reduce"]
    for relation in stage.relations:
        match relation:
            case SplitRelation(parent, outer, inner) if parent in order:
                at = order.index(parent)
                order[at : at + 1] = [outer, inner]
            case FuseRelation(outer, inner, fused) if outer in order:
                at = order.index(outer)
                if order[at + 1 : at + 2] != [inner]:
                    return False
                order[at : at + 2] = [fused]
            case RoundUpRelation(parent, rounded) if parent in order:
                order[order.index(parent)] = rounded
            case AccumulateRelation(fold):
                order.remove(fold)
    return order == [leaf for leaf in stage.leaves if stage.loops[leaf].reduce]


def check_fold_order(state: ScheduleState, stage_name: str, before: ScheduleState) -> None:
    """A reducer whose result depends on the order gets its terms in the order of the axes; ``before`` is what an error
    shows."""
    stage = state.stage(stage_name)
    reduction = stage.compute.reduction
    if reduction is None or keeps_order(stage):
        return
    example = order_counterexample(reduction.combiner)
    if example is not None:
        raise schedule_error(
            before,
            f"the reduction loops of {stage.name} cannot change their order: "
            f"the result of {reduction.combiner.name} depends on it; {example}",
            "Keep the reduction loops in the order of the axes; move the loops over spatial axes around them.",
            [leaf for leaf in before.stage(stage_name).leaves if stage.loops[leaf].reduce],
        )


def require_order_of_definition(state: ScheduleState) -> None:
    """Refuse a schedule that rounds the results of its float reductions otherwise than their definitions do."""
    for decision in state.decisions:
        if decision.reorders_sum and decision.value != decision.default:
            raise ScheduleError(
                f"strict precision folds the terms of a float reduction in the order of its definition, but the "
                f"decision {decision.name!r} changes it where it is {decision.value!r}\nLeave it at "
                f"{decision.default!r}, or build it with precision='standard'."
            )
    for stage in state.stages:
        reduction = stage.compute.reduction if stage.is_compute else None
        if reduction is None or not _rounds(reduction.combiner):
            continue
        factored = next((r for r in stage.relations if isinstance(r, FactorRelation)), None)
        if factored is not None:
            how = f"rfactor folds the terms of {reduction.combiner.name} in groups, in {factored.stage}"
        elif not keeps_order(stage):
            how = f"the reduction loops of {reduction.combiner.name} are not in the order of its axes"
        else:
            continue
        raise ScheduleError(
            f"strict precision folds the terms of a float reduction in the order of its definition, but in "
            f"{stage.name} {how}\nBuild it with precision='standard', where the schedule may choose the order, "
            "or leave out that step."
        )


def _rounds(combiner: Combiner) -> bool:
    """Whether the combiner does more with floats than to choose among them."""
    for node in (node for result in combiner.results for node in walk(result)):
        match node:
            case Binary("min" | "max"):
                pass
            case Binary() | Call() | Cast() if node.dtype.is_float:
                return True
    return False
