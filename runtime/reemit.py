"""Loading a library where the cpu lacks features of its target, or the system is another: its LLVM IR is compiled once
more, for this machine.

LLVM makes several vectors of one that is too wide. What names instructions of the other cpu cannot be made here.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace

from ..artifact.function import CompiledFunction
from ..artifact.model import CompiledModel
from ..artifact.options import CodegenOptions
from ..base.errors import TargetError
from ..base.target import Target
from ..codegen.compile import compile_text
from ..codegen.entry import compile_entry_text
from ..codegen.host import host_target
from .foreign import why_not_here

_log = logging.getLogger("loopwright.compile_engine")

_ROUNDING = ("floor.", "ceil.", "trunc.", "rint.", "nearbyint.", "roundeven.")
_NEEDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("x86.avx512bf16.",), ("avx512bf16",)),
    (("x86.avx512.vpdp",), ("avx512vnni",)),
    (("x86.avx512.",), ("avx512f",)),
    (("x86.avx2.",), ("avx2",)),
    (("x86.tdp", "x86.tile", "x86.ldtilecfg"), ("amx-tile", "amx-int8")),
    (("fma.",), ("fma",)),
    (_ROUNDING, ("sse4.1",)),
)
"""What x86 cpus must have for an intrinsic, by how its name begins: LLVM would end the process where it cannot select
instructions, and call functions that are not there, lane by lane, where it can."""

_ANYWHERE = (
    "masked. smax. smin. umax. umin. abs. fabs. sqrt. copysign. minnum. maxnum. minimum. maximum. ctpop. ctlz. cttz. "
    "fptosi.sat. fptoui.sat. vector.reduce. sadd. ssub. smul. uadd. usub. umul. fshl. fshr. prefetch. memcpy. memset. "
    "memmove. lifetime. assume arithmetic.fence."
)


def for_this_machine(model: CompiledModel) -> CompiledModel:
    """A model of this architecture, compiled for this cpu. Raises ``TargetError`` where its code cannot be."""
    target = replace(host_target(), threads=model.target.threads, libs=model.target.libs)
    for function in model.functions:
        missing = sorted(_needs(function, target) - target.features)
        if missing:
            raise TargetError(f"its function {function.name} has instructions of {', '.join(missing)}")
    _log.warning("compiling %s once more: %s", model.name, why_not_here(model.target))
    options = CodegenOptions()

    def compiled(f: CompiledFunction) -> CompiledFunction:
        if f.is_packed:
            return f
        code = compile_text(f.llvm_ir, f.symbol, f.messages, target, options, f.externs, f.source)
        return replace(f, object=code.object)

    return replace(
        model,
        target=target,
        functions=tuple(map(compiled, model.functions)),
        entry_object=compile_entry_text(model.entry_llvm_ir, model.entry, target, options).object,
        alternatives={},
    )


def _needs(function: CompiledFunction, target: Target) -> set[str]:
    """The features that the LLVM IR of a function asks for; an intrinsic that we do not know is one by itself."""
    found: set[str] = set()
    on_x86 = target.arch == "x86_64"
    for name in re.findall(r'@"?llvm\.([\w.]+)', function.llvm_ir):
        if name.startswith(tuple(_ANYWHERE.split())) or (not on_x86 and name.startswith(("fma.", *_ROUNDING))):
            continue
        found.update(next((features for begins, features in _NEEDS if name.startswith(begins)), (f"llvm.{name}",)))
        if name.startswith("x86.avx512") and name.endswith((".128", ".256")):
            found.add("avx512vl")
    if on_x86 and re.search(r"\bhalf\b", function.llvm_ir):
        found.add("f16c")
    if on_x86 and re.search(r"\bbfloat\b", function.llvm_ir):
        found.add("avx512bf16")
    return found
