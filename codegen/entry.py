"""The native entry point of a model: one function that calls all kernels in order.

``i32 name(ptr ctx, ptr args)``: ``args`` is the frame of a run (``artifact/block.py``), an 8-byte slot for the address
of each value, whatever it is, and one for each symbolic dimension. Of a model of one stage the caller fills it, so that
one entry serves any plan of memory. Of several, each stage fills in what it knows first (``stage_entry.py``).

The result is 0, or ``(number + 1) << 16`` with a code (as 16 bits) in the lower half: of a step, by its number among
all, that of the kernel; of a stage, whose numbers follow those of the steps, that of what it refuses
(``artifact/stage_refusals.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from llvmlite import ir as llvm_ir

from ..artifact.block import FrameLayout, ModelStep, RunBlock
from ..artifact.options import CodegenOptions
from ..base.target import Target
from .abi import CODE_BITS
from .compile import CompiledCode, compile_text
from .machine import data_layout
from .stage_entry import StageEmitter
from .types import I32, I64, PTR


def compile_entry(
    name: str, body: RunBlock, layout: FrameLayout, target: Target, options: CodegenOptions
) -> CompiledCode:
    """The code of a model's entry; the kernels are external symbols of it."""
    module = llvm_ir.Module(name, context=llvm_ir.Context())
    module.triple = target.triple
    module.data_layout = data_layout(target)
    _Entry(module, name, body, layout).emit()
    return compile_entry_text(str(module), name, target, options)


def compile_entry_text(text: str, name: str, target: Target, options: CodegenOptions) -> CompiledCode:
    """The code of an entry that was emitted before. It is not optimized: it has no loops, each kernel that it calls
    takes far longer than it, and LLVM then compiles it in a tenth of the time, sooner than the cache finds it."""
    return compile_text(text, name, (), target, replace(options, opt_level=0, cache=False))


class _Entry:
    """Emits the entry of a block. Mutable."""

    def __init__(self, module: llvm_ir.Module, name: str, body: RunBlock, layout: FrameLayout) -> None:
        kind = llvm_ir.FunctionType(I32, [PTR, PTR])
        self._body, self._layout = body, layout
        steps = tuple(body.steps())
        symbols = dict.fromkeys(step.symbol for step in steps)
        self._kernels: Mapping[str, llvm_ir.Function] = {s: llvm_ir.Function(module, kind, s) for s in symbols}
        entry = llvm_ir.Function(module, kind, name)
        entry.attributes.add("nounwind")
        self._context, self._frame = entry.args
        self._context.name, self._frame.name = "ctx", "args"
        self._builder = llvm_ir.IRBuilder(entry.append_basic_block("entry"))
        count = max((len(step.operands) for step in steps), default=1)
        self._slots = self._builder.alloca(I64, count, name="slots")
        self._number = 0
        self._steps = len(steps)

    def emit(self) -> None:
        """The stages in order, and 0 behind them."""
        stages = self._body.stages
        emitter = StageEmitter(self._builder, self._frame, self._layout, len(stages)) if self._layout.staged else None
        for number, stage in enumerate(stages):
            if emitter is not None:
                emitter.begin(stage, number, (self._steps + number + 1) << CODE_BITS)
            for step in stage.steps:
                self._call(step)
        self._builder.ret(llvm_ir.Constant(I32, 0))

    def _call(self, step: ModelStep) -> None:
        builder = self._builder
        for k, slot in enumerate(step.operands):
            builder.store(builder.load(element(builder, self._frame, slot), typ=I64), element(builder, self._slots, k))
        code = builder.call(self._kernels[step.symbol], [self._context, self._slots])
        failed = builder.icmp_signed("!=", code, llvm_ir.Constant(I32, 0))
        with builder.if_then(failed, likely=False):
            low = builder.and_(code, llvm_ir.Constant(I32, (1 << CODE_BITS) - 1))
            builder.ret(builder.or_(low, llvm_ir.Constant(I32, (self._number + 1) << CODE_BITS)))
        self._number += 1


def element(builder: llvm_ir.IRBuilder, base: llvm_ir.Value, number: int) -> llvm_ir.Value:
    """The address of an 8-byte slot."""
    return builder.gep(base, [llvm_ir.Constant(I64, number)], inbounds=True, source_etype=I64)
