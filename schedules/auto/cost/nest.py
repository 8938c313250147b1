"""A lowered function as a tree of loops, with how often each runs: what the parts of the cost look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from ....base.dataclass import dataclass
from ....ir.buffer import Buffer
from ....ir.constants import const_int
from ....ir.contents import free_vars
from ....ir.expr import Expr, Load, Var
from ....ir.open_extents import IN_COSTS, LONG
from ....ir.stmt import Allocate, Assert, For, If, LetStmt, PrimFunc, Seq, Stmt, Store, While
from ....ir.visit import walk
from .digits import DIGIT, split_digits
from .samples import POINTS, Numbers, Points, evaluate, spread

UNKNOWN_CHANCE = 0.5
"""Of a condition that memory decides."""


@dataclass(slots=True, eq=False)
class LoopNode:
    """A loop, or the body of the function, whose ``var`` is None. Mutable while the tree is made.

    It is entered ``entries`` times in all, and its body runs ``iterations`` times. ``parts`` are the statements
    directly in the body, each with how often it runs; ``inner`` are the loops there. ``written`` is the memory that is
    stored to in it, ``registers`` are the vectors that stay in registers while it runs. ``tasks`` is the number of
    iterations of a parallel loop that this one is in, or is, 1 outside of these; a loop that is one, or a part of it,
    ``is_parallel``, and the outermost ``launches`` the threads.
    """

    var: Var | None
    outer: LoopNode | None
    entries: float
    iterations: float
    tasks: float = 1.0
    is_parallel: bool = False
    launches: bool = False
    parts: list[tuple[Stmt, float]] = field(default_factory=list)
    inner: list[LoopNode] = field(default_factory=list)
    written: set[Var] = field(default_factory=set)
    registers: dict[Var, Buffer] = field(default_factory=dict)

    @property
    def trips(self) -> float:
        """Iterations each time it is entered."""
        return self.iterations / self.entries if self.entries else 0.0

    def around(self) -> Iterator[LoopNode]:
        """This loop and those around it, innermost first."""
        node: LoopNode | None = self
        while node is not None:
            yield node
            node = node.outer

    def all_inside(self) -> Iterator[LoopNode]:
        """This loop and those inside."""
        yield self
        for loop in self.inner:
            yield from loop.all_inside()


def loop_tree(func: PrimFunc) -> LoopNode:
    """The tree of a function. Open dimensions are taken to be long; what memory decides is guessed."""
    root = LoopNode(None, None, 1.0, 1.0)
    dimensions = {v: np.full(POINTS, float(LONG)) for b in func.buffers for e in b.layout for v in free_vars(e)}
    _Builder().add(root, split_digits(func.body), dimensions, np.ones(POINTS))
    return root


class _Builder:
    """Puts statements into a tree. Mutable: it numbers loops as they come up."""

    def __init__(self) -> None:
        self._loops = 0

    def add(self, node: LoopNode, stmt: Stmt, points: Points, runs: Numbers) -> None:
        """Add a statement to the body of a loop; ``runs`` is how often the point stands for a run of it."""
        match stmt:
            case Seq(stmts):
                for each in stmts:
                    self.add(node, each, points, runs)
            case For():
                self._add_loop(node, stmt, points, runs)
            case If(condition, then, orelse):
                chance = evaluate(condition, points)
                holds = np.full(POINTS, UNKNOWN_CHANCE) if chance is None else (chance != 0).astype(np.float64)
                node.parts.append((stmt, float(runs.mean())))
                self.add(node, then, points, runs * holds)
                if orelse is not None:
                    self.add(node, orelse, points, runs * (1.0 - holds))
            case Allocate(buffer, body):
                if buffer.scope == "register":
                    node.registers[buffer.data] = buffer
                self.add(node, body, points, runs)
            case LetStmt(var, value, body):
                node.parts.append((stmt, float(runs.mean())))
                known = evaluate(value, points)
                self.add(node, body, points if known is None else {**points, var: known}, runs)
            case While(body=body):
                inner = LoopNode(None, node, float(runs.mean()), float(runs.mean()) * IN_COSTS, node.tasks)
                node.inner.append(inner)
                self.add(inner, body, points, runs * IN_COSTS)
            case Assert():
                pass
            case _:
                node.parts.append((stmt, float(runs.mean())))
                if isinstance(stmt, Store):
                    for loop in node.around():
                        loop.written.add(stmt.buffer.data)

    def _add_loop(self, node: LoopNode, loop: For, points: Points, runs: Numbers) -> None:
        low, extent = evaluate(loop.min, points), evaluate(loop.extent, points)
        low = np.zeros(POINTS) if low is None else low
        extent = np.full(POINTS, float(IN_COSTS)) if extent is None else np.maximum(extent, 0.0)
        value = low + np.floor(spread(self._loops) * extent)
        self._loops += 1
        inside = runs * extent
        entries, iterations = float(runs.mean()), float(inside.mean())
        launches = loop.kind == "parallel" and not any(each.is_parallel for each in node.around())
        shares = launches or (loop.notes == DIGIT and node.is_parallel)
        tasks = node.tasks * (iterations / max(entries, 1e-9) if shares else 1.0)
        inner = LoopNode(loop.var, node, entries, iterations, max(tasks, 1.0), shares, launches)
        node.inner.append(inner)
        if iterations:
            self.add(inner, loop.body, {**points, loop.var: value}, inside)


def expressions_of(stmt: Stmt) -> tuple[Expr, ...]:
    """What a statement in the body of a loop evaluates itself."""
    match stmt:
        case Store(_, indices, value, mask):
            return (*indices, value) if mask is None else (*indices, value, mask)
        case If(condition):
            return (condition,)
        case LetStmt(value=value):
            return (value,)
        case _:
            return ()


def accesses_of(stmt: Stmt) -> Iterator[tuple[Buffer, Expr, int, bool]]:
    """The buffers that a statement reads and writes: where, how many elements, and whether it writes."""
    if isinstance(stmt, Store) and stmt.buffer.scope != "register" and len(stmt.indices) == 1:
        yield stmt.buffer, stmt.indices[0], stmt.value.dtype.lanes, True
    for e in expressions_of(stmt):
        for node in walk(e):
            if isinstance(node, Load) and node.buffer.scope != "register" and len(node.indices) == 1:
                yield node.buffer, node.indices[0], node.dtype.lanes, False


def bytes_of(buffer: Buffer) -> float:
    """The memory of a buffer; open extents are taken to be long."""
    size = 1.0
    for extent in buffer.shape:
        known = const_int(extent)
        size *= LONG if known is None else known
    return size * buffer.dtype.storage_bytes
