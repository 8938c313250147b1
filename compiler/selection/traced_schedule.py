"""Schedules from the traces of tuning records: the steps that scheduled an operator by itself, in a fused function.

The operator's own stages are scheduled as they were when it was measured; what stands before and after them in a
function is scheduled by general rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.target import Target
from ...graph.node import Call
from ...lowering.schedule import Schedule, create_schedule
from ...lowering.trace import Trace
from ...ops.definition.implementation import OpImplementation, outputs_of
from ...schedules.default_schedule import inline_cheap_stages, is_inlined, schedule_stage
from ...te.tensor import Tensor, Tensors


def schedule_by_trace(
    trace: Trace, inputs: Sequence[Tensor], anchor: Tensors, outputs: Tensors, target: Target
) -> Schedule:
    """The schedule of a function in which an operator makes ``anchor`` of ``inputs``.

    Raises ``ScheduleError`` where the trace does not fit.
    """
    schedule = create_schedule(list(outputs))
    others = [stage.name for stage in schedule.state.stages if stage.is_compute]
    own = {schedule[tensor].name for tensor in _between(inputs, anchor)}
    schedule.replay(trace)
    inline_cheap_stages(schedule, {stage.name for stage in schedule.state.stages} - set(others) | own)
    for name in others:
        if name not in own and not is_inlined(schedule.state, name):
            schedule_stage(schedule[name], target)
    return schedule


def _between(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that are computed of ``inputs`` on the way to ``outputs``, these among them."""
    found: dict[Tensor, None] = {}
    stack = list(outputs)
    while stack:
        tensor = stack.pop()
        if tensor not in found and not any(tensor is given for given in inputs):
            found[tensor] = None
            stack.extend(tensor.op.inputs)
    return list(found)


def require_fitting_trace(implementation: OpImplementation, call: Call, trace: Trace) -> None:
    """Raises ``ScheduleError`` where a trace does not fit what an implementation computes for a call by itself."""
    create_schedule(outputs_of(implementation.computed_alone(call))).replay(trace)
