"""From a schedule to a kernel that can be called, with what its report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..artifact.options import CodegenOptions
from ..base.memory import memory_errors
from ..base.target import Target
from ..compiler.build import compile_schedule, report_schedule
from ..lowering.schedule import Schedule
from ..runtime.kernel import Kernel
from ..te.tensor import Tensor


def build_kernel(
    schedule: Schedule, args: Sequence[Tensor], target: Target, name: str, options: CodegenOptions
) -> Kernel:
    """Compile a schedule; ``args`` are the tensors that calls give, in order. ``lw.build`` tells of the errors."""
    with memory_errors(f"building {name}"):
        compiled = compile_schedule(schedule, args, target, name, options)
        report = partial(report_schedule, schedule.copy(), tuple(args), target, name, options)
        return Kernel(compiled.func, compiled.code, report)
