"""Which axes of a stage are rounded up: computed beyond their end, without a condition. Part of bound inference.

An axis is rounded up where a loop that was made of it is: its outermost part, so that what is computed is the axis and
some elements behind it. Of the inner part of a tile there is nothing behind: the next tile begins there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..relations import FuseRelation, Relation, RoundUpRelation, SplitRelation
from ..stage import Stage
from ..state import ScheduleState, once


@once("bounds")
def rounds_up(state: ScheduleState) -> bool:
    """Whether any loop of the schedule is rounded up."""
    return any(next(rounded_loops(stage), None) is not None for stage in state.stages)


def rounded_axes(stage: Stage) -> frozenset[str]:
    """The first loops of the axes that are rounded up."""
    axes = (axis_behind(stage, loop) for _, loop in rounded_loops(stage))
    return frozenset(axis for axis in axes if axis is not None)


def rounded_loops(stage: Stage) -> Iterator[tuple[SplitRelation | RoundUpRelation, str]]:
    """The loops that are rounded up, with the relations that do it."""
    for relation in stage.relations:
        match relation:
            case SplitRelation(parent, tail="round_up") | RoundUpRelation(parent):
                yield relation, parent
            case _:
                pass


def axis_behind(stage: Stage, loop: str) -> str | None:
    """The first loop of the axis that becomes longer with a loop; None if the loop runs inside tiles of others."""
    for relation in made_of(stage, loop):
        (loop, *_) = relation.consumed
    return loop if loop in stage.axis_of else None


def made_of(stage: Stage, loop: str) -> Iterator[Relation]:
    """The relations that a loop is the result of, outermost part of a tile by outermost part, the newest first."""
    for relation in reversed(stage.relations):
        match relation:
            case SplitRelation(parent, outer) if outer == loop:
                loop = parent
            case FuseRelation(outer, _, fused) if fused == loop:
                loop = outer
            case RoundUpRelation(parent, rounded) if rounded == loop:
                loop = parent
            case _:
                continue
        yield relation
