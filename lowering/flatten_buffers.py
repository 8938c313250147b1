"""Turn accesses of N-d buffers into accesses of 1-d views of the same memory.

``C[i, j]`` becomes ``C[i * m + j]``: strides and offset move into the index. Parameters stay N-d, they describe what
the caller passes; memory that the function allocates becomes 1-d.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import gcd

from ..ir.buffer import Buffer
from ..ir.build import buffer_strides
from ..ir.expr import ONE, ZERO, Const, Expr, Load, const_int, is_const, maximum
from ..ir.facts import entry_facts
from ..ir.simplify import simplify
from ..ir.stmt import Allocate, PrimFunc, Store
from ..ir.visit import Node, rewrite, with_body
from .folding import add, multiply, subtract


def flatten_buffers(func: PrimFunc) -> PrimFunc:
    """The function with 1-d accesses only. A 0-d buffer becomes one of shape (1,)."""
    return with_body(func, simplify(rewrite(func.body, _Flattener().visit), entry_facts(func)))


@dataclass(slots=True)
class _Flattener:
    """Keeps the view made for each buffer: equal accesses stay equal."""

    views: dict[Buffer, Buffer] = field(default_factory=dict)

    def view(self, buffer: Buffer) -> Buffer:
        if buffer not in self.views:
            self.views[buffer] = _flat_view(buffer)
        return self.views[buffer]

    def visit(self, node: Node) -> Node | None:
        match node:
            case Load(buffer, indices, mask) if (flat := self.view(buffer)) is not buffer:
                return Load(flat, (_flat_index(buffer, indices),), mask)
            case Store(buffer, indices, value, mask) if (flat := self.view(buffer)) is not buffer:
                return Store(flat, (_flat_index(buffer, indices),), value, mask, node.origin)
            case Allocate(buffer, body) if (flat := self.view(buffer)) is not buffer:
                return Allocate(flat, body)
            case _:
                return None


def _is_flat(buffer: Buffer) -> bool:
    return buffer.ndim == 1 and is_const(buffer.elem_offset, 0) and buffer.strides is None


def _flat_view(buffer: Buffer) -> Buffer:
    if _is_flat(buffer):
        return buffer
    return replace(
        buffer,
        shape=(simplify(_span(buffer)),),
        strides=None,
        elem_offset=ZERO,
        alignment=_base_alignment(buffer),
    )


def _flat_index(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    position: Expr = ZERO
    for index, stride in zip(indices, buffer_strides(buffer), strict=True):
        position = add(position, multiply(index, stride))
    return add(position, buffer.elem_offset)


def _span(buffer: Buffer) -> Expr:
    """How many elements of the memory the view reaches over; strides that are not known count as positive."""
    if buffer.strides is None:
        size: Expr = ONE
        for extent in buffer.shape:
            size = multiply(size, extent)
        return add(size, buffer.elem_offset)
    last = buffer.elem_offset
    for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
        if not (isinstance(stride, Const) and int(stride) < 0):
            last = add(last, multiply(subtract(extent, ONE), stride))
    return maximum(add(last, ONE), ZERO)


def _base_alignment(buffer: Buffer) -> int:
    """What is known of the address of element 0 of the memory, from that of element 0 of the view."""
    offset = const_int(buffer.elem_offset)
    size = buffer.dtype.storage_bytes
    return gcd(buffer.alignment, offset * size) if offset is not None else gcd(buffer.alignment, size)
