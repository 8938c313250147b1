"""Schedules of tensor expressions in tuning records: what these are looked up by, and what is made of one."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence

from ...artifact.records.workload import TensorKey, Workload, canonical_json
from ...base.errors import ScheduleError
from ...ir.constants import const_int
from ...ir.printer import func_text
from ...lowering.pipeline import realized_function
from ...lowering.schedule import Schedule, create_schedule
from ...schedules.auto.candidates import Scheduling, arguments_of
from ...te.tensor import Tensor
from .records import TuningRecords

_log = logging.getLogger("loopwright.records")
_NUMBER = re.compile(r"\b\d+\b")


def compute_workload(outputs: Sequence[Tensor], reassociate: bool) -> Workload | None:
    """The workload of tensor expressions; None where an extent is open.

    Its operator is ``te:`` and the names of the outputs, its arguments are the inputs and outputs. Its attributes tell
    it from all others: ``expression`` is a digest of the loop nest that nobody scheduled, names of stages included, for
    traces go by them. ``form`` is the same without whole numbers, which the same expression on other shapes shares.
    ``reassociate`` is there as False where sums keep their order.
    """
    schedule = create_schedule(outputs)
    arguments = arguments_of(schedule.state)
    keys = []
    for tensor in arguments:
        shape = [extent for dim in tensor.shape if (extent := const_int(dim)) is not None]
        if len(shape) < tensor.ndim:
            return None
        keys.append(TensorKey(tuple(shape), str(tensor.dtype)))
    text = func_text(realized_function(schedule, arguments))
    attributes: dict[str, object] = {"expression": _digest(text), "form": _digest(_NUMBER.sub("#", text))}
    if not reassociate:
        attributes["reassociate"] = False
    return Workload(f"te:{','.join(schedule.state.outputs)}", tuple(keys), canonical_json(attributes))


def recorded_schedule(of: Scheduling, records: TuningRecords) -> Schedule | None:
    """The schedule that records have for tensor expressions on a target, the closest and cheapest that is legal; None
    where there is none. Traces that are refused are told in the log."""
    workload = compute_workload(of.outputs, of.reassociate) if len(records) else None
    for match in () if workload is None else records.lookup(workload, of.target):
        trace = match.record.trace
        if trace is None:
            continue
        schedule = create_schedule(of.outputs)
        try:
            schedule.replay(trace)
        except ScheduleError as error:
            _log.warning("a recorded schedule is passed over: %s", str(error).splitlines()[0])
            continue
        return schedule
    return None


def are_of_one_form(one: Workload, other: Workload) -> bool:
    """Whether two workloads are of one expression but for its extents, or for whether sums keep their order."""
    forms = [json.loads(workload.attributes).get("form") for workload in (one, other)]
    return one.op == other.op and forms[0] == forms[1] is not None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
