"""``loopwright run model.onnx``: compile a model, run it, and tell what was done and how fast it is."""

from __future__ import annotations

import argparse
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from onnx import ModelProto
from rich.console import Console
from rich.progress import Progress

from .. import Engine, Library, ModelError, RuntimeArgumentError, compile
from ..codegen.model import TensorSpec
from ..frontend.load import load_model
from ..runtime.threads import MAX_THREADS, default_threads
from .model_options import add_model_options, with_advice
from .reference import CheckError, largest_error, load_reference, onnxruntime_installed
from .report import make_console, print_code, print_outputs, print_selection

Array: TypeAlias = npt.NDArray[Any]

RANDOM = "random"
RUN_SECONDS = 1.0
LEAST_RUNS = 3
MAX_RUNS = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The subcommand ``run``."""
    parser = subparsers.add_parser(
        "run",
        help="compile an ONNX model and run it",
        description="Compile an ONNX model and run it; show the functions it became, the implementations that serve "
        "them, its outputs, its latency, and the code that most of the time goes to.",
    )
    parser.add_argument("model", type=Path, help="the model's file")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        type=_input,
        metavar="NAME=FILE.npy|random",
        help="an input's value, repeatable; inputs not named are random: floats are normally distributed, "
        "integers 0 or 1",
    )
    add_model_options(parser)
    parser.add_argument("--threads", type=_threads, help="default: as the environment says, else the cpus granted")
    parser.add_argument("--output", type=Path, metavar="FILE.npz", help="write the outputs to a file")
    parser.add_argument("--check", action="store_true", help="compare with onnxruntime, or else onnx's evaluator")
    parser.add_argument("--no-code", action="store_true", help="leave out the loop nest and LLVM IR")
    parser.set_defaults(run=_run)


def _input(text: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    if text == RANDOM:
        return "", RANDOM
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} should be a name and a file, as in x=x.npy, or x=random")
    return name, value


def _threads(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number from 1 to {MAX_THREADS}")
    return int(text)


def _run(arguments: argparse.Namespace) -> int:
    console = make_console()
    proto, _ = load_model(arguments.model)
    given = _read_inputs(arguments.input, proto)
    shapes = {**_open_shapes(proto, given), **dict(arguments.shape)}
    library = _compile(console, arguments, shapes)
    threads = arguments.threads or default_threads()
    engine = Engine(library, threads=threads).init()
    inputs = {s.name: given[s.name] if s.name in given else _random(s) for s in library.inputs}
    outputs = engine(inputs)
    if arguments.output is not None:
        _write_outputs(arguments.output, library, outputs)
    step_seconds = engine.time_steps(inputs)
    print_selection(console, library, step_seconds)
    print_outputs(console, library, outputs)
    _compare(console, arguments, engine, inputs, outputs, threads)
    if not arguments.no_code:
        print_code(console, library, step_seconds)
    return 0


def _fed(proto: ModelProto) -> list[Any]:
    """The inputs that are given at run time: early versions list initializers as inputs too."""
    constants = {initializer.name for initializer in proto.graph.initializer}
    return [i for i in proto.graph.input if i.name not in constants]


def _read_inputs(asked: Sequence[tuple[str, str]], proto: ModelProto) -> dict[str, Array]:
    """The arrays of the inputs that files are given for."""
    known = [i.name for i in _fed(proto)]
    arrays = {}
    for name, value in asked:
        if name and name not in known:
            raise RuntimeArgumentError(f"the model has no input {name!r}; its inputs are {', '.join(known) or 'none'}")
        if value != RANDOM:
            arrays[name] = _read_array(name, Path(value))
    return arrays


def _read_array(name: str, path: Path) -> Array:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RuntimeArgumentError(f"input {name}: {path} cannot be read as a .npy file: {error}") from error
    if not isinstance(array, np.ndarray):
        raise RuntimeArgumentError(f"input {name}: {path} holds several arrays; give a .npy file, which holds one")
    return np.ascontiguousarray(array)


def _open_shapes(proto: ModelProto, given: dict[str, Array]) -> dict[str, tuple[int, ...]]:
    """The shapes of given arrays, for inputs whose declared shape has open extents."""
    shapes = {}
    for value in _fed(proto):
        declared = value.type.tensor_type
        closed = declared.HasField("shape") and all(d.HasField("dim_value") for d in declared.shape.dim)
        if value.name in given and not closed:
            shapes[value.name] = given[value.name].shape
    return shapes


def _random(spec: TensorSpec) -> Array:
    shape = [extent for extent in spec.shape if isinstance(extent, int)]
    if len(shape) != len(spec.shape):
        raise RuntimeArgumentError(
            f"random values for {spec} need a shape: --shape {spec.name}=1,3,224,224 gives one, "
            f"--input {spec.name}=FILE.npy an array"
        )
    rng = np.random.default_rng(0)
    kind = spec.dtype.to_numpy()
    if spec.dtype.is_float:
        return rng.standard_normal(shape, np.float32).astype(kind)
    return rng.integers(0, 2, shape).astype(kind)


def _compile(console: Console, arguments: argparse.Namespace, shapes: dict[str, tuple[int, ...]]) -> Library:
    """Compile with a progress bar, which shows on a terminal only."""
    start = time.perf_counter()
    bar = Console(stderr=True)
    with Progress(console=bar, transient=True, disable=not bar.is_terminal) as progress:
        task = progress.add_task("compiling", total=None)
        try:
            library = compile(
                arguments.model,
                arguments.target,
                shapes,
                progress=lambda done, total, _: progress.update(task, completed=done, total=total),
                records=arguments.records,
            )
        except ModelError as error:
            raise with_advice(error) from error
    model = library.model
    arena = "whose size depends on its inputs" if model.dims else f"of {model.arena({})[1] / 2**20:.1f} MiB"
    console.print(
        f"{len(model.functions)} fused functions, compiled in {time.perf_counter() - start:.1f} s; "
        f"{len(model.steps)} calls of them, an arena {arena}"
    )
    return library


def _compare(
    console: Console,
    arguments: argparse.Namespace,
    engine: Engine,
    inputs: dict[str, Array],
    outputs: Sequence[Array],
    threads: int,
) -> None:
    """Print the latency, and the reference's where that is onnxruntime; check the outputs if that was asked for."""
    ours = _least_ms(lambda: engine(inputs))
    console.print(f"latency, {threads} thread{'s' * (threads > 1)}: loopwright {ours:.3f} ms", end="")
    if not arguments.check and not onnxruntime_installed():
        console.print()
        return
    try:
        reference = load_reference(arguments.model, threads)
        expected = reference.run(inputs)
    except CheckError as error:
        console.print()
        if arguments.check:
            raise
        console.print(f"({error})", markup=False)
        return
    timed = f", {reference.who} {_least_ms(lambda: reference.run(inputs)):.3f} ms" if onnxruntime_installed() else ""
    console.print(f"{timed} (the least of several runs)")
    if arguments.check:
        largest = largest_error([s.name for s in engine.library.outputs], outputs, expected, reference.who)
        console.print(f"checked: the largest difference from {reference.who} is {largest:.1e} of an output's maximum")


def _least_ms(call: Callable[[], object]) -> float:
    """Milliseconds of a call: the least of as many as fit in a second, three at least."""
    times: list[float] = []
    while len(times) < LEAST_RUNS or (sum(times) < RUN_SECONDS and len(times) < MAX_RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def _write_outputs(path: Path, library: Library, outputs: Sequence[Array]) -> None:
    """As numpy.savez does; which cannot take names such as ``file``."""
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for spec, array in zip(library.outputs, outputs, strict=True):
                with archive.open(f"{spec.name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
    except OSError as error:
        raise RuntimeArgumentError(f"the outputs cannot be written to {path}: {error.strerror}") from error
