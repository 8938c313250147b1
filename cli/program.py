"""The model that a subcommand works on: an ONNX file, which is compiled, or a saved library, which is loaded."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from onnx import ModelProto

from .. import Library, ModelError, RuntimeArgumentError, compile
from ..frontend.load import load_model
from ..ir.quantities import bytes_text, seconds_text
from ..runtime.arrays import Array
from ..runtime.threads.default_threads import MAX_THREADS
from .inputs import add_input_options, complete, read_inputs
from .model_options import add_model_options, choices_of, saved_library, with_advice
from .progress import Tasks, progress_shown

Shapes: TypeAlias = dict[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Program:
    """A library with inputs to run it on. ``seconds`` is what it took to compile or to load, ``compiled`` which."""

    library: Library
    inputs: dict[str, Array]
    seconds: float
    compiled: bool

    @property
    def summary(self) -> str:
        """A line: how many functions, how they came here, how large the arena is."""
        model = self.library.model
        arena = "whose size depends on its inputs" if model.dims else f"of {bytes_text(model.arena({})[1])}"
        how = "compiled" if self.compiled else "loaded"
        return (
            f"{len(model.functions)} fused functions, {how} in {seconds_text(self.seconds)}; "
            f"{len(model.steps)} calls of them, an arena {arena}"
        )


def add_program_options(parser: argparse.ArgumentParser) -> None:
    """The model, how it is compiled, and what it is run on."""
    parser.add_argument("model", type=Path, help="the file of a model (.onnx), or of a library that was saved")
    add_model_options(parser)
    add_input_options(parser)


def add_threads_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=threads_number, help="default: as the environment says, else the cpus granted"
    )


def threads_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number from 1 to {MAX_THREADS}")
    return int(text)


def open_program(arguments: argparse.Namespace, batch: int | None = None, tasks: Tasks | None = None) -> Program:
    """Compile or load the model that the arguments name, with the inputs that they give, random where they give none.

    ``batch`` is the first extent of inputs that leave it open. ``tasks`` shows the progress, if that is shown already.
    """
    shapes: Shapes = dict(arguments.shape)
    start = time.perf_counter()
    library = saved_library(arguments)
    if library is not None:
        seconds = time.perf_counter() - start
        given = read_inputs(arguments.input, [spec.name for spec in library.inputs])
        if batch is not None:
            shapes = _batched({s.name: [*s.shape] for s in library.inputs if s.name not in given}, batch) | shapes
        return Program(library, complete(given, library.inputs, shapes), seconds, False)
    names, open_shapes = _inputs_of(arguments.model)
    given = read_inputs(arguments.input, names)
    if batch is not None:
        shapes = _batched(open_shapes, batch) | shapes
    shapes = {name: given[name].shape for name in open_shapes if name in given} | shapes
    start = time.perf_counter()
    library = compile_with_progress(arguments, shapes, tasks=tasks)
    return Program(library, complete(given, library.inputs, shapes), time.perf_counter() - start, True)


def compile_with_progress(
    arguments: argparse.Namespace,
    shapes: Mapping[str, tuple[int, ...]],
    line_tables: bool = False,
    alternatives: bool = False,
    unfused: Sequence[str] = (),
    tasks: Tasks | None = None,
) -> Library:
    """Compile the model that the arguments name. The progress shows by ``tasks``, else as a bar, on a terminal only."""
    with progress_shown(piped=False) if tasks is None else nullcontext(tasks) as begin:
        try:
            return compile(
                arguments.model,
                arguments.target,
                shapes,
                progress=begin("compiling"),
                **choices_of(arguments),
                line_tables=line_tables,
                alternatives=alternatives,
                unfused=unfused,
            )
        except ModelError as error:
            raise with_advice(error) from error


def _inputs_of(model: Path) -> tuple[list[str], dict[str, list[Any]]]:
    """The names of a model's inputs, and the shapes of those that leave extents open. Its weights are not read."""
    proto, _ = load_model(model, mapped=True)
    return [value.name for value in _fed(proto)], _open_shapes(proto)


def _fed(proto: ModelProto) -> list[Any]:
    """The inputs that are given at run time: early versions list initializers as inputs too."""
    constants = {initializer.name for initializer in proto.graph.initializer}
    return [i for i in proto.graph.input if i.name not in constants]


def _open_shapes(proto: ModelProto) -> dict[str, list[Any]]:
    """The shapes of inputs with open extents, which are None or a name; of inputs without any shape, nothing."""
    shapes = {}
    for value in _fed(proto):
        declared = value.type.tensor_type
        extents = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in declared.shape.dim]
        if not declared.HasField("shape") or any(not isinstance(extent, int) for extent in extents):
            shapes[value.name] = extents
    return shapes


def _batched(shapes: Mapping[str, list[Any]], batch: int) -> Shapes:
    """The shapes with ``batch`` for their first extent, where that is open and the others are numbers."""
    found: Shapes = {}
    for name, extents in shapes.items():
        if extents and not isinstance(extents[0], int) and all(isinstance(e, int) for e in extents[1:]):
            found[name] = (batch, *extents[1:])
    if not found:
        raise RuntimeArgumentError("--batch needs an input whose first extent is open, and no other")
    return found
