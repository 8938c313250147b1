"""Have numbers for the extents that a model leaves open, where a subcommand cannot do without: ones that it accepts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from .. import Library, LoopwrightError, ModelError, from_onnx
from ..base.spans import LEAST_BYTES
from ..frontend.load import load_model
from ..graph.types import GivenExtent
from ..runtime.dimensions import make_plan
from .default_shapes import Shapes, candidate_shapes, shape_options
from .model_inputs import ModelInput, check_shapes, inputs_of_graph

GivenShapes: TypeAlias = Mapping[str, Sequence[int | None]]
WantedShapes: TypeAlias = Mapping[str, Sequence[GivenExtent]]
"""Those that a model is compiled for: dimensions may have bounds."""
Result = TypeVar("Result")


def inputs_of_file(path: Path) -> list[ModelInput]:
    """The inputs of an ONNX model; its weights are not read."""
    proto, _ = load_model(path, mapped=True)
    return inputs_of_graph(proto.graph)


def model_shapes(path: Path, inputs: Sequence[ModelInput], given: GivenShapes, batch: int | None = None) -> Shapes:
    """The shapes of all inputs that leave extents open: as given, and else usual ones that the model accepts."""
    return _first_accepted(
        candidate_shapes(inputs, given, batch),
        lambda shapes: from_onnx(path, {**given, **shapes}, mapped=True, explain=False),
    )


def library_shapes(
    library: Library, inputs: Sequence[ModelInput], given: GivenShapes, batch: int | None = None
) -> Shapes:
    """The shapes of the inputs of a library, with the dimensions that it leaves open filled in."""

    def check(shapes: Shapes) -> None:
        found = {spec.name: tuple(e for e in spec.shape if isinstance(e, int)) for spec in library.inputs} | shapes
        strings = [(LEAST_BYTES,)] if library.model.string_inputs else []
        make_plan(library.model, [*(found[spec.name] for spec in library.inputs), *strings])

    return _first_accepted(candidate_shapes(inputs, given, batch), check)


def with_shapes(path: Path, given: WantedShapes, attempt: Callable[[WantedShapes], Result]) -> Result:
    """What ``attempt`` gives for a model with the shapes given; where that fails, and does not where no extent is open,
    with usual ones, which are told. An extent that is given as open stays so."""
    inputs = inputs_of_file(path)
    check_shapes(path, inputs, given)
    try:
        return attempt(given)
    except ModelError as error:
        shapes = {} if _stays_open(given) else model_shapes(path, inputs, numbers_of(given))
        if not shapes or shapes == given or not _accepts(path, shapes):
            raise advised(error, inputs, given) from error
    tell(shapes, numbers_of(given))
    return attempt({**given, **shapes})


def numbers_of(given: WantedShapes) -> GivenShapes:
    """The shapes as far as they are numbers: dimensions with bounds are open."""
    return {name: tuple(e if isinstance(e, int) else None for e in shape) for name, shape in given.items()}


def advised(error: ModelError, inputs: Sequence[ModelInput], given: WantedShapes) -> ModelError:
    """The error, with the option that gives shapes where shapes help, or it asks for ``shapes=``."""
    cures = [problem.shapes for problem in error.problems if problem.shapes]
    if cures:
        return ModelError(f"{error}\n(on the command line: {shape_options(cures[0])})", error.problems)
    if "shapes=" not in str(error):
        return error
    options = [shape_options(next(candidate_shapes(inputs, numbers_of(given))))]
    options += [f"--shape {i.name}=…, with as many extents as it is to have" for i in inputs if i.extents is None]
    return ModelError(f"{error}\n(on the command line: {' '.join(filter(None, options))})", error.problems)


def tell(shapes: Shapes, given: GivenShapes) -> None:
    """Say on the standard error which extents were filled in: the options that do the same."""
    chosen = {name: shape for name, shape in shapes.items() if given.get(name) != shape}
    if chosen:
        print(f"loopwright: extents that are open are taken as {shape_options(chosen)}", file=sys.stderr)


def _stays_open(given: WantedShapes) -> bool:
    return any(not isinstance(extent, int) for shape in given.values() for extent in shape)


def _accepts(path: Path, shapes: Shapes) -> bool:
    try:
        from_onnx(path, shapes, mapped=True, explain=False)
    except LoopwrightError:
        return False
    return True


def _first_accepted(candidates: Iterable[Shapes], check: Callable[[Shapes], object]) -> Shapes:
    """The first that ``check`` takes; the first of all, whose error says most, where it takes none."""
    first: Shapes = {}
    problem = ""
    for k, shapes in enumerate(candidates):
        if not shapes:
            break
        try:
            check(shapes)
        except LoopwrightError as error:
            if k == 0:
                first, problem = shapes, str(error)
            elif k == 1 and str(error) == problem:  # the extents are others, and it is the same
                break
        else:
            return shapes
    return first
