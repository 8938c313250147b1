"""The frame of a native function of control flow while it is emitted: its arguments, and the calls of its bodies.

All that holds for the whole function is computed at its beginning. Each call of a kernel has arguments of its own in
memory, so that an iteration writes only those that change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir as llvm_ir

from ...artifact.extents import Extent
from ...base.target import Target
from ..entry import element
from ..formulas import FormulaEmitter
from ..machine import data_layout
from ..types import I8, I32, I64, PTR
from .code import BodyCall, BodyCode


@dataclass(frozen=True, slots=True)
class FlowArguments:
    """The arguments of a function: how many there are, which one is the workspace, and which ones hold dimensions, by
    their names."""

    count: int
    workspace: int
    dims: tuple[tuple[str, int], ...]


class Frame:
    """A function, whose ``builder`` stands at its beginning at first. Mutable: grows as code is emitted."""

    def __init__(self, symbol: str, arguments: FlowArguments, target: Target) -> None:
        self.module = llvm_ir.Module(symbol, context=llvm_ir.Context())
        self.module.triple = target.triple
        self.module.data_layout = data_layout(target)
        self.messages: list[str] = []
        self.function = llvm_ir.Function(self.module, llvm_ir.FunctionType(I32, [PTR, PTR]), symbol)
        self.function.attributes.add("nounwind")
        self.context, args = self.function.args
        self.builder = llvm_ir.IRBuilder(self.function.append_basic_block("entry"))
        places = [element(self.builder, args, number) for number in range(arguments.count)]
        self.numbers = [self.builder.load(place, typ=I64) for place in places]
        self.pointers = [self.builder.load(place, typ=PTR) for place in places]
        self._workspace = arguments.workspace
        self._formulas = FormulaEmitter(self.builder, {name: self.numbers[number] for name, number in arguments.dims})
        self._kernels: dict[str, llvm_ir.Function] = {}

    def value(self, extent: Extent) -> llvm_ir.Value:
        """A formula over the dimensions; at the beginning of the function, where it holds for all that follows."""
        return self._formulas.value(extent)

    def in_workspace(self, offset: Extent) -> llvm_ir.Value:
        """An address in the workspace, as a number."""
        return self.builder.add(self.numbers[self._workspace], self.value(offset))

    def workspace_pointer(self, offset: int) -> llvm_ir.Value:
        """An address in the workspace."""
        base = self.pointers[self._workspace]
        return self.builder.gep(base, [llvm_ir.Constant(I64, offset)], inbounds=True, source_etype=I8)

    def is_true(self, address: llvm_ir.Value) -> llvm_ir.Value:
        """Whether the bool at an address is true."""
        return self.builder.icmp_unsigned("!=", self.builder.load(address, typ=I8), llvm_ir.Constant(I8, 0))

    def kernel(self, symbol: str) -> llvm_ir.Function:
        """The declaration of a kernel."""
        if symbol not in self._kernels:
            kind = llvm_ir.FunctionType(I32, [PTR, PTR])
            self._kernels[symbol] = llvm_ir.Function(self.module, kind, symbol)
        return self._kernels[symbol]


class Body:
    """A body within a function: made at the beginning of that, then bound and run anywhere."""

    def __init__(self, frame: Frame, code: BodyCode) -> None:
        self._frame = frame
        self._calls = code.calls
        builder = frame.builder
        self._arguments = [builder.alloca(I64, max(1, len(call.operands))) for call in code.calls]
        self._checks: list[tuple[llvm_ir.Value, int]] = []
        for checked, message in code.checks:
            frame.messages.append(message)
            self._checks.append((frame.value(checked), len(frame.messages)))
        self._first_message = []
        for call in code.calls:
            self._first_message.append(len(frame.messages))
            frame.messages += call.messages
        for slot, offset in code.offsets.items():
            self.bind([slot], [frame.in_workspace(offset)])
        for slot, extent in code.extents.items():
            self.bind([slot], [frame.value(extent)])

    def bind(self, slots: Sequence[int], values: Sequence[llvm_ir.Value]) -> None:
        """Have the calls that follow find these values in the slots: addresses as numbers, and extents."""
        builder = self._frame.builder
        for slot, value in zip(slots, values, strict=True):
            for call, arguments in zip(self._calls, self._arguments, strict=True):
                for place in (k for k, operand in enumerate(call.operands) if operand == slot):
                    builder.store(value, element(builder, arguments, place))

    def run(self) -> None:
        """Check the extents, and call the kernels in order; where one fails, the function returns the number of its
        message."""
        builder = self._frame.builder
        for value, number in self._checks:
            negative = builder.icmp_signed("<", value, llvm_ir.Constant(I64, 0))
            with builder.if_then(negative, likely=False):
                builder.ret(llvm_ir.Constant(I32, number))
        for call, arguments, first in zip(self._calls, self._arguments, self._first_message, strict=True):
            code = builder.call(self._frame.kernel(call.symbol), [self._frame.context, arguments])
            failed = builder.icmp_signed("!=", code, llvm_ir.Constant(I32, 0))
            with builder.if_then(failed, likely=False):
                builder.ret(self._message(call, code, first))

    def _message(self, call: BodyCall, code: llvm_ir.Value, first: int) -> llvm_ir.Value:
        """What the function returns for what a kernel returned: messages are numbered from 1, and what is negative is
        no message."""
        builder = self._frame.builder
        if call.foreign:
            return llvm_ir.Constant(I32, first + 1)
        is_message = builder.icmp_signed(">", code, llvm_ir.Constant(I32, 0))
        return builder.select(is_message, builder.add(code, llvm_ir.Constant(I32, first)), code)
