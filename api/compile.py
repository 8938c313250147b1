"""``lw.compile``: from a model to a library."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifact.options import Arithmetic, CodegenOptions, Precision
from ..base.choices import check_flag
from ..base.garbage import rare_collections
from ..base.memory import memory_errors
from ..base.target import Target
from ..base.timing import TimedStage, timed
from ..codegen.host import resolve_target
from ..compiler.model.compile_model import compile_model, job_count, tell_of
from ..compiler.model.progress import Progress
from ..compiler.selection.records import TuningRecords, records_from
from ..compiler.settings import CompileSettings, Layouts
from ..graph.node import Function
from ..graph.types import GivenShapes
from ..runtime.library import Library
from .given_states import GivenStates, check_given, with_states
from .model_cache import model_entry
from .model_graph import evaluate_constants, expected_shapes, graph_of
from .tiered import tiered_library

if TYPE_CHECKING:
    from onnx import ModelProto


def compile(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    target: str | Target | None = "native",
    shapes: GivenShapes | None = None,
    precision: Precision = "standard",
    jobs: int | None = None,
    progress: Progress | bool | None = None,
    records: TuningRecords | str | os.PathLike[str] | None = None,
    layouts: Layouts = "plan",
    alternatives: bool = False,
    line_tables: bool = False,
    unfused: Collection[str] = (),
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
    state: GivenStates = None,
    expect: GivenShapes | None = None,
    tiered: bool = False,
) -> Library:
    """Compile a model: a path, bytes or ``ModelProto`` of ONNX, or a graph function.

    ``shapes`` gives the shapes of inputs; dimensions that stay open, or are given as None or -1, are for each run to
    choose, and code for known ones is faster. Of an input that is a list it gives a list of shapes, and None for one
    that is absent. ``jobs`` is the number of processes that compile (default: one a core);
    ``progress(done, total, name)`` is called after each function. Without it, a bar shows from the second second on
    where somebody is there to see it, in a terminal or a notebook; False shows none, True also lines in a pipe.
    ``precision`` is as for ``build``.
    ``arithmetic="direct"`` has each result made of the products that its definition has, so that outliers, NaN and
    infinities reach no further than there; ``"fast"``, the default unless the precision is strict, may take fewer
    others, as Winograd and Strassen do. ``batch_invariant`` makes choices blind to the batch, the leading dimension of
    the inputs: compilations for batches of 1 and of 32 then give a sample the same bits (docs/accuracy.md has both).
    ``records`` are tuning records, or the path of their file: of the implementations whose costs they know, the
    cheapest serves a call; they are of known shapes, which a batch that nothing may be chosen by is not.
    ``layouts="keep"`` holds all tensors as the model has them; by default the compiler may hold those between operators
    in layouts that cost less. Where dimensions are open, ``expect`` gives shapes of inputs that these are planned for,
    as ``{"x": (1, 3, 640, 640)}``; of what it leaves out, usual numbers are taken: a batch of 1, images of 224 by 224,
    sequences of 128. Code serves all others as well. ``alternatives`` compiles each function by all implementations
    that could serve its operator, so that engines may measure them against each other. ``line_tables`` are as for
    ``build``, of all functions. Calls of the operators named in ``unfused`` stay functions of their own, which tactics
    of Python can serve. ``state`` are the outputs that are inputs of the next run, as ``{"present.0": "past.0"}``, or
    ``"auto"`` for those whose names say so: ``lw.Engine(library).session()`` keeps them in memory, and writes what is
    new in place (docs/runtime.md). ``tiered`` gives a library at once: another process compiles the model, and until
    that is done, numpy serves the calls of engines, which sums in another order (docs/models.md). The future
    ``library.compilation`` tells when that is, and of a failure. ``lw.Engine(library)`` runs the result on the target's
    kind of machine, ``library.save`` keeps it.
    Raises ``ModelError`` for a model that is damaged or not supported, for shapes that do not fit it, given or
    expected, and, if it is to be ``batch_invariant``, where it holds for one batch only; ``TargetError`` for an unknown
    target, precision or arithmetic, for strict precision with fast arithmetic, and for a batch-invariant target with
    BLAS;
    ``RecordError`` for records that cannot be read; ``OutOfMemoryError`` where there is not enough memory.
    """
    check_given(state)
    check_flag(tiered, "tiered")
    options = CodegenOptions(precision=precision, arithmetic=arithmetic, line_tables=line_tables)
    known = records_from(records)
    source = Path(model) if isinstance(model, (str, os.PathLike)) else None
    with memory_errors("compiling a model"), rare_collections(), TimedStage("compile") as stage:
        usual = expected_shapes(expect, batch_invariant)
        settings = CompileSettings(resolve_target(target), options, known, layouts, alternatives, unfused, usual)

        def import_graph() -> Function:
            return with_states(timed(graph_of, model, shapes, settings.target, batch_invariant), state)

        if tiered:
            job_count(jobs)
            wanted = settings.target, shapes, precision, jobs, False, known, layouts, alternatives, line_tables
            whole = partial(compile, model, *wanted, unfused, arithmetic, batch_invariant, state, expect)
            return tiered_library(import_graph, settings, source, whole)
        entry = None if source is None else timed(model_entry, source, shapes, settings, batch_invariant, state)
        compiled = None if entry is None else timed(entry.find_model)
        if compiled is not None:
            tell_of(compiled, jobs, progress)
        else:
            if entry is not None:
                timed(entry.note_files)
            evaluate = partial(evaluate_constants, replace(options, line_tables=False), jobs)
            # The graph is handed on, not kept: its weights need memory, and only packed ones are used in the end.
            compiled = compile_model(import_graph(), settings, jobs, progress, evaluate)
            if entry is not None:
                timed(entry.keep_model, compiled)
    return Library(compiled, source, stage.timing)
