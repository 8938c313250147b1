"""The schedules of operators that have none of their own, by pattern: generic functions, which targets may override."""

from __future__ import annotations

from typing import Any

from ...base.target import Target
from ...lowering.schedule import Schedule
from ...schedules.default_schedule import default_schedule
from ...te.tensor import Tensors
from .generic import GenericFunction
from .implementation import ScheduleFunction
from .registry import OpPattern


def schedule_default(attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
    """The schedule from general rules, for any operator; it keeps the order of sums, which strict builds insist on."""
    return default_schedule(outputs, target, reassociate=False)


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
