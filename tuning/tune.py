"""``lw.tune``: have the implementations of a model searched by measuring, and what is faster kept in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ..api.compile import compile
from ..api.model_graph import planned_graph
from ..artifact.options import Arithmetic, CodegenOptions, Precision
from ..base.errors import RecordError
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.selection.records import TuningRecords
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from ..runtime.library import Library
from .bench import BenchSettings, JobBench
from .jobs import COMPILE_SECONDS, MEASURE_SECONDS
from .journal import Journal
from .report import TuningProgress, TuningReport
from .run_width import RunWidth, check_numbers
from .searcher import MakeSearcher, searcher_named
from .tasks import tasks_of, why_none
from .tuner import Tuner, TuningBudget
from .workers import LocalWorkers, SubmitsJobs

if TYPE_CHECKING:
    from onnx import ModelProto


def tune(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    records: str | os.PathLike[str],
    minutes: float = 10.0,
    target: str | Target | None = "native",
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    precision: Precision = "standard",
    arithmetic: Arithmetic | None = None,
    *,
    threads: int | None = None,
    workers: SubmitsJobs | None = None,
    jobs: int | None = None,
    searcher: str | MakeSearcher = "evolution",
    only: Collection[str] = (),
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    seed: int = 0,
    timeout: float = MEASURE_SECONDS,
    progress: Callable[[TuningProgress], None] | None = None,
) -> TuningReport:
    """Search faster implementations and decisions for a model by measuring, and keep them in the file ``records``, by
    which ``lw.compile(model, records=…)`` then chooses. The file is also where a run goes on that was interrupted.

    It lasts ``minutes`` at the most, but for what confirms winners, and ends when nothing is left to gain. ``model``,
    ``target``, ``shapes``, ``precision`` and ``arithmetic`` are those that ``lw.compile`` will get, and ``threads``
    what a run will use. Dimensions that stay open are not tuned. ``only`` are the names of operators to tune.
    ``searcher`` is ``"evolution"``, ``"random"``, ``"grid"``, or a function of a ``Space`` and a ``random.Random`` that
    gives a ``Searcher``; ``seed`` repeats what it draws. ``workers`` is an object with the ``submit`` of
    ``concurrent.futures``, whose workers compile and measure ``jobs`` at once; by default processes of this machine.
    Candidates run in processes of their own there; one that takes more than ``timeout`` seconds has hung. ``inputs``
    are arrays for inputs of the model, which random numbers do not suit; ``progress`` is called as tuning goes on.

    A record is written only if a candidate is faster than the untuned choice for sure, and stays only if the model as
    a whole is. Raises what ``lw.compile`` raises; ``RecordError`` for a file that cannot be read or written;
    ``RuntimeArgumentError`` for other arguments that do not fit, such as more threads than there are cpus.
    """
    resolved, path = resolve_target(target), _path_of(records)
    width = RunWidth.of(threads, workers, jobs, resolved)
    check_numbers(minutes, seed, timeout)
    make = searcher_named(searcher)
    settings = CompileSettings(resolved, CodegenOptions(precision=precision, arithmetic=arithmetic))
    journal = Journal(path, width.threads)
    bench_settings = BenchSettings(
        width.jobs, width.measuring, width.threads, seed, max(COMPILE_SECONDS, timeout), timeout
    )

    def library_of(known: TuningRecords | None) -> Library:
        return compile(model, resolved, shapes, precision, progress=False, records=known, arithmetic=arithmetic)

    budget = TuningBudget(60.0 * minutes)
    graph = planned_graph(model, shapes, settings.with_records(journal.records()), False)
    found = tasks_of(graph, settings, only)
    note = "" if found else why_none(graph, settings, only)
    with closing(LocalWorkers(width.jobs)) if workers is None else nullcontext(workers) as who:
        bench = JobBench(who, bench_settings, library_of, inputs or {})
        report = Tuner(found, bench, journal, make, budget, seed, progress or _unheard).run()
    return replace(report, note=note)


def _path_of(records: object) -> Path:
    if not isinstance(records, (str, os.PathLike)):
        raise RecordError(f"records should be the path of a file to keep them in, found {records!r}")
    return Path(records)


def _unheard(progress: TuningProgress) -> None:
    """Nobody listens."""
