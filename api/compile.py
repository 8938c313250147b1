"""``lw.compile``: from a model to a library."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifact.model import CompiledModel
from ..artifact.options import Arithmetic, CodegenOptions, Precision
from ..base.choices import check_flag
from ..base.dataclass import dataclass
from ..base.garbage import rare_collections
from ..base.memory import memory_errors
from ..base.target import Target
from ..base.timing import TimedStage, timed
from ..codegen.host import resolve_target
from ..compiler.model.compile_model import Keep, compile_model, job_count, tell_of
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
    with memory_errors("compiling a model"), rare_collections(), TimedStage("compile") as stage:
        usual = expected_shapes(expect, batch_invariant)
        settings = CompileSettings(resolve_target(target), options, known, layouts, alternatives, unfused, usual)
        request = _Request(model, shapes, settings, batch_invariant, state)
        if tiered:
            job_count(jobs)
            wanted = settings.target, shapes, precision, jobs, False, known, layouts, alternatives, line_tables
            whole = partial(compile, model, *wanted, unfused, arithmetic, batch_invariant, state, expect)
            return tiered_library(request.imported, settings, request.source, whole)
        compiled = request.compiled(jobs, progress)
    return Library(compiled, request.source, stage.timing)


@dataclass(frozen=True, slots=True)
class _Request:
    """A model as ``compile`` is given it, and all that its compilation goes by."""

    model: ModelProto | bytes | str | os.PathLike[str] | Function
    shapes: GivenShapes | None
    settings: CompileSettings
    batch_invariant: bool
    state: GivenStates

    @property
    def source(self) -> Path | None:
        """The file of the model, if it is in one."""
        return Path(self.model) if isinstance(self.model, (str, os.PathLike)) else None

    def imported(self) -> Function:
        """The graph of the model, with its states."""
        graph = timed(graph_of, self.model, self.shapes, self.settings.target, self.batch_invariant)
        return with_states(graph, self.state)

    def compiled(self, jobs: int | None, progress: Progress | bool | None) -> CompiledModel:
        """The compiled model: that of the cache if it has one, else a new one, which the cache is given."""
        if self.source is None:
            return self._compiled_anew(jobs, progress)
        entry = timed(model_entry, self.source, self.shapes, self.settings, self.batch_invariant, self.state)
        found = None if entry is None else timed(entry.find_model)
        if found is not None:
            tell_of(found, jobs, progress)
            return found
        if entry is None:
            return self._compiled_anew(jobs, progress)
        timed(entry.note_files)
        try:
            made = self._compiled_anew(jobs, progress, entry.keep_constants)
            timed(entry.keep_model, made)
        finally:
            entry.close()
        return made

    def _compiled_anew(
        self, jobs: int | None, progress: Progress | bool | None, keep: Keep | None = None
    ) -> CompiledModel:
        evaluate = partial(evaluate_constants, replace(self.settings.options, line_tables=False), jobs)
        # The graph is handed on, not kept: its weights need memory, and only packed ones are used in the end.
        return compile_model(self.imported(), self.settings, jobs, progress, evaluate, keep)
