"""A branch: the kernels of one of two bodies."""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..types import I32
from .code import IfCode
from .frame import Body, Frame


def emit_branch(frame: Frame, code: IfCode) -> None:
    """Emit the function of an If: its two bodies are bound to the same operands and results, and the condition's byte
    decides which one runs."""
    builder = frame.builder
    bodies = []
    for each in code.bodies:
        body = Body(frame, each)
        body.bind(each.params, [frame.numbers[number] for number in code.operands])
        body.bind(each.results, [frame.numbers[number] for number in code.results])
        bodies.append(body)
    then, otherwise = bodies
    with builder.if_else(frame.is_true(frame.pointers[code.condition])) as (holds, fails):
        with holds:
            then.run()
        with fails:
            otherwise.run()
    builder.ret(llvm_ir.Constant(I32, 0))
