"""Turn accesses of N-d buffers into accesses of 1-d views of the same memory.

``C[i, j]`` becomes ``C[i * m + j]``: strides and offset move into the index. Parameters stay N-d, they describe what
the caller passes; memory that the function allocates becomes 1-d.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import gcd

from ...base.dataclass import dataclass
from ...ir.buffer import Buffer
from ...ir.build import buffer_strides
from ...ir.constants import ONE, ZERO, const_int, is_const
from ...ir.expr import Const, Expr, Load, Var
from ...ir.extern import Region
from ...ir.makers import maximum
from ...ir.simplify import simplify
from ...ir.stmt import Allocate, CallExtern, PrefetchStmt, PrimFunc, Store
from ...ir.visit import Node, rewrite, walk, with_body
from .folding import add, multiply, subtract


def flatten_buffers(func: PrimFunc) -> PrimFunc:
    """The function with 1-d accesses only, whose indices are not simplified. A 0-d buffer becomes one of shape (1,)."""
    return with_body(func, rewrite(func.body, _Flattener(_owners(func)).visit))


@dataclass(slots=True, eq=False)
class _Flattener:
    """Keeps the view made of each memory: equal accesses stay equal, through whatever views they were."""

    owners: Mapping[Var, Buffer]
    views: dict[Buffer, Buffer] = field(default_factory=dict)

    def view(self, buffer: Buffer) -> Buffer:
        if buffer not in self.views:
            owner = self.owners.get(buffer.data, buffer)
            own = self.views.setdefault(owner, flat_view(owner))
            self.views[buffer] = own if owner.dtype is buffer.dtype else flat_view(buffer)
        return self.views[buffer]

    def region(self, region: Region) -> Region:
        """The box in flat memory; one along the only dimension stays as it is."""
        flat = self.view(region.buffer)
        if flat is region.buffer:
            return region
        strides = buffer_strides(region.buffer) if region.strides is None else region.strides
        return Region(flat, (_flat_index(region.buffer, region.begin),), region.extents, strides)

    def visit(self, node: Node) -> Node | None:
        match node:
            case Load(buffer, indices, mask) if (flat := self.view(buffer)) is not buffer:
                return Load(flat, (_flat_index(buffer, indices),), mask)
            case Store(buffer, indices, value, mask) if (flat := self.view(buffer)) is not buffer:
                return Store(flat, (_flat_index(buffer, indices),), value, mask, node.origin)
            case PrefetchStmt(buffer, indices, to_write) if (flat := self.view(buffer)) is not buffer:
                return PrefetchStmt(flat, (_flat_index(buffer, indices),), to_write)
            case CallExtern(function, args):
                return CallExtern(function, tuple(self.region(a) if isinstance(a, Region) else a for a in args))
            case Allocate(buffer, body) if (flat := self.view(buffer)) is not buffer:
                return Allocate(flat, body)
            case _:
                return None


def _owners(func: PrimFunc) -> dict[Var, Buffer]:
    """The buffers that describe the memory that there is: parameters, and what is allocated."""
    allocated = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    return {buffer.data: buffer for buffer in (*func.buffers, *allocated)}


def _is_flat(buffer: Buffer) -> bool:
    return buffer.ndim == 1 and is_const(buffer.elem_offset, 0) and buffer.strides is None


def flat_view(buffer: Buffer) -> Buffer:
    """The memory that a buffer reaches over as a 1-d buffer; the buffer itself if it is that."""
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
