"""The last vector of a row is stored whole, where only its first lanes are of the row, and the memory is the function's
own: it gets room for the others.

A processor that reads what it stored under a mask a moment before waits until it is in the cache, some twenty cycles;
what it stored whole it has at hand. Rows of softmax whose length is open, which are summed and then divided, end so.
Loads keep their masks, and nobody reads what is behind the end, but for sums, which are then kept in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...ir.buffer import Buffer
from ...ir.constants import ONE, is_const
from ...ir.expr import Broadcast, Compare, Expr, Load, Ramp, Var
from ...ir.facts import Facts
from ...ir.simplify import simplify
from ...ir.stmt import Allocate, CallExtern, For, PrefetchStmt, PrimFunc, Stmt, Store
from ...ir.visit import Node, buffers_accessed, children, rewrite, walk, with_body
from .context import inside_loop


def whole_vectors(func: PrimFunc, facts: Facts) -> PrimFunc:
    """The function with whole vectors of floats stored at the ends of rows; ``facts`` are those at its entry. Integers
    are left as they are: what lanes behind the end compute may be a quotient by 0."""
    rows = _rows(func.body)
    if not rows:
        return func
    ends: dict[Var, list[int | None]] = {}
    for store, known in _stores(func.body, facts):
        if store.buffer in rows:
            ends.setdefault(store.buffer.data, []).append(_lanes_behind(store, known))
    made: dict[Var, Buffer] = {}
    for row in rows:
        lanes = [count for count in ends[row.data] if count is not None]
        if len(lanes) == len(ends[row.data]) and max(lanes) > 0:
            made[row.data] = replace(row, shape=(simplify(row.shape[0] + max(lanes)),))
    return with_body(func, _with_room(func.body, made)) if made else func


def _rows(body: Stmt) -> set[Buffer]:
    """The rows of floats that are allocated, and are nothing but loaded and stored, some of them under a mask."""
    allocated = [node.buffer for node in walk(body) if isinstance(node, Allocate) and _is_row(node.buffer)]
    masked = {node.buffer for node in walk(body) if isinstance(node, Store) and node.mask is not None}
    if masked.isdisjoint(allocated):
        return set()
    accessed: dict[Var, set[Buffer]] = {}
    for buffer in buffers_accessed(body):
        accessed.setdefault(buffer.data, set()).add(buffer)
    passed_on = {region.buffer for node in walk(body) if isinstance(node, CallExtern) for region in node.regions}
    return {b for b in allocated if b in masked and accessed[b.data] == {b} and b not in passed_on}


def _is_row(buffer: Buffer) -> bool:
    compact = buffer.ndim == 1 and buffer.strides is None and is_const(buffer.elem_offset, 0)
    return compact and buffer.dtype.is_float and buffer.dtype.lanes == 1


def _stores(stmt: Stmt, facts: Facts) -> Iterator[tuple[Store, Facts]]:
    """The stores of a statement, in no order, each with what holds where it is."""
    waiting = [(stmt, facts)]
    while waiting:
        inside, known = waiting.pop()
        match inside:
            case Store():
                yield inside, known
            case For(body=body):
                waiting.append((body, inside_loop(known, inside)))
            case _:
                waiting += ((child, known) for child in children(inside) if isinstance(child, Stmt))


def _lanes_behind(store: Store, facts: Facts) -> int | None:
    """How many lanes a store would touch behind the end of its row if it had no mask, at most; None if that is not
    known, since its mask is of another kind, or it may begin behind the end."""
    (index,), extent = store.indices, store.buffer.shape[0]
    match index, store.mask:
        case _, None:
            return 0
        case Ramp(base, step, lanes), Compare("<", Ramp(begin, by, _), Broadcast(end)) if step is by is ONE:
            left = simplify(extent - base - (end - begin), facts)  # of the row, behind what the mask leaves on
            return lanes - 1 if is_const(left, 0) and facts.less(base, extent) else None
    return None


def _with_room(body: Stmt, made: dict[Var, Buffer]) -> Stmt:
    """A statement with these buffers in place of those of the same memory, where stores have no masks."""

    def visit(node: Node) -> Node | None:
        match node:
            case Store(buffer) if buffer.data in made:
                return replace(node, buffer=made[buffer.data], value=_summed_whole(node), mask=None)
            case Load(buffer) | PrefetchStmt(buffer) | Allocate(buffer) if buffer.data in made:
                return replace(node, buffer=made[buffer.data])
        return None

    return rewrite(body, visit)


def _summed_whole(store: Store) -> Expr:
    """The value of a store, in which the vector that it adds to is loaded as a whole as well."""

    def visit(node: Node) -> Node | None:
        if not isinstance(node, Load) or node.buffer.data is not store.buffer.data or node.mask is not store.mask:
            return None
        return replace(node, mask=None) if node.indices[0] is store.indices[0] else None

    return rewrite(store.value, visit)
