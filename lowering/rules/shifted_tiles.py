"""The rule of ``split(tail="shift")``: computing the elements twice that two tiles share must do no harm."""

from __future__ import annotations

from ..relations import SplitRelation
from ..report import schedule_error
from ..stage import Stage
from ..state import ScheduleState


def check_shifted_tiles(stage: Stage, before: ScheduleState) -> None:
    """Tiles that overlap run one after the other, each with its whole reduction; ``before`` is what an error shows."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.tail == "shift":
            _check_order(stage, relation, before)
            _check_kinds(stage, relation, before)


def _check_order(stage: Stage, relation: SplitRelation, before: ScheduleState) -> None:
    parent = stage.loops[relation.parent]
    if parent.reduce:
        raise schedule_error(
            before,
            f"cannot split loop {parent.name} of {stage.name} with tail='shift': it runs over a reduction axis, and "
            "the terms in the last two tiles would be folded twice",
            "Take tail='mask' or tail='peel' instead.",
            [relation.parent],
        )
    tiles = stage.leaves_of(relation.outer)
    outside = stage.leaves[: max(stage.leaves.index(tile) for tile in tiles)]
    reductions = [leaf for leaf in outside if stage.loops[leaf].reduce]
    if reductions:
        around, name = stage.loops[reductions[0]].name, stage.loops[tiles[-1]].name
        raise schedule_error(
            before,
            f"the reduction loop {around} of {stage.name} cannot stand outside loop {name}, whose last tile is "
            "shifted: terms would be folded twice into the elements that two tiles share",
            f"Let {name} stand outside {around}, or split {parent.name} with tail='mask' or tail='peel'.",
            [*tiles, *reductions],
        )


def _check_kinds(stage: Stage, relation: SplitRelation, before: ScheduleState) -> None:
    """Iterations that run at the same time write different elements: none over tiles, and none around them that run
    over the elements of a tile."""
    tiles = stage.leaves_of(relation.outer)
    around = stage.leaves[: max(stage.leaves.index(tile) for tile in tiles)]
    for leaf in (*tiles, *(leaf for leaf in stage.leaves_of(relation.inner) if leaf in around)):
        kind = stage.kind(leaf)
        if kind in ("parallel", "vectorized"):
            name, parent = stage.loops[leaf].name, stage.loops[relation.parent].name
            raise schedule_error(
                before,
                f"loop {name} of {stage.name} cannot be {kind}: the last tile of loop {parent} is shifted, so that two "
                "iterations write the same elements",
                f"Split {parent} with tail='mask' or tail='peel', or let a loop inside those over tiles be {kind}.",
                [leaf],
            )
