"""A function of an export while it is emitted: its arguments, statuses, and what it finds in a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir as llvm_ir

from ..lanes import external
from ..types import I8, I32, I64, PTR
from .interface import Status

ENTRY = "lw.entry"
"""The entry of a model or kernel, before it gets its last name."""
CONTEXT = llvm_ir.LiteralStructType([I64, PTR, I64, PTR, PTR, I64, I64])
"""As in ``runtime/exports/export_context.ll``."""


class Messages:
    """Texts by number, from 1, each once. Mutable."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, a new one if it has none yet."""
        return self.texts.setdefault(text, len(self.texts) + 1)


class FunctionBody:
    """A function that returns a status, while it is emitted. Mutable."""

    def __init__(self, module: llvm_ir.Module, name: str, parameters: Sequence[llvm_ir.Type]) -> None:
        self.function = llvm_ir.Function(module, llvm_ir.FunctionType(I32, parameters), name)
        self.builder = llvm_ir.IRBuilder(self.function.append_basic_block("entry"))

    @property
    def arguments(self) -> Sequence[llvm_ir.Value]:
        """What the function is given."""
        return list(self.function.args)

    def leave_if(self, condition: llvm_ir.Value, code: int | llvm_ir.Value) -> None:
        """Return a status where a condition holds."""
        with self.builder.if_then(condition, likely=False):
            self.builder.ret(llvm_ir.Constant(I32, code) if isinstance(code, int) else code)

    def refuse_null(self, pointers: Sequence[llvm_ir.Value]) -> None:
        """Return that an argument is bad where one of these addresses is null."""
        for pointer in pointers:
            self.leave_if(self.builder.icmp_unsigned("==", pointer, llvm_ir.Constant(PTR, None)), Status.BAD_ARGUMENT)

    def function_named(self, name: str, result: llvm_ir.Type, kinds: Sequence[llvm_ir.Type]) -> llvm_ir.Value:
        """A function of another part of the export."""
        return external(self.builder.module, name, result, list(kinds))

    def call(self, name: str, arguments: Sequence[llvm_ir.Value], result: llvm_ir.Type = I32) -> llvm_ir.Value:
        """The result of a call of a function of another part of the export, or of this one."""
        return self.builder.call(self.function_named(name, result, [a.type for a in arguments]), arguments)

    def slots(self, values: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
        """An argument slot for each value: see ``abi``."""
        memory = self.builder.alloca(I64, max(1, len(values)), name="slots")
        for number, value in enumerate(values):
            self.builder.store(value, self.word(memory, number))
        return memory

    def word(self, words: llvm_ir.Value, number: int) -> llvm_ir.Value:
        """The address of an 8-byte word."""
        where = self.builder.gep(words, [llvm_ir.Constant(I64, number)], inbounds=True, source_etype=I64)
        where.type = PTR
        return where

    def field(self, context: llvm_ir.Value, number: int) -> llvm_ir.Value:
        """The address of a field of the context."""
        indices = [llvm_ir.Constant(I32, 0), llvm_ir.Constant(I32, number)]
        return self.builder.gep(context, indices, inbounds=True, source_etype=CONTEXT)

    def at(self, base: llvm_ir.Value, offset: llvm_ir.Value) -> llvm_ir.Value:
        """The address of a byte so far behind another."""
        return self.builder.gep(base, [offset], inbounds=True, source_etype=I8)

    def finish(self, code: llvm_ir.Value, meanings: Mapping[int, int]) -> None:
        """Return 0 for 0, what ``meanings`` has for other codes, and that memory is missing for the rest."""
        builder = self.builder
        lost = self.function.append_basic_block("no_memory")
        choice = builder.switch(code, lost)
        for raw, meaning in {0: int(Status.OK), **meanings}.items():
            block = self.function.append_basic_block()
            choice.add_case(llvm_ir.Constant(I32, raw), block)
            builder.position_at_end(block)
            builder.ret(llvm_ir.Constant(I32, meaning))
        builder.position_at_end(lost)
        builder.ret(llvm_ir.Constant(I32, Status.NO_MEMORY))
