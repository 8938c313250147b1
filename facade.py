"""The facade: what users type as ``lw.name`` is gathered here from the folders, and what needs several folders at once
is tied together here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from onnx import ModelProto

from . import te
from .artifact.model import TensorSpec
from .artifact.options import Arithmetic, CodegenOptions, Precision
from .base.choices import check_flag, is_one_of
from .base.dtype import DType
from .base.errors import (
    BoundsError,
    CacheError,
    ExpressionError,
    InternalError,
    InterpretError,
    KernelError,
    LoopwrightError,
    MlirError,
    ModelError,
    OutOfMemoryError,
    RecordError,
    RuntimeArgumentError,
    ScheduleError,
    SelectionError,
    TargetError,
    TraceError,
    TypeInferenceError,
    VerificationError,
)
from .base.memory import memory_errors
from .base.target import Target
from .codegen.host import resolve_target
from .codegen.mlir.loops import loops_text
from .codegen.report.report import VectorReport
from .compiler.fusion.partition import check_unfused
from .compiler.layout.layout_planning import Layouts, check_layouts
from .compiler.model.compile_model import compile_model
from .compiler.model.progress import Progress
from .compiler.passes.graph_passes import run_graph_passes
from .compiler.passes.open_batch import with_open_batch
from .compiler.passes.specialize import specialize
from .compiler.reports.dump import MODEL_STAGES, Stage, StageText, check_stage, graph_stage, model_stage, unit_stage
from .compiler.reports.dump import function_schedules as _function_schedules
from .compiler.reports.explain import Explanation, explain_call, explain_graph, explain_model
from .compiler.reports.fusion_report import FusionReport
from .compiler.reports.fusion_report import fusion_report as _fusion_report
from .compiler.reports.linalg import linalg_text
from .compiler.selection.records import TuningRecords, records_from
from .compiler.selection.tuning_record import TuningRecord
from .explorer.explore import explore
from .explorer.explorer_page import ExplorerPage
from .frontend import from_onnx
from .graph.node import Call, Constant, Function, Node, Var
from .graph.types import tensor_type
from .ir.expr import ExprLike
from .ir.interpret import interpret
from .ir.stmt import IRModule, PrimFunc
from .ir.verify import verify
from .kernels.build import build_kernel
from .kernels.kernel_function import KernelFunction, kernel
from .kernels.specialization import Specialization
from .lowering.declare_intrinsic import declare_intrinsic
from .lowering.pipeline import PassRecord
from .lowering.pipeline import lower as _lower
from .lowering.schedule import Schedule, create_schedule
from .lowering.tensor_intrinsic import TensorIntrinsic
from .lowering.trace import Trace
from .ops import nn
from .runtime.arrays import Array
from .runtime.engine import Engine
from .runtime.executor_config import ExecutorConfig
from .runtime.functions.packed_functions import get_func, list_funcs, register_func
from .runtime.functions.symbols import register_symbol
from .runtime.kernel import Kernel
from .runtime.library import Library
from .runtime.library import load_library as load
from .runtime.measure.compare import Comparison
from .runtime.measure.profile import Profile
from .runtime.measure.timing import Timing
from .runtime.tactics.tactic import AbstractTactic, TacticRegistry, tactics
from .schedules.default_schedule import default_schedule as _default_schedule
from .te.tensor import Tensor

MlirLevel = Literal["linalg", "loops"]


def lower(
    schedule: Schedule,
    args: Sequence[Tensor],
    name: str = "main",
    target: str | Target | None = None,
    trace_passes: bool | list[PassRecord] = False,
) -> PrimFunc:
    """Lower a schedule to the loop nest that code is emitted from; ``str()`` of the result is its text.

    ``args`` are the tensors that calls give, inputs and outputs, in order. ``target`` (the machine at hand, if None)
    says how many vector registers there are. ``trace_passes`` True prints the function after each pass; a list collects
    ``PassRecord``s. Raises ``ScheduleError`` where ``args`` do not fit the schedule.
    """
    return _lower(schedule, args, name, resolve_target(target), trace_passes)


def emit_mlir(func: PrimFunc | IRModule, level: MlirLevel = "loops", precision: Precision = "standard") -> str:
    """What ``lower`` gives as a module of MLIR, for LLVM 18 or later.

    ``"loops"`` says how it is computed: the lowered loop nest in func, memref, scf, arith, math and vector.
    ``"linalg"`` says what is computed, whatever the schedule: ``linalg.generic`` on tensors, inputs in, outputs out.
    Unless ``precision`` is ``"strict"``, sums take in products as fma, whatever the target. Raises
    ``MlirError`` for what MLIR has no form for at that level, and names it; ``VerificationError`` for a program that is
    not legal.

    >>> import loopwright as lw
    >>> from loopwright import te
    >>> A = te.placeholder((4,), "float32", name="A")
    >>> B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    >>> print(lw.emit_mlir(lw.lower(lw.create_schedule(B), [A, B], name="double")))
    module {
      func.func @double(%A: memref<4xf32>, %B: memref<4xf32>) {
        %c0 = arith.constant 0 : index
        %c4 = arith.constant 4 : index
        %c1 = arith.constant 1 : index
        %cst_f32 = arith.constant 2.0 : f32
        scf.for %i = %c0 to %c4 step %c1 {
          %A_0 = memref.load %A[%i] : memref<4xf32>
          %0 = arith.mulf %A_0, %cst_f32 : f32
          memref.store %0, %B[%i] : memref<4xf32>
        }
        return
      }
    }
    """
    if not isinstance(func, (PrimFunc, IRModule)):
        raise RuntimeArgumentError(f"emit_mlir takes what lower gives, found {func!r}")
    verify(func)
    contract = CodegenOptions(precision=precision).precision != "strict"
    if not is_one_of(level, MlirLevel):
        raise RuntimeArgumentError(f"a level of MLIR is one of {', '.join(get_args(MlirLevel))}, found {level!r}")
    if level == "loops":
        return loops_text(func, contract=contract)
    return linalg_text(func if isinstance(func, PrimFunc) else func.entry)


def build(
    schedule: Schedule,
    args: Sequence[Tensor],
    target: str | Target | None = "native",
    name: str = "main",
    precision: Precision = "standard",
    debug: bool = False,
    line_tables: bool = False,
) -> Kernel:
    """Compile a schedule to a kernel: ``kernel(a, b, c)`` runs it on arrays, outputs are written in place.

    ``precision`` is ``"standard"`` (multiplications and additions may contract to fma, the schedule may reassociate
    reductions), ``"strict"`` (neither) or ``"fast"`` (divisors that are constants become factors): docs/accuracy.md
    says what may contract. A ``debug`` build checks each access before it is made, and raises ``BoundsError`` with the
    tensor, its indices and the values of the loops around; it has no vector code. With ``line_tables`` debuggers and
    profilers show the loop nest as the source of the machine code, which is the same.
    Raises ``TargetError`` for an unknown target or precision, ``ScheduleError`` where ``args`` do not fit the schedule,
    ``OutOfMemoryError`` where there is not enough memory.

    >>> import numpy as np
    >>> import loopwright as lw
    >>> from loopwright import te
    >>> A = te.placeholder((4,), "float32", name="A")
    >>> B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    >>> double = lw.build(lw.create_schedule(B), [A, B], name="double")
    >>> b = np.empty(4, np.float32)
    >>> double(np.arange(4, dtype=np.float32), b)
    >>> b
    array([0., 2., 4., 6.], dtype=float32)
    """
    options = CodegenOptions(precision=precision, debug=debug, line_tables=line_tables)
    return build_kernel(schedule, args, resolve_target(target), name, options)


def var(name: str, shape: Sequence[ExprLike], dtype: str | DType | np.dtype[Any] | type[Any] = "float32") -> Var:
    """An input of a graph function; extents are numbers or ``te.var`` dimensions.

    Graphs are made of it by ``lw.nn``, Python's operators and numpy's functions: ``np.tanh(x @ w) + 1``.
    Raises ``ExpressionError`` for an unknown dtype, ``TypeInferenceError`` for a negative extent.
    """
    return Var(name, tensor_type(shape, dtype))


def const(value: object, name: str = "") -> Constant:
    """A constant of a graph: anything that numpy makes an array of. A contiguous array is not copied: leave it be.

    Raises ``ExpressionError`` for an array of anything but numbers and bools.
    """
    return Constant(np.asarray(value), name)


def compile(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    target: str | Target | None = "native",
    shapes: Mapping[str, Sequence[int | None]] | None = None,
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
) -> Library:
    """Compile a model: a path, bytes or ``ModelProto`` of ONNX, or a graph function.

    ``shapes`` gives the shapes of inputs; dimensions that stay open, or are given as None or -1, are for each run to
    choose, and code for known ones is faster. ``jobs`` is the number of processes that compile (default: one a core);
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
    in layouts that cost less. ``alternatives`` compiles each function by all implementations that could serve its
    operator, so that engines may measure them against each other. ``line_tables`` are as for ``build``, of all
    functions. Calls of the operators named in ``unfused`` stay functions of their own, which tactics of Python can
    serve. ``lw.Engine(library)`` runs the result on the target's kind of machine, ``library.save`` keeps it.
    Raises ``ModelError`` for a model that is damaged or not supported, for shapes that do not fit it, and, if it is to
    be ``batch_invariant``, where it holds for one batch only; ``TargetError`` for an unknown target, precision or
    arithmetic, for strict precision with fast arithmetic, and for a batch-invariant target with BLAS;
    ``RecordError`` for records that cannot be read; ``OutOfMemoryError`` where there is not enough memory.
    """
    options = CodegenOptions(precision=precision, arithmetic=arithmetic, line_tables=line_tables)
    evaluate = partial(_evaluate, replace(options, line_tables=False), jobs)
    known = records_from(records)
    source = Path(model) if isinstance(model, (str, os.PathLike)) else None
    with memory_errors("compiling a model"):
        resolved = resolve_target(target)
        # The graph is handed on, not kept: its weights need memory, and only packed ones are used in the end.
        compiled = compile_model(
            _graph_of(model, shapes, resolved, batch_invariant),
            resolved,
            options,
            jobs,
            progress,
            evaluate,
            known,
            layouts,
            alternatives,
            unfused,
        )
        return Library(compiled, source)


def explain(
    subject: Library | Call | Function | ModelProto | bytes | str | os.PathLike[str],
    target: str | Target | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    precision: Precision | None = None,
    records: TuningRecords | str | os.PathLike[str] | None = None,
    layouts: Layouts | None = None,
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
) -> Explanation:
    """Why each call of a model has the implementation it has: all candidates, their conditions, priorities and recorded
    costs, and the reason of the choice; ``print`` it, or take ``to_json()``.

    A library tells what was chosen for it. A model, a graph function or a single call is not compiled: the rest of the
    arguments are those that ``compile`` would get, and it raises what that does.

    >>> import loopwright as lw
    >>> call = lw.nn.softmax(lw.var("x", (4, 8)))
    >>> print(lw.explain(call, target="llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"))
    for x86-64, x86_64-linux-gnu
    softmax
        softmax(float32[4, 8], axes=(1,))
          → softmax.generic (10): the only one
            softmax.generic  10 valid
            softmax.rows     15 rejected (fails: 8 >= 64)
    """
    check_flag(batch_invariant, "batch_invariant")
    if isinstance(subject, Library):
        options = (target, shapes, precision, records, layouts, arithmetic, batch_invariant or None)
        if any(given is not None for given in options):
            raise RuntimeArgumentError("a library is explained as it was compiled; it takes no further arguments")
        return explain_model(subject.model)
    numeric = CodegenOptions(precision="standard" if precision is None else precision, arithmetic=arithmetic)
    settings = resolve_target(target), numeric.precision, records_from(records)
    if isinstance(subject, Call):
        return explain_call(subject, *settings, numeric.arithmetic)
    chosen = "plan" if layouts is None else layouts
    check_layouts(chosen)
    graph = _graph_of(subject, shapes, settings[0], batch_invariant)
    return explain_graph(graph, *settings, chosen, numeric.arithmetic)


def dump(
    subject: Library | Function | ModelProto | bytes | str | os.PathLike[str],
    stage: Stage,
    function: str | None = None,
    target: str | Target | None = "native",
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    precision: Precision = "standard",
    records: TuningRecords | str | os.PathLike[str] | None = None,
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
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
        )
        return model_stage(compiled.model, stage, function)
    options, known, machine = CodegenOptions(precision, arithmetic), records_from(records), resolve_target(target)
    graph = _planned(subject, shapes, machine, options, known, batch_invariant)
    return graph_stage(graph) if stage == "graph" else unit_stage(graph, stage, machine, options, known, function)


def function_schedules(
    model: Function | ModelProto | bytes | str | os.PathLike[str],
    function: str,
    target: str | Target | None = "native",
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    precision: Precision = "standard",
    records: TuningRecords | str | os.PathLike[str] | None = None,
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
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
    options, known, machine = CodegenOptions(precision, arithmetic), records_from(records), resolve_target(target)
    graph = _planned(model, shapes, machine, options, known, batch_invariant)
    return _function_schedules(graph, machine, options, known, function)


def fusion_report(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    target: str | Target | None = "native",
    unfused: Collection[str] = (),
    records: TuningRecords | str | os.PathLike[str] | None = None,
    arithmetic: Arithmetic | None = None,
    batch_invariant: bool = False,
) -> FusionReport:
    """Which operators of a model become one function, and what keeps the others apart; ``print`` it.

    Takes and raises what ``compile`` does. The model is not compiled, but for what depends on constants alone.

    >>> import loopwright as lw
    >>> x, w = lw.var("x", (4, 8)), lw.var("w", (8, 8))
    >>> y = lw.nn.relu(lw.nn.matmul(lw.nn.negative(x), w))
    >>> print(lw.fusion_report(lw.Function([x, w], lw.nn.transpose(y))))  # doctest: +NORMALIZE_WHITESPACE
    fused_negative: %0 negative
        not with %1 nn.matmul: nn.matmul is complex: its operands stay outside
    fused_nn_matmul_relu: %1 nn.matmul, %2 relu
        not with %3 transpose: nn.matmul is complex: its function takes in elementwise and broadcasting operators of
        its shape, with elements as wide, and transpose is injective
    fused_transpose: %3 transpose
    """
    check_unfused(unfused)
    options, known, machine = CodegenOptions(arithmetic=arithmetic), records_from(records), resolve_target(target)
    return _fusion_report(_planned(model, shapes, machine, options, known, batch_invariant), unfused)


def _graph_of(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    shapes: Mapping[str, Sequence[int | None]] | None,
    target: Target,
    batch_invariant: bool,
) -> Function:
    def load(given: Mapping[str, Sequence[int | None]] | None) -> Function:
        return specialize(model, given) if isinstance(model, Function) else from_onnx(model, given, mapped=True)

    check_flag(batch_invariant, "batch_invariant")
    return with_open_batch(load, shapes, target) if batch_invariant else load(shapes)


def _planned(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    shapes: Mapping[str, Sequence[int | None]] | None,
    target: Target,
    options: CodegenOptions,
    records: TuningRecords,
    batch_invariant: bool,
) -> Function:
    """The graph of a model behind all passes."""
    evaluate = partial(_evaluate, options, None)
    graph = _graph_of(model, shapes, target, batch_invariant)
    return run_graph_passes(graph, target, options.precision, evaluate, "plan", records, options.arithmetic)


def _evaluate(options: CodegenOptions, jobs: int | None, constants: Function) -> list[Array]:
    return Engine(Library(compile_model(constants, resolve_target("native"), options, jobs)))([])


def default_schedule(
    outputs: Tensor | Sequence[Tensor], target: str | Target | None = None, reassociate: bool = True
) -> Schedule:
    """A schedule from general rules, vectorized and parallel, for tensors that nobody scheduled by hand.

    ``reassociate`` lets it fold long reductions in several lanes; builds with strict precision need it to be False.
    """
    return _default_schedule(outputs, resolve_target(target), reassociate)


__all__ = [
    "AbstractTactic",
    "BoundsError",
    "CacheError",
    "Comparison",
    "Constant",
    "Engine",
    "ExecutorConfig",
    "Explanation",
    "ExplorerPage",
    "ExpressionError",
    "Function",
    "FusionReport",
    "IRModule",
    "InternalError",
    "InterpretError",
    "Kernel",
    "KernelError",
    "KernelFunction",
    "Library",
    "LoopwrightError",
    "MlirError",
    "ModelError",
    "Node",
    "OutOfMemoryError",
    "PassRecord",
    "PrimFunc",
    "Profile",
    "RecordError",
    "RuntimeArgumentError",
    "Schedule",
    "ScheduleError",
    "SelectionError",
    "Specialization",
    "TacticRegistry",
    "Target",
    "TargetError",
    "Tensor",
    "TensorIntrinsic",
    "TensorSpec",
    "Timing",
    "Trace",
    "TraceError",
    "TuningRecord",
    "TuningRecords",
    "TypeInferenceError",
    "VectorReport",
    "VerificationError",
    "build",
    "compile",
    "const",
    "create_schedule",
    "declare_intrinsic",
    "default_schedule",
    "dump",
    "emit_mlir",
    "explain",
    "explore",
    "from_onnx",
    "function_schedules",
    "fusion_report",
    "get_func",
    "interpret",
    "kernel",
    "list_funcs",
    "load",
    "lower",
    "nn",
    "register_func",
    "register_symbol",
    "resolve_target",
    "tactics",
    "te",
    "var",
]
