"""``loopwright bench model.onnx``: how long calls of a model take, and how that spreads."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from .. import Engine
from ..runtime.threads.default_threads import default_threads
from .program import add_program_options, open_program, threads_number
from .report import make_console

_PERCENTILES = (50, 90, 99)
_LEAST_CALLS = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``bench``."""
    parser.description = (
        "Call a compiled model again and again; print percentiles of its latency by numbers of threads."
    )
    parser.epilog = "example: loopwright bench model.onnx --threads 1 2 --batch 4 --seconds 5"
    add_program_options(parser)
    parser.add_argument("--threads", type=threads_number, nargs="+", help="numbers of threads, measured in turn")
    parser.add_argument("--batch", type=_positive, help="the first extent of inputs that leave it open")
    parser.add_argument("--warmup", type=_seconds, default=0.5, metavar="SECONDS", help="not measured; default 0.5")
    parser.add_argument("--seconds", type=_seconds, default=3.0, help="of calls, for each number of threads; default 3")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    program = open_program(arguments, arguments.batch)
    rows = []
    for threads in arguments.threads or [default_threads()]:
        engine = Engine(program.library, threads=threads)
        _times(engine, program.inputs, arguments.warmup)
        rows.append(_row(threads, _times(engine, program.inputs, arguments.seconds)))
    if arguments.json:
        print(json.dumps({"model": str(arguments.model), "latencies": rows}, indent=2, ensure_ascii=False))
        return 0
    console = make_console()
    console.print(program.summary)
    table = Table(box=box.SIMPLE_HEAD)
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{value:.4g}" for value in row.values()))
    console.print(table)
    return 0


def _times(engine: Engine, inputs: dict[str, Any], seconds: float) -> list[float]:
    """Seconds of each of the calls that fit, and of some at least."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _LEAST_CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        engine(inputs)
        times.append(time.perf_counter() - start)
    return times


def _row(threads: int, times: list[float]) -> dict[str, float]:
    percentiles = {f"p{p}_ms": float(np.percentile(times, p)) * 1e3 for p in _PERCENTILES}
    return {
        "threads": threads,
        "calls": len(times),
        "least_ms": min(times) * 1e3,
        **percentiles,
        "mean_ms": statistics.fmean(times) * 1e3,
        "calls_per_second": 1 / statistics.fmean(times),
    }


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number, at least 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} should be a number of seconds")
    return seconds
