"""Parallel loops with too little to do become serial: handing work to other threads would take longer than doing it.

Kernels of graphs go through here after the pipeline: the schedules of operators make loops parallel whatever the shapes
are, also those of operators that a user adds. A schedule that is built alone keeps its parallel loops.
"""

from __future__ import annotations

import dataclasses
import math

from ...ir.constants import const_int
from ...ir.contents import accesses_in, nodes_of, statements_of
from ...ir.expr import Call, Var
from ...ir.stmt import Allocate, Assert, Evaluate, For, If, LetStmt, PrefetchStmt, PrimFunc, Seq, Stmt, Store
from ...ir.visit import Node, rewrite, with_body

LEAST_CYCLES = 12 << 10
"""A loop that takes fewer, 4 or 5 µs, is slower on two threads than on one."""
CYCLES_A_STORE = 0.5
"""Of a vector, computed by an operation or two; sums in registers count too."""
CYCLES_A_CALL = 8.0
"""Of a function such as ``exp``, of one vector."""
VECTOR_BYTES = 64
"""What one store writes, or one function computes, at most."""
BYTES_A_CYCLE = 16
"""What comes from the second cache, or goes there: each thread finds in the first what it used last at most."""


def run_short_loops_alone(func: PrimFunc) -> PrimFunc:
    """The function, with those of its parallel loops that are known to be short as serial ones."""

    def visit(node: Node) -> Node | None:
        if isinstance(node, For) and node.kind == "parallel" and _cycles(node) + _traffic(node) < LEAST_CYCLES:
            return dataclasses.replace(node, kind="serial")
        return None

    return with_body(func, rewrite(func.body, visit))


def _cycles(stmt: Stmt) -> float:
    """How long it takes to compute, roughly; infinitely where that depends on what only a run knows."""
    match stmt:
        case For(extent=extent, body=body):
            trips = const_int(extent)
            return math.inf if trips is None else max(0, trips) * _cycles(body)
        case If(then=then, orelse=orelse):
            return max(_cycles(then), 0.0 if orelse is None else _cycles(orelse))
        case Seq(stmts):
            return sum(map(_cycles, stmts))
        case Allocate(body=body) | LetStmt(body=body):
            return _cycles(body)
        case Store(value=value):
            calls = sum(_vectors(call.dtype.storage_bytes) for call in nodes_of(value, Call))
            return _vectors(value.dtype.storage_bytes) * CYCLES_A_STORE + calls * CYCLES_A_CALL
        case Assert() | Evaluate() | PrefetchStmt():
            return CYCLES_A_STORE
        case _:  # a loop that ends by a condition, or code of somebody else
            return math.inf


def _vectors(size: int) -> int:
    return math.ceil(size / VECTOR_BYTES)


def _traffic(loop: For) -> float:
    """Cycles to read or write once the memory that a loop uses, but for what it allocates itself."""
    own = {stmt.buffer.data for stmt in statements_of(loop) if isinstance(stmt, Allocate)}
    sizes: dict[Var, float] = {}
    for buffer in dict.fromkeys(access.buffer for access in accesses_in(loop)):
        if buffer.data not in own:
            extents = [math.inf if (n := const_int(extent)) is None else n for extent in buffer.shape]
            sizes[buffer.data] = math.prod(extents) * buffer.dtype.storage_bytes
    return sum(sizes.values()) / BYTES_A_CYCLE
