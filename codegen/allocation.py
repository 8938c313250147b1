"""Where the memory of an ``Allocate`` comes from, and how much it is: registers, the stack or the heap.

What emits code, for LLVM or MLIR, and what reports on it decide by these rules alike.
"""

from __future__ import annotations

from functools import reduce
from typing import Literal

from ..base.aligned import ARENA_ALIGNMENT
from ..base.dtype import INDEX
from ..ir.buffer import Buffer
from ..ir.constants import ONE, const_int
from ..ir.expr import Binary, Const, Expr, Load
from ..ir.simplify import simplify
from ..ir.stmt import CallExtern, Launch, Stmt, Store
from ..ir.visit import walk
from .facts import add, as_ramp, flat_index, multiply

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


def heap_alignment(buffer: Buffer) -> int:
    """The alignment in bytes of a buffer on the heap: its own, but that of the arena at least."""
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
