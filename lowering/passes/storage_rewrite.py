"""Place memory: allocate it outside of serial loops, once for buffers that are not in use together, on stack or heap.

Allocations move to the top of the function, of the variant of it that a condition chooses, or of the body of the
parallel loop around them, whose iterations need memory of their own. ``liveness.py`` tells what is in use when. Memory
of scope ``global`` stays on the heap, registers stay where they are.
"""

from __future__ import annotations

from dataclasses import field, replace

from ...base.aligned import ARENA_ALIGNMENT
from ...base.dataclass import dataclass
from ...base.dtype import INDEX
from ...ir.buffer import Buffer
from ...ir.constants import ZERO, const, const_int, is_const
from ...ir.contents import bindings_in, free_vars, variables_of
from ...ir.expr import Expr, Load, Var
from ...ir.facts import nonnegative
from ...ir.makers import maximum
from ...ir.simplify import simplify
from ...ir.stmt import Allocate, CallExtern, For, If, PrefetchStmt, PrimFunc, Stmt, StmtNode, Store
from ...ir.visit import Node, rewrite, walk, with_body, with_children, with_views
from .liveness import LiveRange, live_ranges

_FEW_BYTES = 256
_REGISTER_BYTES = 1024


def storage_rewrite(func: PrimFunc, *, max_local_bytes: int = 16 * 1024) -> PrimFunc:
    """The function with allocations hoisted and shared; local ones of at most ``max_local_bytes`` are on the stack."""
    return with_body(func, _rewrite_variants(func.body, max_local_bytes))


def _rewrite_variants(body: Stmt, max_local_bytes: int) -> Stmt:
    """The function's body; where it is one of several variants, each has the memory that it needs itself."""
    if not isinstance(body, If):
        return _rewrite_region(body, max_local_bytes)
    others = None if body.orelse is None else _rewrite_variants(body.orelse, max_local_bytes)
    return replace(body, then=_rewrite_variants(body.then, max_local_bytes), orelse=others)


def _rewrite_region(body: Stmt, max_local_bytes: int) -> Stmt:
    """The function's body, or that of a parallel loop."""
    region = _Region(frozenset(bindings_in(body)), max_local_bytes)
    stripped = region.strip(body)
    if not region.hoisted:
        return stripped
    slots = _assign(region.hoisted, live_ranges(body), max_local_bytes, _varying(body))
    result = _replace_views(stripped, {b.data: slot for slot in slots for b in slot.members})
    for slot in reversed(slots):
        result = Allocate(slot.buffer, result)
    return result


@dataclass(slots=True, eq=False)
class _Region:
    """Takes the allocations out of a region, those left out whose size depends on what is ``bound`` inside."""

    bound: frozenset[Var]
    max_local_bytes: int
    hoisted: list[Buffer] = field(default_factory=list)

    def strip(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Allocate) and stmt.buffer.scope in ("global", "local") and not self._depends(stmt.buffer):
            self.hoisted.append(stmt.buffer)
            return self.strip(stmt.body)
        if isinstance(stmt, For) and stmt.kind == "parallel":
            body = _rewrite_region(stmt.body, self.max_local_bytes)
            return stmt if body is stmt.body else replace(stmt, body=body)
        return with_children(stmt, lambda child: self.strip(child) if isinstance(child, StmtNode) else child)

    def _depends(self, buffer: Buffer) -> bool:
        return not all(self.bound.isdisjoint(variables_of(part)) for part in buffer.layout)


@dataclass(slots=True, eq=False)
class _Slot:
    """Memory for one or more buffers. Mutable while buffers are assigned: grows, and is in use until ``end``."""

    members: list[Buffer]
    size: int | None
    end: int
    max_local_bytes: int
    varying: frozenset[Var]

    def holds_like(self, buffer: Buffer, size: int | None) -> bool:
        """Whether a buffer may join the members, if it fits."""
        first = self.members[0]
        few = self._is_few(buffer, size) or self._is_few(first, self.size)
        return first.dtype is buffer.dtype and first.scope == buffer.scope and not few

    def _is_few(self, buffer: Buffer, size: int | None) -> bool:
        """Whether so few elements are local that LLVM may keep them in registers, if no others lie in their memory,
        which it would take apart where any of them ends: more of them where it is known which ones are accessed."""
        most = _FEW_BYTES if buffer.data in self.varying else _REGISTER_BYTES
        return buffer.scope == "local" and size is not None and size * buffer.dtype.storage_bytes <= most

    @property
    def buffer(self) -> Buffer:
        first = self.members[0]
        size = None if self.size is None else self.size * first.dtype.storage_bytes
        if len(self.members) == 1 or self.size is None:
            shape = tuple(map(_of_any_run, first.shape))
        else:
            shape = (const(self.size, INDEX),)
        return replace(
            first,
            shape=shape,
            alignment=max(ARENA_ALIGNMENT, *(b.alignment for b in self.members)),
            scope="local" if first.scope == "local" and size is not None and size <= self.max_local_bytes else "global",
        )


def _of_any_run(extent: Expr) -> Expr:
    """An extent where it was taken out of loops that may not run: what it is simplified by need not hold there, so that
    it could be negative."""
    if const_int(extent) is not None:
        return extent
    return simplify(maximum(extent, ZERO), nonnegative(free_vars(extent)))


def _assign(
    buffers: list[Buffer], spans: dict[Var, LiveRange], max_local_bytes: int, varying: frozenset[Var]
) -> list[_Slot]:
    """Linear scan over the spans: a buffer takes the memory of one that is no longer in use, if there is one that fits.

    What is never accessed gets no memory.
    """
    slots: list[_Slot] = []
    for buffer in sorted((b for b in buffers if b.data in spans), key=lambda b: spans[b.data].start):
        span, size = spans[buffer.data], _flat_size(buffer)
        free = [s for s in slots if s.end < span.start and s.size is not None and s.holds_like(buffer, size)]
        if size is None or not free:
            slots.append(_Slot([buffer], size, span.end, max_local_bytes, varying))
            continue
        slot = _best_fit(free, size)
        slot.members.append(buffer)
        slot.size = max(slot.size or 0, size)
        slot.end = span.end
    return slots


def _varying(body: Stmt) -> frozenset[Var]:
    """The memory of which only a run tells the elements that are accessed."""
    found: set[Var] = set()
    for node in walk(body):
        match node:
            case Load(buffer, indices) | Store(buffer, indices):
                if any(variables_of(index) for index in indices):
                    found.add(buffer.data)
            case CallExtern():
                found.update(region.buffer.data for region in node.regions)
    return frozenset(found)


def _best_fit(free: list[_Slot], size: int) -> _Slot:
    """The smallest that is large enough, else the largest, which has to grow least."""
    fitting = [s for s in free if (s.size or 0) >= size]
    return min(fitting, key=lambda s: s.size or 0) if fitting else max(free, key=lambda s: s.size or 0)


def _flat_size(buffer: Buffer) -> int | None:
    """The number of elements of a 1-d buffer, if it is constant."""
    compact = buffer.ndim == 1 and buffer.strides is None and is_const(buffer.elem_offset, 0)
    return const_int(buffer.shape[0]) if compact else None


def _replace_views(body: Stmt, slots: dict[Var, _Slot]) -> Stmt:
    memory = {data: slot.buffer for data, slot in slots.items()}
    views: dict[Buffer, Buffer] = {}

    def view(buffer: Buffer) -> Buffer:
        if buffer not in views:
            new = memory[buffer.data]
            views[buffer] = replace(buffer, data=new.data, alignment=new.alignment, scope=new.scope)
        return views[buffer]

    def visit(node: Node) -> Expr | Stmt | None:
        match node:
            case Load(buffer, indices, mask) if buffer.data in memory:
                return Load(view(buffer), indices, mask)
            case Store(buffer) if buffer.data in memory:
                return replace(node, buffer=view(buffer))
            case PrefetchStmt(buffer, indices, to_write) if buffer.data in memory:
                return PrefetchStmt(view(buffer), indices, to_write)
            case CallExtern():
                return with_views(node, lambda buffer: view(buffer) if buffer.data in memory else buffer)
            case _:
                return None

    return rewrite(body, visit)
