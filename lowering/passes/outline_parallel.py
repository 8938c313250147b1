"""Move the bodies of parallel loops into functions of their own, which the thread pool runs on chunks of the range.

The last pass: ``for i in parallel(n): …`` becomes ``launch(f_parallel_0, n, [captures])`` and a function
``f_parallel_0(begin, end, captures)`` that runs the iterations from ``begin`` to ``end``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field

from ...base.dataclass import dataclass
from ...ir.buffer import Buffer
from ...ir.build import index_var
from ...ir.contents import bindings_in, statements_of, variables_of
from ...ir.expr import Load, Var
from ...ir.stmt import Allocate, CallExtern, For, IRModule, Launch, PrefetchStmt, PrimFunc, Stmt, StmtNode, Store
from ...ir.visit import Node, memory_written, rewrite, walk, with_body, with_children
from .chunk_rows import in_rows
from .folding import add, subtract


def outline_parallel(func: PrimFunc, *, keep_loops: bool = False) -> IRModule:
    """The function with a ``Launch`` for each outermost parallel loop, and the functions these launch.

    Parallel loops inside another become serial. The functions share variables and buffers with the one they came from.
    ``keep_loops`` passes on the variables of all loops around, for debug builds, which tell their values.
    """
    outliner = _Outliner(func.name, keep_loops)
    body = outliner.outline(func.body)
    return IRModule((with_body(func, body), *outliner.functions))


@dataclass(slots=True, eq=False)
class _Outliner:
    """Mutable: collects the ``functions``, and knows the ``loops`` around the statement at hand, if they are kept."""

    name: str
    keep_loops: bool
    functions: list[PrimFunc] = field(default_factory=list)
    loops: list[Var] = field(default_factory=list)

    def outline(self, node: Stmt) -> Stmt:
        if isinstance(node, For) and node.kind == "parallel":
            return self._launch(node)
        kept = [node.var] if isinstance(node, For) and self.keep_loops else []
        self.loops += kept
        outlined = with_children(node, lambda c: self.outline(c) if isinstance(c, StmtNode) else c)
        del self.loops[len(self.loops) - len(kept) :]
        return outlined

    def _launch(self, loop: For) -> Stmt:
        begin, end = index_var("begin"), index_var("end")
        low, extent, serial = add(begin, loop.min), subtract(end, begin), rewrite(loop.body, _serial)
        inner = dataclasses.replace(loop, min=low, extent=extent, kind="serial", body=serial)
        body = _hoist_allocations(inner) if self.keep_loops else _innermost_in_rows(_hoist_allocations(inner))
        captures = tuple(dict.fromkeys((*_captures(body, {begin, end}), *self.loops)))
        written = memory_written(body)
        outputs = tuple(c for c in captures if isinstance(c, Buffer) and c.data in written)
        name = f"{self.name}_parallel_{len(self.functions)}"
        self.functions.append(PrimFunc(name, (begin, end, *captures), body, outputs))
        return Launch(name, loop.extent, captures)


def _serial(node: Node) -> Node | None:
    return dataclasses.replace(node, kind="serial") if isinstance(node, For) and node.kind == "parallel" else None


def _hoist_allocations(loop: For) -> Stmt:
    """Allocate once a chunk, not once an iteration, what the body allocates at its top."""
    if not isinstance(loop.body, Allocate) or loop.var in _shape_vars(loop.body.buffer):
        return loop
    inner = dataclasses.replace(loop, body=loop.body.body)
    return Allocate(loop.body.buffer, _hoist_allocations(inner))


def _innermost_in_rows(chunk: Stmt) -> Stmt:
    """A chunk's loop in rows, within what is allocated around it."""
    if isinstance(chunk, Allocate):
        return dataclasses.replace(chunk, body=_innermost_in_rows(chunk.body))
    return in_rows(chunk) if isinstance(chunk, For) else chunk


def _captures(body: Stmt, own: set[Var]) -> tuple[Buffer | Var, ...]:
    """What the body needs from outside, in order of first use: one view of each memory, and variables."""
    bound = own | bindings_in(body)
    memory = {stmt.buffer.data for stmt in statements_of(body) if isinstance(stmt, Allocate)}
    buffers: dict[Var, Buffer] = {}
    used: dict[Var, None] = {}
    for node in walk(body):
        if isinstance(node, Var) and node not in bound:
            used[node] = None
        for buffer in _own_buffers(node):
            used.update((v, None) for v in _shape_vars(buffer) if v not in bound)
            if buffer.data not in memory:
                buffers.setdefault(buffer.data, buffer)
    return (*buffers.values(), *used)


def _own_buffers(node: Node) -> tuple[Buffer, ...]:
    match node:
        case Load() | Store() | PrefetchStmt() | Allocate():
            return (node.buffer,)
        case CallExtern():
            return tuple(region.buffer for region in node.regions)
        case _:
            return ()


def _shape_vars(buffer: Buffer) -> dict[Var, None]:
    """The variables that describe a buffer, in order of appearance."""
    return dict.fromkeys(var for part in buffer.layout for var in variables_of(part))
