"""Compiles the native function of a branch or a loop."""

from __future__ import annotations

from typing import assert_never

from ...artifact.options import CodegenOptions
from ...base.target import Target
from ..compile import CompiledCode, compile_text
from .branch import emit_branch
from .code import AppendCode, ControlCode, IfCode, LoopCode, ReadCode, SegmentCode
from .frame import FlowArguments, Frame
from .loop import emit_loop
from .segments import emit_append, emit_read, emit_segment


def compile_control(
    symbol: str, code: ControlCode, arguments: FlowArguments, target: Target, options: CodegenOptions
) -> CompiledCode:
    """The function ``i32 symbol(ptr ctx, ptr args)``; its kernels are external symbols. Its messages are those of all
    its kernels, one after the other."""
    frame = Frame(symbol, arguments, target)
    match code:
        case IfCode():
            emit_branch(frame, code)
        case LoopCode():
            emit_loop(frame, code)
        case SegmentCode():
            emit_segment(frame, code)
        case AppendCode():
            emit_append(frame, code)
        case ReadCode():
            emit_read(frame, code)
        case _:
            assert_never(code)
    return compile_text(str(frame.module), symbol, tuple(frame.messages), target, options)
