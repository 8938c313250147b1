"""The schedules of operators that have none of their own, by pattern: generic functions, which targets may override."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..ir.target import Target
from ..lowering.default_schedule import default_schedule, inline_cheap_stages
from ..lowering.schedule import Schedule
from ..te.tensor import Tensor
from .generic import GenericFunction
from .implementation import ScheduleFunction, Tensors
from .registry import OpPattern


def schedule_default(attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
    """The schedule from general rules, for any operator; it keeps the order of sums, which strict builds insist on."""
    return default_schedule(outputs, target, reassociate=False)


def auto_inline_injective(schedule: Schedule, keep: Collection[Tensor] = ()) -> None:
    """Inline the elementwise, broadcasting and injective stages but the outputs and those in ``keep``.

    One that costs much and is read more than once stays a stage: it would be computed anew for each reader.
    """
    inline_cheap_stages(schedule, {schedule[tensor].name for tensor in keep})


injective_schedule: GenericFunction[ScheduleFunction] = GenericFunction("the injective schedule", schedule_default)
broadcast_schedule: GenericFunction[ScheduleFunction] = GenericFunction("the broadcast schedule", schedule_default)
reduce_schedule: GenericFunction[ScheduleFunction] = GenericFunction("the reduce schedule", schedule_default)

BY_PATTERN = {
    OpPattern.ELEMENTWISE: broadcast_schedule,
    OpPattern.BROADCAST: broadcast_schedule,
    OpPattern.INJECTIVE: injective_schedule,
    OpPattern.COMM_REDUCE: reduce_schedule,
}
"""Other patterns are complex: their operators have schedules of their own, or the default one."""
