"""``lw.build``: from a schedule to a kernel that can be called, with what its report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..artifact.options import CodegenOptions, Precision
from ..base.garbage import rare_collections
from ..base.memory import memory_errors
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.build import compile_schedule, report_schedule
from ..lowering.schedule import Schedule
from ..runtime.kernel import Kernel
from ..te.tensor import Tensor


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
    with memory_errors(f"building {name}"):
        options = CodegenOptions(precision=precision, debug=debug, line_tables=line_tables)
        return build_kernel(schedule, args, resolve_target(target), name, options)


def build_kernel(
    schedule: Schedule, args: Sequence[Tensor], target: Target, name: str, options: CodegenOptions
) -> Kernel:
    """Compile a schedule; ``args`` are the tensors that calls give, in order. ``build`` tells of the errors."""
    with memory_errors(f"building {name}"), rare_collections():
        compiled = compile_schedule(schedule, args, target, name, options)
        report = partial(report_schedule, schedule.copy(), tuple(args), target, name, options)
        return Kernel(compiled.func, compiled.code, report)
