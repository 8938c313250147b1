"""``loopwright run model.onnx``: compile a model, run it, and tell what was done and how fast it is."""

from __future__ import annotations

import argparse
import json
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from .. import Engine, Library, ModelError, RuntimeArgumentError
from ..base.dataclass import dataclass
from ..base.quantities import count_text, error_text, seconds_text
from ..runtime.arrays import Array
from ..runtime.measure.onnx_reference import onnxruntime_installed
from ..runtime.presented import as_numbers
from ..runtime.threads.default_threads import default_threads
from .output_file import check_output_file
from .program import Program, add_program_options, add_threads_option, open_program
from .reference import Checked, CheckError, Reference, check_outputs, load_reference
from .report import make_console, print_code, print_selection, selection_json
from .tensor_table import print_tensors, tensors_json

RUN_SECONDS = 1.0
LEAST_RUNS = 3
MAX_RUNS = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``run``."""
    parser.description = (
        "Compile an ONNX model, or load a saved library, and run it; show its inputs, its outputs, and its latency, "
        "the least of several runs, beside that of onnxruntime where this is installed."
    )
    parser.epilog = "example: loopwright run model.onnx --input x=x.npy --output y.npz --check"
    add_program_options(parser)
    add_threads_option(parser)
    parser.add_argument(
        "--tiered", action="store_true", help="answer by plain code at first, while the model is being compiled"
    )
    parser.add_argument("--output", type=Path, metavar="FILE.npz", help="write the outputs to a file")
    parser.add_argument("--check", action="store_true", help="compare with onnxruntime, or else onnx's evaluator")
    parser.add_argument(
        "--code",
        action="store_true",
        help="also show the functions that it became, the implementations that serve them, and the code of the "
        "function that most of the time goes to",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """What came of running a program: its ``outputs``, the seconds of a call, and, of one that answered before it was
    compiled, those to the first answer."""

    model: Path
    program: Program
    engine: Engine
    threads: int
    outputs: Sequence[Array]
    seconds: float
    first_seconds: float | None

    @property
    def library(self) -> Library:
        """What was run."""
        return self.program.library

    def reference(self) -> Reference:
        """Who is to give the same outputs. Raises ``CheckError`` where that cannot load the model."""
        return load_reference(self.model, self.threads, self.library.model.forms)

    def checked(self, reference: Reference) -> Checked:
        """How far the outputs are from those of a reference. Raises ``CheckError`` where that is too far."""
        names = [s.name for s in self.library.outputs]
        return check_outputs(self.model, names, self.outputs, self.program.inputs, reference)


def _run(arguments: argparse.Namespace) -> int:
    console = make_console()
    check_output_file(arguments.output, "the outputs")
    program = open_program(arguments, tiered=arguments.tiered)
    library, inputs = program.library, program.inputs
    if arguments.check and not program.compiled:
        raise ModelError(f"{arguments.model} is a library; --check needs the model that it was made of")
    threads = arguments.threads or default_threads()
    engine = Engine(library, threads=threads).init()
    first_seconds = None
    if arguments.tiered and program.compiled:
        first_seconds, program = _first_answer(None if arguments.json else console, engine, program)
    outputs = as_numbers(engine(inputs), library.model.forms)
    if arguments.output is not None:
        _write_outputs(arguments.output, library, outputs)
    seconds = _least_seconds(lambda: engine(inputs))
    run = _Run(arguments.model, program, engine, threads, outputs, seconds, first_seconds)
    if arguments.json:
        print(json.dumps(_report(run, arguments.check), indent=2, ensure_ascii=False))
    else:
        _show(run, console, arguments.check, arguments.code)
    return 0


def _report(run: _Run, check: bool) -> dict[str, Any]:
    """What ``--json`` prints."""
    program, library = run.program, run.library
    return {
        "model": str(run.model),
        "seconds_to_compile" if program.compiled else "seconds_to_load": program.seconds,
        **({} if run.first_seconds is None else {"seconds_to_first_answer": run.first_seconds}),
        "threads": run.threads,
        "latency_ms": run.seconds * 1e3,
        "functions": selection_json(library, run.engine.time_steps(program.inputs)),
        "inputs": tensors_json("input", library.inputs, program.inputs.values()),
        "outputs": tensors_json("output", library.outputs, run.outputs),
        "checked": _check_report(run) if check else None,
    }


def _check_report(run: _Run) -> dict[str, Any]:
    reference = run.reference()
    checked = run.checked(reference)
    told = {"reference": reference.who, "largest_error": checked.largest}
    if checked.exact is not None:
        told["errors_beside_float64"] = {"loopwright": checked.exact[0], reference.who: checked.exact[1]}
    return told


def _show(run: _Run, console: Console, check: bool, code: bool) -> None:
    """Print what was done, and how fast it is."""
    program, library = run.program, run.library
    console.print(program.summary)
    if run.first_seconds is None:
        _print_values(console, library, program.inputs, run.outputs)
    console.print(f"latency, {count_text(run.threads, 'thread')}: loopwright {seconds_text(run.seconds)}", end="")
    if program.compiled:
        _compare(console, run, check)
    else:
        console.print()
    if code:
        step_seconds = run.engine.time_steps(program.inputs)
        print_selection(console, library, step_seconds)
        print_code(console, library, step_seconds)


def _first_answer(console: Console | None, engine: Engine, program: Program) -> tuple[float, Program]:
    """Answer and print while the model is being compiled, and wait for that: the seconds of the one, from the begin of
    the compilation on, and the program with those of the other."""
    library, start = program.library, time.perf_counter()
    outputs = engine(program.inputs)
    seconds = program.seconds + time.perf_counter() - start
    if console is not None:
        by = "compiled" if library.is_compiled else "plain"
        _print_values(console, library, program.inputs, outputs)
        console.print(f"first answer, by {by} code, after {seconds_text(seconds)}")
    library.compilation.result()
    return seconds, replace(program, seconds=program.seconds + time.perf_counter() - start)


def _print_values(console: Console, library: Library, inputs: Mapping[str, Array], outputs: Sequence[Array]) -> None:
    """A table of what the model was given, and of what it gave."""
    fed, given = ((library.inputs, inputs.values()), (library.outputs, outputs))
    print_tensors(console, {"input": zip(*fed, strict=True), "output": zip(*given, strict=True)})


def _compare(console: Console, run: _Run, check: bool) -> None:
    """Print the reference's latency where that is onnxruntime; check the outputs if that was asked for."""
    if not check and not onnxruntime_installed():
        console.print()
        return
    inputs = run.program.inputs
    try:
        reference = run.reference()
        reference.run(inputs)
    except CheckError as error:
        console.print()
        if check:
            raise
        console.print(f"({str(error).splitlines()[0]})", markup=False)
        return
    if onnxruntime_installed():
        console.print(f", {reference.who} {seconds_text(_least_seconds(lambda: reference.run(inputs)))}", end="")
    console.print()
    if check:
        checked = run.checked(reference)
        largest = error_text(checked.largest)
        console.print(f"checked: {reference.who} differs by at most {largest} of an output's maximum")
        if checked.exact is not None:
            ours, theirs = map(error_text, checked.exact)
            console.print(f"  beside float64 our largest error is {ours}, that of {reference.who} {theirs}")


def _least_seconds(call: Callable[[], object]) -> float:
    """Seconds of a call: the least of as many as fit in a second, three at least."""
    times: list[float] = []
    while len(times) < LEAST_RUNS or (sum(times) < RUN_SECONDS and len(times) < MAX_RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _write_outputs(path: Path, library: Library, outputs: Sequence[Array]) -> None:
    """Write the outputs as numpy.savez does, which cannot take names such as ``file``."""
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for spec, array in zip(library.outputs, outputs, strict=True):
                with archive.open(f"{spec.name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
    except OSError as error:
        raise RuntimeArgumentError(f"the outputs cannot be written to {path}: {error.strerror}") from error
