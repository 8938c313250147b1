"""``lw.dump`` and ``lw.function_schedules``: a model at the stages of its compilation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..artifact.options import Arithmetic, CodegenOptions, Precision
from ..base.errors import RuntimeArgumentError
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.reports import dump as reports
from ..compiler.reports.dump import MODEL_STAGES, Stage, StageText, check_stage, graph_stage, model_stage, unit_stage
from ..compiler.selection.records import TuningRecords, records_from
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from ..graph.types import GivenShapes
from ..lowering.schedule import Schedule
from ..runtime.library import Library
from .compile import compile
from .model_graph import expected_shapes, planned_graph

if TYPE_CHECKING:
    from onnx import ModelProto


def dump(
    subject: Library | Function | ModelProto | bytes | str | os.PathLike[str],
    stage: Stage,
    function: str | None = None,
    target: str | Target | None = "native",
    shapes: GivenShapes | None = None,
    precision: Precision = "standard",
    records: TuningRecords | str | os.PathLike[str] | None = None,
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
    expect: GivenShapes | None = None,
) -> list[StageText]:
    """A model at a stage of its compilation: ``"graph"``, ``"te"`` (computes and the steps of their schedule),
    ``"linalg"`` (what they compute, in MLIR), ``"loop"`` (the lowered loop nest), ``"mlir"`` (the same in MLIR),
    ``"llvm"`` (LLVM IR as emitted) or ``"asm"``; a text for each fused function, or for those called ``function``, by
    name or symbol.

    A library has ``"loop"``, ``"llvm"`` and ``"asm"``; the other arguments are those of ``compile``, which it does not
    take. Raises what ``compile`` raises, and ``RuntimeArgumentError`` for an unknown stage or function.
    """
    check_stage(stage)
    if stage == "graph" and function is not None:
        raise RuntimeArgumentError("the stage graph is of the whole model: it takes no function")
    if isinstance(subject, Library):
        if stage not in MODEL_STAGES:
            raise RuntimeArgumentError(f"a library has the stages {', '.join(MODEL_STAGES)}; {stage} needs the model")
        return model_stage(subject.model, stage, function)
    if stage in MODEL_STAGES:
        compiled = compile(
            subject,
            target,
            shapes,
            precision,
            records=records,
            arithmetic=arithmetic,
            batch_invariant=batch_invariant,
            expect=expect,
        )
        return model_stage(compiled.model, stage, function)
    options, usual = CodegenOptions(precision, arithmetic), expected_shapes(expect, batch_invariant)
    settings = CompileSettings(resolve_target(target), options, records_from(records), expect=usual)
    graph = planned_graph(subject, shapes, settings, batch_invariant)
    return graph_stage(graph) if stage == "graph" else unit_stage(graph, stage, settings, function)


def function_schedules(
    model: Function | ModelProto | bytes | str | os.PathLike[str],
    function: str,
    target: str | Target | None = "native",
    shapes: GivenShapes | None = None,
    precision: Precision = "standard",
    records: TuningRecords | str | os.PathLike[str] | None = None,
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
    expect: GivenShapes | None = None,
) -> dict[str, Schedule]:
    """The schedules that a fused function of a model is compiled from, by the names of the implementations: one, or
    several where it has a kernel for some shapes and another for others. ``explore`` shows them.

    ``function`` is its name or symbol; the other arguments are those of ``compile``. Raises what that raises, and
    ``RuntimeArgumentError`` where there is not just one such function, or it is a packed one.

    >>> import loopwright as lw
    >>> x = lw.var("x", (4, 8))
    >>> lw.function_schedules(lw.Function([x], lw.nn.relu(x)), "fused_relu")
    {'relu.generic': Schedule of relu (4 steps)}
    """
    options, usual = CodegenOptions(precision, arithmetic), expected_shapes(expect, batch_invariant)
    settings = CompileSettings(resolve_target(target), options, records_from(records), expect=usual)
    return reports.function_schedules(planned_graph(model, shapes, settings, batch_invariant), settings, function)
