"""``loopwright explore``: a page that shows how schedules of a Python file, or of a fused function, become code."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import traceback
import webbrowser
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from dataclasses import field
from pathlib import Path
from typing import Any

from .. import Engine, RuntimeArgumentError, Schedule, TargetError, function_schedules, resolve_target
from ..base.dataclass import dataclass
from ..explorer.explore import document
from ..explorer.page import write_page
from ..explorer.summary import summary
from .fill_shapes import with_shapes
from .inputs import add_input_options
from .model_options import add_model_options, choices_of, saved_library
from .output_file import check_output_file
from .program import open_program
from .progress import Tasks, progress_shown
from .report import hottest_function

_OF_MODELS = ("function", "shape", "records", "arithmetic", "batch_invariant", "expect", "input")


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a page shows: schedules by their names, of a compute called ``name``, and other programs to time beside."""

    name: str
    schedules: Mapping[str, Schedule]
    peers: Mapping[str, Any] = field(default_factory=dict)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``explore``."""
    parser.description = (
        "Write one HTML file that shows schedules stage by stage: the compute, each step, each lowering pass, LLVM IR "
        "and assembly, linked line by line, with the verdicts of the vector report, what a machine model predicts, "
        "times, and the roofline. A Python file names the schedules: its global `schedules`, a dict from names to "
        "schedules of one compute, or else all globals that are schedules; a dict `peers` may name functions of the "
        "inputs to compare with. Of a model it is the schedule of one fused function, by default of the one that "
        "takes the longest."
    )
    parser.epilog = (
        "example: loopwright explore schedules.py --open; or, of a model: "
        "loopwright explore model.onnx --function fused_softmax -o softmax.html"
    )
    parser.add_argument("model", type=Path, metavar="FILE", help="a Python file (.py) or the file of a model (.onnx)")
    parser.add_argument("-o", "--output", type=Path, metavar="PAGE.html", help="default: named for what it shows")
    parser.add_argument("--function", metavar="NAME", help="of a model: a fused function, by its name or symbol")
    add_model_options(parser)
    add_input_options(parser)
    parser.add_argument("--no-times", action="store_true", help="measure nothing")
    parser.add_argument("--json", action="store_true", help="print what the page says of times and loops as JSON")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_output_file(arguments.output, "the page")
    target = resolve_target(arguments.target or "native")
    with (
        progress_shown(piped=True) as tasks,
        redirect_stdout(sys.stderr) if arguments.json else nullcontext(),  # a file may print, and its peers
    ):
        subject = _file_subject(arguments) if arguments.model.suffix == ".py" else _model_subject(arguments, tasks)
        measure = not arguments.no_times
        made = tasks(f"making the page of {subject.name}")
        shown = document(subject.schedules, target, subject.name, measure=measure, peers=subject.peers, progress=made)
    path = arguments.output or Path(f"{subject.name}.html")
    write_page(shown, path)
    if arguments.json:
        print(json.dumps({"page": str(path)} | summary(shown), indent=2, ensure_ascii=False))
    else:
        print(f"{path}: {', '.join(entry.name for entry in shown.schedules)}")
    if arguments.open and not webbrowser.open(path.resolve().as_uri()):
        print("there is no browser to open it with", file=sys.stderr)
    return 0


def _model_subject(arguments: argparse.Namespace, tasks: Tasks) -> _Subject:
    if saved_library(arguments) is not None:
        raise RuntimeArgumentError(f"{arguments.model} is a library, which has no schedules; give the model")
    name, shapes = arguments.function, dict(arguments.shape)
    if name is not None and arguments.input:
        raise RuntimeArgumentError("--input is for finding the function that takes the longest: leave out --function")
    if name is None:
        program = open_program(arguments, tasks=tasks)
        if not program.library.functions:
            raise RuntimeArgumentError(f"{arguments.model} computes nothing: it has no function to explore")
        tasks("timing the functions")
        try:
            seconds = Engine(program.library).time_steps(program.inputs)
        except TargetError as error:
            raise TargetError(f"{error}: name the function to explore by --function, instead of measuring") from error
        name = hottest_function(program.library, seconds).symbol
        shapes = {s.name: tuple(e if isinstance(e, int) else None for e in s.shape) for s in program.library.inputs}
    tasks(f"finding the schedules of {name}")
    schedules = with_shapes(
        arguments.model,
        shapes,
        lambda known: function_schedules(arguments.model, name, arguments.target, known, **choices_of(arguments)),
    )
    return _Subject(name, schedules)


def _file_subject(arguments: argparse.Namespace) -> _Subject:
    given = [f"--{name.replace('_', '-')}" for name in _OF_MODELS if getattr(arguments, name)]
    if given:
        raise RuntimeArgumentError(f"{arguments.model} is a Python file: it takes no {', '.join(given)}")
    names = _globals_of(arguments.model)
    schedules = names.get("schedules")
    if schedules is None:
        schedules = {name: value for name, value in names.items() if isinstance(value, Schedule)}
    if not isinstance(schedules, Mapping) or not schedules:
        raise RuntimeArgumentError(
            f"{arguments.model} names no schedule: give it a global dict `schedules`, from names to what "
            "lw.create_schedule gives, or specialize(…).schedule of a kernel function"
        )
    peers = names.get("peers", {})
    if not isinstance(peers, Mapping) or not all(map(callable, peers.values())):
        raise RuntimeArgumentError(f"`peers` of {arguments.model} should be a dict from names to functions")
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in arguments.model.stem)
    return _Subject(name if name.isidentifier() else f"_{name}", schedules, peers)


def _globals_of(path: Path) -> dict[str, Any]:
    """What a Python file defines when it runs, not as the main program."""
    try:
        path.read_bytes()
    except OSError as error:
        raise RuntimeArgumentError(f"the file {path} cannot be read: {error.strerror}") from error
    sys.path.insert(0, str(path.resolve().parent))
    try:
        return runpy.run_path(str(path), run_name="__explore__")
    except (Exception, SystemExit) as error:
        places = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f", line {places[-1]}" if places else ""
        raise RuntimeArgumentError(f"{path}{where}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
