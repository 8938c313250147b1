"""The native entry point of a model: one function that calls all kernels in order, on memory that the caller provides.

``i32 name(ptr ctx, ptr args)``: ``args`` has one 8-byte slot for the address of each value, whatever it is, and one for
each symbolic dimension, so that one entry serves any plan of memory. The result is 0, or ``(step + 1) << 16`` with the
kernel's code (as 16 bits) in the lower half.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir as llvm_ir

from ..artifact.model import KernelCall
from ..artifact.options import CodegenOptions
from ..base.target import Target
from .compile import CompiledCode, compile_text
from .machine import data_layout
from .types import I32, I64, PTR

CODE_BITS = 16


def compile_entry(name: str, steps: Sequence[KernelCall], target: Target, options: CodegenOptions) -> CompiledCode:
    """The code of a model's entry; the kernels are external symbols of it."""
    module = llvm_ir.Module(name, context=llvm_ir.Context())
    module.triple = target.triple
    module.data_layout = data_layout(target)
    kind = llvm_ir.FunctionType(I32, [PTR, PTR])
    kernels = {symbol: llvm_ir.Function(module, kind, symbol) for symbol in dict.fromkeys(s.symbol for s in steps)}
    entry = llvm_ir.Function(module, kind, name)
    entry.attributes.add("nounwind")
    ctx, args = entry.args
    ctx.name, args.name = "ctx", "args"
    builder = llvm_ir.IRBuilder(entry.append_basic_block("entry"))
    slots = builder.alloca(I64, max((len(s.operands) for s in steps), default=1), name="slots")
    for number, step in enumerate(steps):
        for k, slot in enumerate(step.operands):
            builder.store(builder.load(_element(builder, args, slot), typ=I64), _element(builder, slots, k))
        code = builder.call(kernels[step.symbol], [ctx, slots])
        failed = builder.icmp_signed("!=", code, llvm_ir.Constant(I32, 0))
        with builder.if_then(failed, likely=False):
            low = builder.and_(code, llvm_ir.Constant(I32, (1 << CODE_BITS) - 1))
            builder.ret(builder.or_(low, llvm_ir.Constant(I32, (number + 1) << CODE_BITS)))
    builder.ret(llvm_ir.Constant(I32, 0))
    return compile_text(str(module), name, (), target, options)


def _element(builder: llvm_ir.IRBuilder, base: llvm_ir.Value, number: int) -> llvm_ir.Value:
    return builder.gep(base, [llvm_ir.Constant(I64, number)], inbounds=True, source_etype=I64)
