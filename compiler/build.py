"""Compile one scheduled function: lower it, take its parallel loops out, and emit code for a target."""

from __future__ import annotations

from collections.abc import Sequence

from ..artifact.options import CodegenOptions
from ..base.dataclass import dataclass
from ..base.target import Target
from ..codegen.compile import CompiledCode, compile_module
from ..codegen.llvm_memory import require_before_lowering
from ..codegen.report.report import VectorReport
from ..codegen.report.verdicts import vector_report
from ..ir.stmt import PrimFunc
from ..lowering.passes.outline_parallel import outline_parallel
from ..lowering.pipeline import lower, lower_numbered
from ..lowering.recomputed import recomputations
from ..lowering.rules.fold_order import require_order_of_definition
from ..lowering.schedule import Schedule
from ..te.tensor import Tensor


@dataclass(frozen=True, slots=True)
class CompiledSchedule:
    """A lowered function, and the native code of it."""

    func: PrimFunc
    code: CompiledCode


def compile_schedule(
    schedule: Schedule, args: Sequence[Tensor], target: Target, name: str, options: CodegenOptions
) -> CompiledSchedule:
    """Lower and compile; see ``lowering.pipeline.lower`` for the errors.

    With strict precision also ``ScheduleError`` where the schedule folds float reductions in another order than their
    definitions.
    """
    if options.precision == "strict":
        require_order_of_definition(schedule.state)
    require_before_lowering()
    func = lower(schedule, args, name, target, debug=options.debug)
    module = outline_parallel(func, keep_loops=options.debug)
    return CompiledSchedule(func, compile_module(module, target, options))


def report_schedule(
    schedule: Schedule, args: Sequence[Tensor], target: Target, name: str, options: CodegenOptions
) -> VectorReport:
    """What becomes of the loops of a schedule when it is compiled so: it is lowered and compiled again to find out."""
    func, nest = lower_numbered(schedule, args, name, target, options.debug)
    warnings = tuple(map(str, recomputations(schedule.state)))
    return vector_report(nest, outline_parallel(func, keep_loops=options.debug), target, options, warnings=warnings)
