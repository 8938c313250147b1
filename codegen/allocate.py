"""Memory for ``Allocate``: single stack slots that become registers, arrays on the stack, or the heap."""

from __future__ import annotations

from functools import reduce
from typing import Literal

from llvmlite import ir as llvm_ir

from ..base.aligned import ARENA_ALIGNMENT
from ..base.dtype import INDEX
from ..ir.buffer import Buffer
from ..ir.expr import ONE, Binary, Const, Expr, Load, const_int
from ..ir.simplify import simplify
from ..ir.stmt import CallExtern, Launch, Stmt, Store
from ..ir.visit import walk
from .facts import add, as_ramp, flat_index, multiply
from .lanes import external
from .memory import Slots
from .types import I32, I64, PTR, memory_element, memory_type, size_type

STACK_LIMIT = 32 * 1024
"""Larger buffers go to the heap: worker threads have small stacks."""

MAX_SLOTS = 256

Place = Literal["stack", "heap"]


def span(buffer: Buffer) -> Expr:
    """The number of elements from the start of an allocation to its last one; not above 0 if it is empty."""
    if buffer.strides is None:
        return add(buffer.elem_offset, reduce(multiply, buffer.shape, ONE))
    last = buffer.elem_offset
    for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
        last = add(last, multiply(Binary("-", extent, ONE), stride))
    return Binary("+", last, ONE)


def element_count(buffer: Buffer) -> int | None:
    """The number of elements of a buffer of constant size."""
    count = const_int(simplify(span(buffer)))
    return None if count is None else max(0, count)


def place(buffer: Buffer) -> Place:
    """Where the memory of an allocation comes from."""
    count = element_count(buffer)
    small = count is not None and count * buffer.dtype.storage_bytes <= STACK_LIMIT
    return "stack" if buffer.scope != "global" and small else "heap"


def slot_lanes(buffer: Buffer, body: Stmt) -> int | None:
    """The number of elements in each slot if the buffer can live in separate slots: every access has a constant
    position in bounds and covers exactly one slot."""
    lanes: int | None = None
    count = element_count(buffer) or 0
    for node in walk(body):
        if isinstance(node, Launch) and any(isinstance(a, Buffer) and a.data is buffer.data for a in node.args):
            return None
        if isinstance(node, CallExtern) and any(region.buffer.data is buffer.data for region in node.regions):
            return None
        if not isinstance(node, (Load, Store)) or node.buffer.data is not buffer.data:
            continue
        index = flat_index(node.buffer, node.indices)
        ramp = as_ramp(index)
        start, stride = (None, None) if ramp is None else (const_int(ramp[0]), const_int(ramp[1]))
        width = index.dtype.lanes
        inside = start is not None and 0 <= start <= count - width
        aligned = start is not None and inside and start % width == 0 and stride == (1 if width > 1 else 0)
        if not aligned or node.buffer.dtype is not buffer.dtype or lanes not in (None, width):
            return None
        lanes = width
    return lanes


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
        """Slots if possible, else an array."""
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
        release = external(self.builder.module, "free", llvm_ir.VoidType(), [PTR])
        self.builder.call(release, [pointer])

    def fill(self, pointer: llvm_ir.Value, byte: int, size: llvm_ir.Value) -> None:
        """Set ``size`` bytes."""
        memset = external(self.builder.module, "memset", PTR, [PTR, I32, size_type(self.builder.module)])
        self.builder.call(memset, [pointer, llvm_ir.Constant(I32, byte), self._size(size)])

    def _size(self, size: llvm_ir.Value) -> llvm_ir.Value:
        kind = size_type(self.builder.module)
        return size if kind == I64 else self.builder.trunc(size, kind)


def heap_alignment(buffer: Buffer) -> int:
    return max(buffer.alignment, ARENA_ALIGNMENT)


def _span_bytes(buffer: Buffer) -> Expr:
    return Binary("*", Const(buffer.dtype.storage_bytes, INDEX), span(buffer))


def used_bytes(buffer: Buffer) -> Expr:
    """The size of what a buffer reaches over."""
    return Binary("max", _span_bytes(buffer), Const(0, INDEX))


def heap_bytes(buffer: Buffer) -> Expr:
    """The size to ask for: a multiple of the alignment, as C wants it, and not 0."""
    align = heap_alignment(buffer)
    count = _span_bytes(buffer)
    lines = Binary("//", Binary("+", count, Const(align - 1, INDEX)), Const(align, INDEX))
    return Binary("*", Binary("max", lines, Const(1, INDEX)), Const(align, INDEX))
