"""A closed function compiled: lowered, made native code, and put into the cache.

The result is plain data, which goes between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from ...artifact.extents import extent_of
from ...artifact.function import CompiledFunction, TensorSpec
from ...base.dataclass import dataclass
from ...base.errors import InternalError
from ...base.timing import timed
from ...codegen.abi import symbolic_dims
from ...codegen.compile import CompiledCode, EmittedCode, emit_code
from ...codegen.heap_use import heap_use
from ...codegen.llvm_memory import require_before_lowering
from ...graph.node import Function
from ...ir.buffer import Buffer
from ...ir.constants import ONE, ZERO
from ...ir.expr import Expr
from ...ir.expr import Var as Dim
from ...ir.printer import func_text
from ...ir.simplify import simplify
from ...lowering.passes.outline_parallel import outline_parallel
from ...lowering.passes.short_loops import run_short_loops_alone
from ..fusion.closed_function import entry_symbol
from ..settings import CompileSettings
from .function_cache import function_cache
from .lower_function import lower_function
from .op_call import op_call


@dataclass(frozen=True, slots=True)
class EmittedFunction:
    """A closed function as LLVM IR; what it becomes is ``complete``, when LLVM has compiled its code."""

    code: EmittedCode
    settings: CompileSettings
    complete: Callable[[CompiledCode], CompiledFunction]

    def compile(self, key: str) -> CompiledFunction:
        """The function compiled, and put into the cache; ``key`` is its ``function_key``."""
        made = self.complete(self.code.compile())
        if self.settings.options.cache:
            function_cache.put(key, made, self.settings.target)
        return made


def compile_function(key: str, function: Function, settings: CompileSettings) -> CompiledFunction:
    """Lower and compile a closed function made by ``as_function``; ``key`` is its ``function_key``."""
    return emit_function(function, settings).compile(key)


def emit_function(function: Function, settings: CompileSettings) -> EmittedFunction:
    """Lower and emit a closed function made by ``as_function``: all that is done in Python."""
    require_before_lowering()
    nest, choices, work, _ = lower_function(function, settings, entry_symbol(function))
    func = timed(run_short_loops_alone, nest)
    emitted = timed(emit_code, timed(outline_parallel, func), settings.target, replace(settings.options, cache=False))
    dims = _named(function, symbolic_dims(func))
    heap = timed(heap_use, func)
    text = timed(func_text, func)

    def complete(code: CompiledCode) -> CompiledFunction:
        return CompiledFunction(
            function.name,
            code.entry,
            tuple(dims.values()),
            choices,
            code.messages,
            text,
            code.llvm_ir,
            code.object,
            code.externs,
            extent_of(work, dims),
            extent_of(simplify(_traffic(func.buffers)), dims),
            op_call(function, dims),
            tuple(_spec(buffer, dims) for buffer in func.buffers),
            "" if code.source is None else code.source.text,
            extent_of(heap.once, dims),
            extent_of(heap.each, dims),
        )

    return EmittedFunction(emitted, settings, complete)


def _named(function: Function, dims: Sequence[Dim]) -> dict[Dim, str]:
    """What callers say which dimension a number is for. Raises ``InternalError`` where a name would be for two."""
    names = {dim: dim.name for dim in dims}
    if len(set(names.values())) < len(names):
        raise InternalError(f"{function.name} has several dimensions of one name: {', '.join(names.values())}")
    return names


def _spec(buffer: Buffer, names: Mapping[Dim, str]) -> TensorSpec:
    return TensorSpec(buffer.name, tuple(extent_of(extent, names) for extent in buffer.shape), buffer.dtype)


def _traffic(buffers: Sequence[Buffer]) -> Expr:
    """The bytes that buffers hold."""
    total: Expr = ZERO
    for buffer in buffers:
        total = total + prod(buffer.shape, start=ONE) * buffer.dtype.storage_bytes
    return total
