"""The frame of a native function of control flow while it is emitted: its arguments, and the calls of its bodies.

All that holds for the whole function is computed at its beginning. Each call of a kernel has arguments of its own in
memory, so that an iteration writes only those that change.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir as llvm_ir

from ...artifact.extents import Extent
from ...base.dataclass import dataclass
from ...base.target import Target
from ..entry import element
from ..formulas import FormulaEmitter
from ..machine import data_layout
from ..types import I8, I32, I64, PTR
from .code import BodyCall, BodyCode, BodyMemory, BodyStage
from .segment_table import SegmentTable


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
        addresses = [element(self.builder, args, number) for number in range(arguments.count)]
        self.numbers = [self.builder.load(address, typ=I64) for address in addresses]
        self.pointers = [self.builder.load(address, typ=PTR) for address in addresses]
        self._workspace = arguments.workspace
        self.formulas = FormulaEmitter(self.builder, {name: self.numbers[number] for name, number in arguments.dims})
        self._kernels: dict[str, llvm_ir.Function] = {}

    def value(self, extent: Extent) -> llvm_ir.Value:
        """A formula over the dimensions; at the beginning of the function, where it holds for all that follows."""
        return self.formulas.value(extent)

    @property
    def workspace(self) -> llvm_ir.Value:
        """The address of the workspace, as a number."""
        return self.numbers[self._workspace]

    def in_workspace(self, offset: Extent) -> llvm_ir.Value:
        """An address in the workspace, as a number."""
        return self.builder.add(self.workspace, self.formulas.value(offset))

    def message(self, text: str) -> int:
        """The number of a new message, from 1."""
        self.messages.append(text)
        return len(self.messages)

    def messages_of(self, call: BodyCall) -> int:
        """Enter the messages of a kernel: how many there were before."""
        before = len(self.messages)
        self.messages += call.messages
        return before

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
        builder = frame.builder
        self._bound: dict[int, llvm_ir.Value] = {}
        self._memory: dict[int | None, llvm_ir.Value] = {None: frame.workspace}
        self._first, *self._later = [_Stage(frame, stage) for stage in code.stages]
        self._calls = [call for stage in (self._first, *self._later) for call in stage.calls]
        for call in self._calls:
            call.arguments = builder.alloca(I64, max(1, len(call.code.operands)))
        self._checks = [(frame.value(checked), number) for checked, number in self._first.checks]
        self._fill(self._first.code, frame.formulas)

    def bind(self, slots: Sequence[int], values: Sequence[llvm_ir.Value]) -> None:
        """Have the calls that follow find these values in the slots: addresses as numbers, and extents."""
        builder = self._frame.builder
        for slot, value in zip(slots, values, strict=True):
            self._bound[slot] = value
            for call in self._calls:
                for position in (k for k, operand in enumerate(call.code.operands) if operand == slot):
                    builder.store(value, element(builder, call.arguments, position))

    def run(self) -> None:
        """Check the extents, and call the kernels in order; where one fails, the function returns the number of its
        message."""
        for value, number in self._checks:
            self._refuse_if("<", value, llvm_ir.Constant(I64, 0), number)
        self._call(self._first)
        formulas = self._frame.formulas.copy()
        for number, stage in enumerate(self._later, 1):
            self._begin(stage, number, formulas)
            self._call(stage)

    def _fill(self, stage: BodyStage, formulas: FormulaEmitter) -> None:
        """Fill the slots of a stage."""
        for slot, body in stage.places.items():
            offset = formulas.value(body.offset)
            self.bind([slot], [self._frame.builder.add(self._memory[body.stage], offset)])
        for slot, extent in stage.extents.items():
            self.bind([slot], [formulas.value(extent)])

    def _begin(self, stage: _Stage, number: int, formulas: FormulaEmitter) -> None:
        """Read what becomes dimensions now, check that, have memory for what nothing bounds, and fill the slots that
        follow from it."""
        builder, zero = self._frame.builder, llvm_ir.Constant(I64, 0)
        messages = iter(stage.births)
        for birth in stage.code.births:
            address = builder.inttoptr(self._bound[birth.values], PTR)
            for axis, (name, most, _) in enumerate(birth.dims):
                found, message = builder.load(element(builder, address, axis), typ=I64), next(messages)
                self._refuse_if("<", found, zero, message)
                self._refuse_if(">", found, formulas.value(most), message)
                formulas.name(name, found)
        for checked, message in stage.checks:
            self._refuse_if("<", formulas.value(checked), zero, message)
        if stage.code.memory is not None:
            self._memory[number] = self._segment(stage.code.memory, formulas)
        self._fill(stage.code, formulas)

    def _segment(self, memory: BodyMemory, formulas: FormulaEmitter) -> llvm_ir.Value:
        """The address of the segment of a stage, as a number, with memory for all of its values."""
        builder = self._frame.builder
        number, size = llvm_ir.Constant(I64, memory.segment), formulas.value(memory.size)
        table = SegmentTable(builder, self._frame.context)
        table.reserve(number, size, llvm_ir.Constant(I64, 0), formulas.wrong)
        return builder.ptrtoint(table.begin(number), I64)

    def _refuse_if(self, op: str, value: llvm_ir.Value, other: llvm_ir.Value, number: int) -> None:
        builder = self._frame.builder
        with builder.if_then(builder.icmp_signed(op, value, other), likely=False):
            builder.ret(llvm_ir.Constant(I32, number))

    def _call(self, stage: _Stage) -> None:
        builder = self._frame.builder
        for call in stage.calls:
            code = builder.call(self._frame.kernel(call.code.symbol), [self._frame.context, call.arguments])
            failed = builder.icmp_signed("!=", code, llvm_ir.Constant(I32, 0))
            with builder.if_then(failed, likely=False):
                builder.ret(self._message(call, code))

    def _message(self, call: _Call, code: llvm_ir.Value) -> llvm_ir.Value:
        """What the function returns for what a kernel returned: messages are numbered from 1, and what is negative is
        no message."""
        builder = self._frame.builder
        if call.code.foreign:
            return llvm_ir.Constant(I32, call.first_message + 1)
        is_message = builder.icmp_signed(">", code, llvm_ir.Constant(I32, 0))
        return builder.select(is_message, builder.add(code, llvm_ir.Constant(I32, call.first_message)), code)


class _Call:
    """A call of a kernel, its arguments in memory, and how many messages come before its own."""

    def __init__(self, code: BodyCall, first_message: int) -> None:
        self.code, self.first_message = code, first_message
        self.arguments: llvm_ir.Value = None


class _Stage:
    """A stage, with the numbers of its messages: of what is born, and of its checks."""

    def __init__(self, frame: Frame, code: BodyStage) -> None:
        self.code = code
        self.births = [frame.message(text) for birth in code.births for _, _, text in birth.dims]
        self.checks = [(checked, frame.message(text)) for checked, text in code.checks]
        self.calls = [_Call(call, frame.messages_of(call)) for call in code.calls]
