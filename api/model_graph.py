"""The graph of what users give as a model: as it was imported, or behind all passes."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from ..artifact.options import CodegenOptions
from ..base.choices import check_flag
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.model.compile_model import compile_model
from ..compiler.passes.graph_passes import run_graph_passes
from ..compiler.passes.open_batch import with_open_batch
from ..compiler.passes.specialize import specialize
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from ..graph.types import GivenShapes, given_shapes
from ..runtime.arrays import Array
from ..runtime.engine import Engine
from ..runtime.library import Library

if TYPE_CHECKING:
    from onnx import ModelProto


def graph_of(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    shapes: GivenShapes | None,
    target: Target,
    batch_invariant: bool,
) -> Function:
    """The graph of a model for these shapes, the batch open if it is to be ``batch_invariant``.

    Raises ``ModelError`` for a model that is damaged or not supported, and for shapes that do not fit it.
    """

    def load(given: GivenShapes | None) -> Function:
        if isinstance(model, Function):
            return specialize(model, given)
        from ..frontend import from_onnx  # only models of ONNX need onnx

        return from_onnx(model, given, mapped=True)

    check_flag(batch_invariant, "batch_invariant")
    return with_open_batch(load, shapes, target) if batch_invariant else load(shapes)


def expected_shapes(expect: GivenShapes | None, batch_invariant: bool) -> GivenShapes | None:
    """The shapes that a model's layouts are planned for; without the batch, where nothing may be chosen by it."""
    if expect is None or not batch_invariant:
        return expect
    return {name: (None, *shape[1:]) if shape else shape for name, shape in given_shapes(expect, "expect").items()}


def planned_graph(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    shapes: GivenShapes | None,
    settings: CompileSettings,
    batch_invariant: bool,
) -> Function:
    """The graph of a model behind all passes. Raises what ``graph_of`` raises."""
    graph = graph_of(model, shapes, settings.target, batch_invariant)
    return run_graph_passes(graph, settings, partial(evaluate_constants, settings.options, None))


def evaluate_constants(options: CodegenOptions, jobs: int | None, constants: Function) -> list[Array]:
    """The results of a graph function without parameters, on this machine by ``jobs`` processes that compile."""
    settings = CompileSettings(resolve_target("native"), options)
    return Engine(Library(compile_model(constants, settings, jobs)))([])
