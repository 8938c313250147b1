"""Prologue and epilogue of a stage that has a schedule of its own: what is fused around it is inlined, or scheduled by
general rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..base.target import Target
from ..lowering.schedule import Schedule, create_schedule
from ..te.tensor import Tensor
from .default_schedule import inline_cheap_stages, is_inlined, schedule_stage


def auto_inline_injective(schedule: Schedule, keep: Collection[Tensor] = ()) -> None:
    """Inline the elementwise, broadcasting and injective stages but the outputs and those in ``keep``.

    One that costs much and is read more than once stays a stage: it would be computed anew for each reader.
    """
    inline_cheap_stages(schedule, {schedule[tensor].name for tensor in keep})


def schedule_around(
    anchor: Tensor, outputs: Sequence[Tensor], keep: Sequence[Tensor], target: Target
) -> tuple[Schedule, Tensor]:
    """A schedule in which all is inlined or scheduled but ``keep`` and one tensor, which is given: the one to tile.

    It is the function's output if that is the only one, has the anchor's shape, and computes what is fused behind the
    anchor by itself; else it is the anchor.
    """
    whole = len(outputs) == 1 and len(outputs[0].shape) == len(anchor.shape)
    fits = whole and all(a is b for a, b in zip(outputs[0].shape, anchor.shape, strict=True))
    main = outputs[0] if fits else anchor
    schedule = create_schedule(outputs)
    auto_inline_injective(schedule, (*keep, main))
    if main is not anchor and _stages_between(schedule, anchor, main):
        main, schedule = anchor, create_schedule(outputs)
        auto_inline_injective(schedule, (*keep, main))
    names = {schedule[tensor].name for tensor in (*keep, main)}
    for stage in schedule.state.stages:
        if not (stage.is_input or stage.name in names or is_inlined(schedule.state, stage.name)):
            schedule_stage(schedule[stage.name], target)
    return schedule, main


def _stages_between(schedule: Schedule, anchor: Tensor, main: Tensor) -> bool:
    """Whether some stage behind the anchor is computed apart from the main one, which then does not read all that the
    anchor is made of."""
    state = schedule.state
    behind = {schedule[anchor].name}
    for stage in state.stages:  # in order of computation
        if any(state.stage_of(tensor).name in behind for tensor in stage.op.inputs):
            behind.add(stage.name)
            if stage.name != schedule[main].name and not is_inlined(state, stage.name):
                return True
    return False


def schedule_around_sums(
    anchor: Tensor, sums: Tensor, outputs: Sequence[Tensor], keep: Sequence[Tensor], target: Target
) -> tuple[Schedule, Tensor, Tensor]:
    """Schedule what is fused around an anchor that is made of ``sums``, or is them, as ``schedule_around`` does; gives
    the schedule, the tensor that sums and the one to tile, for which a tile of sums is computed at a time.

    The sums are written to memory of their own, and then copied, only where they are to be tiled themselves: as the
    function's output, or for what has another shape.
    """
    schedule, main = schedule_around(anchor, outputs, [sums, *keep], target)
    return schedule, sums_over(schedule, sums, main), main


def sums_over(schedule: Schedule, sums: Tensor, main: Tensor, axes: Callable[..., Any] | None = None) -> Tensor:
    """Compute sums apart from ``main``, the stage to tile, which may be the sums themselves; gives what is computed.

    With ``axes``, an index map, they are summed over other axes than their own.
    """
    if axes is None and main is not sums:
        return sums
    core = schedule.cache_write(sums, "local", axes=axes)
    if main is not sums:
        schedule[sums].compute_inline()
    return core
