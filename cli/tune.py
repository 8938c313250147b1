"""``loopwright tune model.onnx``: search what serves a model fastest, and keep it as tuning records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from .. import ModelError, RuntimeArgumentError, tune
from ..artifact.section_file import is_section_file
from ..base.quantities import ratio_text
from ..tuning.dask_workers import dask_workers
from ..tuning.report import TuningProgress
from .fill_shapes import inputs_of_file, model_shapes, tell
from .inputs import add_input_options, read_inputs
from .model_inputs import check_shapes
from .model_options import add_arithmetic_option, add_shape_option, add_target_option
from .output_file import check_output_file
from .program import add_threads_option

SEARCHES = ("evolution", "random", "grid")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``tune``."""
    parser.description = (
        "Try implementations of a model's operators, and what their schedules decide, in processes of their own; keep "
        "in a file of records what makes the model faster for sure. `--records FILE` of the other commands goes by it. "
        "A run that is interrupted goes on from its file. It ends by itself when nothing is left to gain."
    )
    parser.epilog = "example: loopwright tune model.onnx --minutes 10 --records tuned.jsonl --only nn.conv2d"
    parser.add_argument("model", type=Path, help="the model's file")
    parser.add_argument(
        "--minutes", type=_minutes, default=10.0, help="how long to search, once the model is compiled (default: 10)"
    )
    parser.add_argument(
        "--records", type=Path, default=Path("tuned.jsonl"), metavar="FILE.jsonl", help="(default: tuned.jsonl)"
    )
    add_shape_option(parser)
    add_target_option(parser)
    add_arithmetic_option(parser)
    add_threads_option(parser)
    parser.add_argument(
        "--only", action="append", default=[], metavar="OPERATOR", help="tune these operators alone; repeatable"
    )
    parser.add_argument("--searcher", choices=SEARCHES, default=SEARCHES[0], help="how to search (default: evolution)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers of the search (default: 0)")
    parser.add_argument("--jobs", type=int, help="compile so many candidates at once (default: one a core)")
    parser.add_argument(
        "--workers",
        metavar="dask://HOST:PORT",
        help="compile and measure on the workers of this Dask scheduler, one a machine (default: here)",
    )
    add_input_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if is_section_file(arguments.model):
        raise ModelError(f"{arguments.model} is a library, compiled already: give the model it was made of")
    check_output_file(arguments.records, "records")
    inputs = inputs_of_file(arguments.model)
    asked = dict(arguments.shape)
    if any(None in shape for shape in asked.values()):
        raise RuntimeArgumentError("--shape: extents that are open are not tuned: give numbers")
    check_shapes(arguments.model, inputs, asked)
    given = read_inputs(arguments.input, inputs)
    known = {**{i.name: given[i.name].shape for i in inputs if i.is_open and i.name in given}, **asked}
    shapes = model_shapes(arguments.model, inputs, known)
    tell(shapes, known)
    where = nullcontext((None, None)) if arguments.workers is None else dask_workers(arguments.workers)
    with where as (workers, count), _told_of_interrupts(arguments.records), _shown() as listener:
        report = tune(
            arguments.model,
            arguments.records,
            arguments.minutes,
            arguments.target,
            {**known, **shapes},
            arithmetic=arguments.arithmetic,
            threads=arguments.threads,
            workers=workers,
            jobs=count if arguments.jobs is None else arguments.jobs,
            searcher=arguments.searcher,
            only=arguments.only,
            inputs=given,
            seed=arguments.seed,
            progress=listener,
        )
    print(json.dumps(report.to_json(), indent=2, ensure_ascii=False) if arguments.json else report)
    return 0


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < float("inf"):
        raise argparse.ArgumentTypeError(f"a positive number of minutes is expected, found {text!r}")
    return minutes


@contextmanager
def _told_of_interrupts(records: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if records.exists():
            print(
                f"interrupted: what was tried is in {records}, and the same command goes on from there", file=sys.stderr
            )
        raise


@contextmanager
def _shown() -> Iterator[Callable[[TuningProgress], None]]:
    """Show progress on the standard error: a table that changes where that is a terminal, else a line when a phase
    begins or something better is found."""
    if not sys.stderr.isatty():
        yield lines_of_progress(lambda line: print(line, file=sys.stderr, flush=True))
        return
    with Live(console=Console(stderr=True), transient=True, refresh_per_second=4) as live:
        yield lambda progress: live.update(_view(progress))


def _view(progress: TuningProgress) -> Group:
    minutes, seconds = divmod(int(progress.seconds_left), 60)
    return Group(Text(f"{progress.phase}; {minutes}:{seconds:02} left"), progress.table())


def lines_of_progress(write: Callable[[str], None]) -> Callable[[TuningProgress], None]:
    """What tells of progress in lines: each new phase, and each better candidate."""
    last = ""
    gains: dict[str, float] = {}

    def tell_progress(progress: TuningProgress) -> None:
        nonlocal last
        for task in progress.tasks:
            if task.best and task.gain > gains.get(task.name, 1.0):
                gains[task.name] = task.gain
                write(f"{task.name}: {ratio_text(task.gain)} by {task.best}, after {task.tried} candidates")
        if progress.phase != last:
            last = progress.phase
            write(last)

    return tell_progress
