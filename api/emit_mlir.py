"""``lw.emit_mlir``: lowered programs as modules of MLIR, at two levels."""

from __future__ import annotations

from typing import Literal, get_args

from ..artifact.options import CodegenOptions, Precision
from ..base.choices import is_one_of
from ..base.errors import RuntimeArgumentError
from ..codegen.mlir.loops import loops_text
from ..compiler.reports.linalg import linalg_text
from ..ir.stmt import IRModule, PrimFunc
from ..ir.verify import verify

MlirLevel = Literal["linalg", "loops"]


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
