"""``loopwright bench model.onnx``: how long calls of a model take, how that spreads, and what others take."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from .. import ModelError
from ..artifact.section_file import is_section_file
from ..base.quantities import count_text, seconds_text
from ..base.table import print_table
from ..runtime.contenders.contest import ROUNDS, Contest, Rounds, require_packages
from ..runtime.contenders.latency import Latency
from ..runtime.contenders.latency_views import latency_chart, latency_notes, latency_table
from ..runtime.contenders.peers import PEERS
from ..runtime.threads.default_threads import default_threads
from .output_file import check_output_file, write_text
from .program import add_program_options, open_program, threads_number
from .report import make_console


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``bench``."""
    parser.description = (
        "Call a compiled model again and again, in a process of its own; print percentiles of its latency by numbers "
        "of threads. Other libraries take turns with it where they are named, each in its own process, only one of "
        "which is awake at a time; their outputs are compared."
    )
    parser.epilog = "example: loopwright bench model.onnx --threads 1 2 --against onnxruntime openvino --svg bench.svg"
    add_program_options(parser)
    parser.add_argument("--against", nargs="+", choices=tuple(PEERS), default=[], help="libraries to measure as well")
    parser.add_argument("--threads", type=threads_number, nargs="+", help="numbers of threads, measured in turn")
    parser.add_argument("--batch", type=_positive, help="the first extent of inputs that leave it open")
    parser.add_argument("--warmup", type=_seconds, default=0.5, metavar="SECONDS", help="not measured; default 0.5")
    parser.add_argument(
        "--seconds", type=_seconds, default=3.0, help="of calls, for each contender and number of threads; default 3"
    )
    parser.add_argument("--svg", type=Path, metavar="FILE.svg", help="write a bar chart")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    against = list(dict.fromkeys(arguments.against))
    require_packages(against)
    check_output_file(arguments.svg)
    if against and is_section_file(arguments.model):
        raise ModelError(f"{arguments.model} is a library: --against needs the model that it was made of")
    program = open_program(arguments, arguments.batch)
    rounds = Rounds(arguments.warmup, arguments.seconds)
    groups = []
    with Contest(program.library, program.inputs, arguments.model, against) as contest:
        if not arguments.json:
            make_console().print(program.summary)
        for threads in arguments.threads or [default_threads()]:
            groups.append(contest.measure(threads, rounds))
            if not arguments.json:
                _print_group(groups[-1], rounds)
    if arguments.svg is not None:
        write_text(arguments.svg, latency_chart(f"{arguments.model.name}: time of a call", groups))
    if arguments.json:
        found = [each.to_json(group[0]) for group in groups for each in group]
        print(json.dumps({"model": str(arguments.model), "latencies": found}, indent=2, ensure_ascii=False))
    return 0


def _print_group(group: Sequence[Latency], rounds: Rounds) -> None:
    turns = "contenders take turns in " if len(group) > 1 else ""
    calls = f"{seconds_text(rounds.seconds)} of calls each" if rounds.seconds else "a call each"
    how = f"{turns}{ROUNDS} rounds, {calls}"
    console = make_console()
    console.print(f"\n{count_text(group[0].threads, 'thread')}; {how}\n")
    print_table(console, latency_table(group))
    for note in latency_notes(group):
        console.print(note, markup=False)


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
