"""``lw.tune_schedule``: have the schedules of a tensor expression measured, beside the one that a model chooses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from ..api.autoschedule import CANDIDATES, autoschedule, checked_rules
from ..artifact.records.workload import Workload
from ..base.choices import check_count
from ..base.errors import RuntimeArgumentError
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.selection.recorded_schedule import compute_workload
from ..ir.constants import const_int
from ..lowering.schedule import Schedule
from ..schedules.auto.candidates import Scheduling, arguments_of
from ..schedules.auto.sketch import ScheduleRule
from ..te.tensor import Tensor
from .jobs import MEASURE_SECONDS
from .journal import Journal, records_path
from .report import TuningProgress, listener_of
from .run_width import RunWidth, check_numbers
from .schedule_bench import ScheduleBench
from .schedule_search import ScheduleSearch, ScheduleTuning
from .searcher import MakeSearcher, searcher_named
from .workers import SubmitsJobs, given_or_local


def tune_schedule(
    outputs: Tensor | Sequence[Tensor],
    target: str | Target | None = "native",
    *,
    records: str | os.PathLike[str] | None = None,
    measurements: int = 64,
    minutes: float = 10.0,
    candidates: int = CANDIDATES,
    rules: Sequence[ScheduleRule] | None = None,
    searcher: str | MakeSearcher = "evolution",
    threads: int | None = None,
    workers: SubmitsJobs | None = None,
    seed: int = 0,
    timeout: float = MEASURE_SECONDS,
    reassociate: bool = True,
    progress: Callable[[TuningProgress], None] | None = None,
) -> ScheduleTuning:
    """Search a schedule of tensor expressions by measuring: what ``autoschedule`` chooses first, then what a searcher
    proposes of the decisions of the same rules, ``measurements`` of them or as many as ``minutes`` allow.

    Candidates are compiled and run in processes of their own, beside the model's choice, whose results theirs have to
    be; ``workers``, ``threads``, ``searcher``, ``seed``, ``timeout`` and ``progress`` are those of ``lw.tune``. The
    fastest is measured afresh, and given if it is faster for sure in each of three new processes; else the model's
    choice is.

    ``records`` is a file that keeps it, by which ``autoschedule(outputs, records=…)`` gives it again, and where a run
    goes on that was interrupted. A search begins with what the file says of the same expression on other targets, and
    on other shapes. Raises what ``autoschedule`` raises; ``RecordError`` for a file that cannot be read or written; and
    ``RuntimeArgumentError`` for open extents and other arguments that do not fit.
    """
    tensors = (outputs,) if isinstance(outputs, Tensor) else outputs
    resolved = resolve_target(target)
    check_numbers(minutes, seed, timeout)
    check_count(measurements, "measurements", 1)
    make, tell = searcher_named(searcher), listener_of(progress)
    path = None if records is None else records_path(records)
    end = time.monotonic() + 60.0 * minutes
    first = autoschedule(tensors, resolved, candidates=candidates, seed=seed, rules=rules, reassociate=reassociate)
    of = Scheduling(tensors, resolved, checked_rules(rules), reassociate)
    workload = _closed_workload(of, first)
    width = RunWidth.of(threads, workers, 1, resolved)
    journal = Journal(path, width.threads)
    with given_or_local(workers, width.jobs) as who:
        bench = ScheduleBench(who, first, resolved, width.threads, seed, timeout)
        search = ScheduleSearch(of, workload, first, bench, journal, make, seed, tell)
        return search.run(measurements, end)


def _closed_workload(of: Scheduling, first: Schedule) -> Workload:
    """Raises ``RuntimeArgumentError`` for open extents."""
    workload = compute_workload(of.outputs, of.reassociate)
    if workload is None:
        tensors = arguments_of(first.state)
        name = next(t.name for t in tensors if None in [const_int(extent) for extent in t.shape])
        raise RuntimeArgumentError(f"{name} has open dimensions, which cannot be measured: give numbers")
    return workload
