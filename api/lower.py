"""``lw.lower``: from a schedule to the loop nest that code is emitted from."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.target import Target
from ..codegen.host import resolve_target
from ..ir.stmt import PrimFunc
from ..lowering import pipeline
from ..lowering.pipeline import PassRecord
from ..lowering.schedule import Schedule
from ..te.tensor import Tensor


def lower(
    schedule: Schedule,
    args: Sequence[Tensor],
    name: str = "main",
    target: str | Target | None = None,
    trace_passes: bool | list[PassRecord] = False,
) -> PrimFunc:
    """Lower a schedule to the loop nest that code is emitted from; ``str()`` of the result is its text.

    ``args`` are the tensors that calls give, inputs and outputs, in order. ``target`` (the machine at hand, if None)
    says how many vector registers there are. ``trace_passes`` True prints the function after each pass; a list collects
    ``PassRecord``s. Raises ``ScheduleError`` where ``args`` do not fit the schedule.
    """
    return pipeline.lower(schedule, args, name, resolve_target(target), trace_passes)
