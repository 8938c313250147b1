"""``lw.tune``: have the implementations of a model searched by measuring, and what is faster kept in a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import numpy.typing as npt

from ..artifact.options import Arithmetic, CodegenOptions, Precision
from ..base.errors import RuntimeArgumentError
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from ..te.tensor import Tensor
from .bench import JobBench
from .bench_settings import BenchSettings
from .jobs import COMPILE_SECONDS, MEASURE_SECONDS
from .journal import Journal, records_path
from .model_search import TunedModel, search_model
from .report import TuningProgress, TuningReport, listener_of
from .run_width import RunWidth, check_numbers
from .schedule_search import ScheduleTuning
from .searcher import MakeSearcher, searcher_named
from .tune_schedule import tune_schedule
from .workers import SubmitsJobs, given_or_local

if TYPE_CHECKING:
    from onnx import ModelProto


@overload
def tune(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    records: str | os.PathLike[str],
    minutes: float = ...,
    target: str | Target | None = ...,
    shapes: Mapping[str, Sequence[int | None]] | None = ...,
    precision: Precision = ...,
    arithmetic: Arithmetic | None = ...,
    *,
    threads: int | None = ...,
    workers: SubmitsJobs | None = ...,
    jobs: int | None = ...,
    searcher: str | MakeSearcher = ...,
    only: Collection[str] = ...,
    inputs: Mapping[str, npt.NDArray[Any]] | None = ...,
    seed: int = ...,
    timeout: float = ...,
    progress: Callable[[TuningProgress], None] | None = ...,
) -> TuningReport: ...
@overload
def tune(
    model: Tensor | Sequence[Tensor],
    records: str | os.PathLike[str],
    minutes: float = ...,
    target: str | Target | None = ...,
    *,
    precision: Precision = ...,
    threads: int | None = ...,
    workers: SubmitsJobs | None = ...,
    searcher: str | MakeSearcher = ...,
    seed: int = ...,
    timeout: float = ...,
    progress: Callable[[TuningProgress], None] | None = ...,
) -> ScheduleTuning: ...
def tune(
    model: Tensor | Sequence[Tensor] | ModelProto | bytes | str | os.PathLike[str] | Function,
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
) -> TuningReport | ScheduleTuning:
    """Search faster implementations and decisions for a model by measuring, and keep them in the file ``records``, by
    which ``lw.compile(model, records=…)`` then chooses. The file is also where a run goes on that was interrupted.

    It lasts ``minutes`` at the most, but for compiling the model once and for what confirms winners, and ends when
    nothing is left to gain. ``model``, ``target``, ``shapes``, ``precision`` and ``arithmetic`` are those that
    ``lw.compile`` will get, and ``threads`` what a run will use. Dimensions that stay open are not tuned. ``only`` are
    the names of operators to tune. ``searcher`` is ``"evolution"``, ``"random"``, ``"grid"``, or a function of a
    ``Space`` and a ``random.Random`` that gives a ``Searcher``; ``seed`` repeats what it draws. ``workers`` is an
    object with the ``submit`` of ``concurrent.futures``, whose workers compile and measure ``jobs`` at once; by default
    processes of this machine. Candidates run in processes of their own there; one that takes more than ``timeout``
    seconds has hung. ``inputs`` are arrays for inputs of the model, which random numbers do not suit; ``progress`` is
    called as tuning goes on.

    Rewrites of calls come first, such as Winograd's transform or layouts of arguments, then what serves the calls. A
    record is written only if a candidate is faster than the untuned choice for sure, and stays only if the model as a
    whole is. Tensor expressions in the place of a model are tuned as by ``tune_schedule``, by as many measurements as
    there is time for; strict precision leaves their sums in order. Raises what ``lw.compile`` raises; ``RecordError``
    for a file that cannot be read or written; ``RuntimeArgumentError`` for other arguments that do not fit, such as
    more threads than there are cpus.
    """
    tensors = _tensors_of(model)
    if tensors is not None:
        _refuse_given(shapes=shapes, arithmetic=arithmetic, jobs=jobs, only=only or None, inputs=inputs)
        return tune_schedule(
            tensors,
            target,
            records=records_path(records),
            measurements=sys.maxsize,
            minutes=minutes,
            searcher=searcher,
            threads=threads,
            workers=workers,
            seed=seed,
            timeout=timeout,
            reassociate=not CodegenOptions(precision=precision).is_strict,
            progress=progress,
        )
    whole = cast("ModelProto | bytes | str | os.PathLike[str] | Function", model)
    resolved, path = resolve_target(target), records_path(records)
    width = RunWidth.of(threads, workers, jobs, resolved)
    check_numbers(minutes, seed, timeout)
    make, tell = searcher_named(searcher), listener_of(progress)
    settings = CompileSettings(resolved, CodegenOptions(precision=precision, arithmetic=arithmetic))
    tuned = TunedModel(whole, shapes, settings, only)
    measuring = BenchSettings(width.jobs, width.measuring, width.threads, seed, max(COMPILE_SECONDS, timeout), timeout)
    journal = Journal(path, width.threads)
    with given_or_local(workers, width.jobs) as who:
        bench = JobBench(who, measuring, tuned.library, inputs or {})
        return search_model(tuned, bench, journal, make, 60.0 * minutes, seed, tell)


def _tensors_of(model: object) -> Sequence[Tensor] | None:
    given = model if isinstance(model, (list, tuple)) else (model,)
    tensors = tuple(each for each in given if isinstance(each, Tensor))
    return tensors if tensors and len(tensors) == len(given) else None


def _refuse_given(**arguments: object) -> None:
    """Raise ``RuntimeArgumentError`` for arguments that tensor expressions have no use for."""
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise RuntimeArgumentError(f"{given[0]}= is for models; tensor expressions are tuned without it")
