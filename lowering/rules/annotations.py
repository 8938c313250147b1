"""The rules of vectorized, unrolled and parallel loops, which later steps must keep too: their extents, their order."""

from __future__ import annotations

from ...ir.constants import const_int
from ...ir.operand_types import MAX_LANES
from ...ir.stmt import LoopKind
from ..nest.regions import extents_of
from ..relations import SplitRelation
from ..report import schedule_error
from ..stage import Stage
from ..state import ScheduleState

MAX_UNROLL = 4096
"""Most copies that one unrolled loop may make; the unroll pass bounds the program as a whole."""

MOST_ITERATIONS: dict[LoopKind, int] = {"vectorized": MAX_LANES, "unrolled": MAX_UNROLL}


def check_annotated_extents(state: ScheduleState, stage_name: str, before: ScheduleState) -> None:
    """Vectorized and unrolled loops need a constant extent within limits; ``before`` is what an error shows."""
    stage = state.stage(stage_name)
    limits = {loop: MOST_ITERATIONS[kind] for loop, kind in stage.kinds.items() if kind in MOST_ITERATIONS}
    tiles = _tile_widths(stage)
    unsure = [loop for loop in stage.leaves if loop in limits and tiles.get(loop, limits[loop] + 1) > limits[loop]]
    if not unsure:
        return
    extents = extents_of(state, stage)
    for loop in unsure:
        kind, limit = stage.kinds[loop], limits[loop]
        extent = const_int(extents[loop])
        if extent is None or extent > limit:
            name = stage.loops[loop].name
            raise schedule_error(
                before,
                f"loop {name} of {stage.name} cannot be {kind}: its extent is {extents[loop]}, "
                f"expected a constant of at most {limit}",
                f"Split it by a constant factor, and take the inner loop: s[{stage.name!r}].split({name}, factor=8).",
                [loop],
            )


def _tile_widths(stage: Stage) -> dict[str, int]:
    """The extents of loops that are tiles of a constant width, which need no inference."""
    splits = (r for r in stage.relations if isinstance(r, SplitRelation))
    return {r.inner: r.factor for r in splits if r.factor is not None and r.tail != "shift"}


def check_vector_nesting(state: ScheduleState, stage_name: str, before: ScheduleState) -> None:
    """A vectorized loop runs in lock step, so no loop inside it is parallel; ``before`` is what an error shows."""
    stage = state.stage(stage_name)
    vector = next((leaf for leaf in stage.leaves if stage.kind(leaf) == "vectorized"), None)
    if vector is None:
        return
    for inside in stage.leaves[stage.leaves.index(vector) + 1 :]:
        if stage.kind(inside) == "parallel":
            parallel_name, vector_name = stage.loops[inside].name, stage.loops[vector].name
            raise schedule_error(
                before,
                f"loop {parallel_name} of {stage.name} cannot be parallel inside the vectorized loop {vector_name}",
                f"Reorder them so that {parallel_name} stands outside {vector_name}.",
                [inside, vector],
            )
