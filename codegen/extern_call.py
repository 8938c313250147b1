"""Calls of functions of C: the declaration, and each argument as the function wants it; or instructions in their place.

The declared functions stay undefined in the object code; whoever loads or links it says where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir as llvm_ir

from ..ir.expr import Expr
from ..ir.extern import ExternParam, Region
from ..ir.stmt import CallExtern
from .allocate import Allocator
from .expr import ExprEmitter
from .lanes import external
from .tiles import TileEmitter
from .types import I8, memory_type


def emit_extern_call(exprs: ExprEmitter, allocator: Allocator, tiles: TileEmitter, call: CallExtern) -> None:
    """Emit the call at the builder's position; debug builds check before it that its regions are in bounds."""
    if exprs.checks is not None:
        for region in call.regions:
            exprs.checks.region(call.function, region)
    if call.function.tiles is not None:
        tiles.call(call, call.function.tiles)
        return
    params = call.function.params
    values = [_argument(exprs, allocator, a, p) for a, p in zip(call.args, params, strict=True)]
    _call(exprs.builder, call.function.symbol, values)


def _call(builder: llvm_ir.IRBuilder, symbol: str, values: Sequence[llvm_ir.Value]) -> None:
    function = external(builder.module, symbol, llvm_ir.VoidType(), [v.type for v in values])
    builder.call(function, values)


def _argument(exprs: ExprEmitter, allocator: Allocator, arg: Region | Expr, param: ExternParam) -> llvm_ir.Value:
    if isinstance(arg, Region):
        return exprs.memory.address(arg.buffer, arg.begin)
    value = exprs.value(arg)
    if param.passing == "value":
        return value
    slot = allocator.on_stack(memory_type(param.dtype), param.dtype.storage_bytes, "reference")
    exprs.builder.store(exprs.builder.zext(value, I8) if param.dtype.is_bool else value, slot)
    return slot
