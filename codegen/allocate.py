"""Memory for ``Allocate``: single stack slots that become registers, arrays on the stack, or the heap."""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..base.aligned import ARENA_ALIGNMENT
from ..ir.buffer import Buffer
from ..ir.stmt import Stmt
from .allocation import MAX_SLOTS, element_count, heap_alignment, slot_lanes
from .lanes import external
from .memory import Slots
from .types import I32, I64, PTR, memory_element, memory_type, size_type


class Allocator:
    """Emits the allocations of one function; stack memory is taken once, in its entry block.

    ``in_registers`` says whether buffers may live in separate slots, which LLVM makes registers.
    """

    def __init__(self, builder: llvm_ir.IRBuilder, *, in_registers: bool) -> None:
        self.builder = builder
        self._in_registers = in_registers

    def on_stack(self, kind: llvm_ir.Type, align: int, name: str) -> llvm_ir.Value:
        """Memory of the given type in the function's entry block."""
        with self.builder.goto_entry_block():
            slot = self.builder.alloca(kind, name=name)
        slot.align = align
        slot.type = PTR  # llvmlite gives it a typed pointer
        return slot

    def stack_memory(self, buffer: Buffer, body: Stmt) -> llvm_ir.Value | Slots:
        """Memory on the stack for a buffer of constant size: slots that LLVM makes registers if all accesses have
        constant positions, else an array."""
        count = element_count(buffer) or 0
        lanes = slot_lanes(buffer, body) if self._in_registers else None
        if lanes is None or count % lanes or count // lanes > MAX_SLOTS:
            total = max(1, count * buffer.dtype.lanes)
            array = llvm_ir.ArrayType(memory_element(buffer.dtype), total)
            return self.on_stack(array, buffer.alignment, buffer.name)
        kind = buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(lanes)
        align = min(buffer.alignment, ARENA_ALIGNMENT)
        slots = {i: self.on_stack(memory_type(kind), align, f"{buffer.name}.{i}") for i in range(count // lanes)}
        return Slots(lanes, align, slots)

    def heap_memory(self, buffer: Buffer, size: llvm_ir.Value) -> llvm_ir.Value:
        """``size`` bytes for the buffer; a null pointer if there are none left."""
        kind = size_type(self.builder.module)
        alloc = external(self.builder.module, "aligned_alloc", PTR, [kind, kind])
        alloc.return_value.add_attribute("noalias")
        return self.builder.call(alloc, [llvm_ir.Constant(kind, heap_alignment(buffer)), self._size(size)])

    def free(self, pointer: llvm_ir.Value) -> None:
        """Give memory of the heap back, by C's ``free``, which takes a null pointer, too."""
        release = external(self.builder.module, "free", llvm_ir.VoidType(), [PTR])
        self.builder.call(release, [pointer])

    def fill(self, pointer: llvm_ir.Value, byte: int, size: llvm_ir.Value) -> None:
        """Set ``size`` bytes from the pointer on to the value ``byte``, by C's ``memset``."""
        memset = external(self.builder.module, "memset", PTR, [PTR, I32, size_type(self.builder.module)])
        self.builder.call(memset, [pointer, llvm_ir.Constant(I32, byte), self._size(size)])

    def _size(self, size: llvm_ir.Value) -> llvm_ir.Value:
        kind = size_type(self.builder.module)
        return size if kind == I64 else self.builder.trunc(size, kind)
