"""The model that a subcommand works on: an ONNX file, which is compiled, or a saved library, which is loaded."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from .. import Library, ModelError, RuntimeArgumentError, compile
from ..api.given_states import GivenStates
from ..base.bounded_dimension import BoundedDimension
from ..base.dataclass import dataclass
from ..base.quantities import bytes_text, count_text, seconds_text
from ..graph.types import GivenShape
from ..runtime.arrays import Array
from ..runtime.threads.default_threads import MAX_THREADS
from .default_shapes import Shapes
from .fill_shapes import (
    GivenShapes,
    WantedShapes,
    advised,
    inputs_of_file,
    library_shapes,
    model_shapes,
    numbers_of,
    tell,
)
from .inputs import add_input_options, complete, read_inputs
from .model_inputs import ModelInput, check_shapes, inputs_of_library, inputs_text
from .model_options import add_model_options, choices_of, saved_library
from .progress import Tasks, progress_shown


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
        arena = (
            "whose size depends on its inputs"
            if model.dims or model.is_staged
            else f"of {bytes_text(model.first_stage.places({})[1])}"
        )
        how = "compiled" if self.compiled else "loaded"
        return (
            f"{count_text(len(model.functions), 'fused function')}, {how} in {seconds_text(self.seconds)}; "
            f"{count_text(len(model.steps), 'call')} of them, an arena {arena}"
        )


def add_program_options(parser: argparse.ArgumentParser) -> None:
    """The model, how it is compiled, and what it is run on."""
    parser.add_argument("model", type=Path, help="the file of a model (.onnx), or of a library that was saved")
    add_model_options(parser)
    add_input_options(parser)


def add_threads_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--threads``, which is None where it is not given."""
    parser.add_argument(
        "--threads", type=threads_number, help="default: as the environment says, else the cpus granted"
    )


def threads_number(text: str) -> int:
    """The number of threads that an option says. Raises argparse's ``ArgumentTypeError`` for anything else than a whole
    number from 1 to ``MAX_THREADS``."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number from 1 to {MAX_THREADS}")
    return int(text)


def open_program(
    arguments: argparse.Namespace, batch: int | None = None, tasks: Tasks | None = None, tiered: bool = False
) -> Program:
    """Compile or load the model that the arguments name, with the inputs that they give, random where they give none.

    ``batch`` is the first extent of inputs that leave it open. ``tasks`` shows the progress, if that is shown already.
    ``tiered`` is as for ``lw.compile``.
    """
    asked = _numbers(arguments.shape)
    start = time.perf_counter()
    library = saved_library(arguments, runs=True)
    seconds = time.perf_counter() - start
    inputs = inputs_of_library(library) if library is not None else inputs_of_file(arguments.model)
    check_shapes(arguments.model, inputs, asked)
    given = read_inputs(arguments.input, inputs)
    known: GivenShapes = {**{i.name: given[i.name].shape for i in inputs if i.is_open and i.name in given}, **asked}
    if batch is not None:
        _check_batch([i for i in inputs if i.name not in known])
    if library is not None:
        _check_arrays(arguments.model, library)
        _check_stateless(arguments.model, library)
        _check_fixed(arguments.model, inputs, asked)
        shapes = library_shapes(library, inputs, known, batch)
        tell(shapes, known)
        return Program(library, complete(given, library.inputs, shapes), seconds, False)
    shapes = model_shapes(arguments.model, inputs, known, batch)
    tell(shapes, known)
    start = time.perf_counter()
    try:
        wanted = {**known, **shapes, **_opened(inputs, asked, shapes)}
        library = compile_with_progress(arguments, wanted, tasks=tasks, tiered=tiered)
    except ModelError as error:
        raise advised(error, inputs, asked) from error
    _check_arrays(arguments.model, library)
    return Program(library, complete(given, library.inputs, shapes), time.perf_counter() - start, True)


def _check_stateless(file: Path, library: Library) -> None:
    if library.model.states:
        names = ", ".join(library.states.names)
        raise RuntimeArgumentError(
            f"{file} keeps the state {names} from run to run, in sessions, which are for Python: "
            f'lw.Engine(lw.load("{file}")).session(); compiled without --state, each run is given the state'
        )


def _numbers(shapes: Sequence[tuple[str, GivenShape]]) -> GivenShapes:
    """The shapes that are asked for. Raises ``RuntimeArgumentError`` for bounds, which a run has no use for."""
    for name, shape in shapes:
        for extent in shape:
            if isinstance(extent, BoundedDimension):
                raise RuntimeArgumentError(
                    f"--shape: {name} has a dimension with bounds, {extent}: that is for commands that compile; give "
                    "the number to run on, or compile a library first"
                )
    return numbers_of(dict(shapes))


def _check_arrays(path: Path, library: Library) -> None:
    """Raises ``RuntimeArgumentError`` for a model that takes or gives anything but arrays."""
    forms = (*library.shown.grouped_inputs, *library.shown.grouped_outputs)
    others = ", ".join(dict.fromkeys(form.name for form in forms if form.array_names != (form.name,)))
    if others:
        raise RuntimeArgumentError(
            f"{path}: {others} are lists of arrays, or may be absent: commands run models of arrays; call this one in "
            "Python by lw.Engine"
        )


def _check_fixed(path: Path, inputs: Sequence[ModelInput], asked: GivenShapes) -> None:
    """Raises ``RuntimeArgumentError`` where a library has other extents than are asked for."""
    for found in inputs:
        pairs = zip(found.extents or (), asked.get(found.name, ()), strict=False)
        if any(isinstance(extent, int) and number not in (None, extent) for extent, number in pairs):
            raise RuntimeArgumentError(f"--shape: {path} was compiled for {found}; other shapes need the model")


def _check_batch(inputs: Sequence[ModelInput]) -> None:
    if not any(i.extents and not isinstance(i.extents[0], int) for i in inputs):
        told = f": {inputs_text(inputs)}" if inputs else ""
        raise RuntimeArgumentError(f"--batch needs an input whose first extent is open, and there is none{told}")


def _opened(inputs: Sequence[ModelInput], asked: GivenShapes, shapes: Shapes) -> GivenShapes:
    """The shapes to compile for, where some extents were asked to stay open: with them all of the same name."""
    names = {
        extent
        for i in inputs
        for extent, number in zip(i.extents or (), asked.get(i.name, ()), strict=False)
        if number is None and isinstance(extent, str)
    }
    return {
        i.name: tuple(
            None if extent in names else number for extent, number in zip(i.extents, shapes[i.name], strict=True)
        )
        for i in inputs
        if i.extents is not None and i.name in shapes
    }


def compile_with_progress(
    arguments: argparse.Namespace,
    shapes: WantedShapes,
    line_tables: bool = False,
    alternatives: bool = False,
    unfused: Sequence[str] = (),
    state: GivenStates = None,
    tasks: Tasks | None = None,
    tiered: bool = False,
) -> Library:
    """Compile the model that the arguments name. The progress shows by ``tasks``, else as a bar, on a terminal only."""
    with progress_shown(piped=False) if tasks is None else nullcontext(tasks) as begin:
        return compile(
            arguments.model,
            arguments.target,
            shapes,
            progress=begin("compiling"),
            **choices_of(arguments),
            line_tables=line_tables,
            alternatives=alternatives,
            unfused=unfused,
            state=state,
            tiered=tiered,
        )
