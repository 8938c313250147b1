"""Live ranges of memory: for each allocation of a piece of program, the range from its first access to its last.

Part of ``storage_rewrite``: analysis only.
"""

from __future__ import annotations

from dataclasses import field

from ...base.dataclass import dataclass
from ...ir.contents import expressions_of, loads_of
from ...ir.expr import Var
from ...ir.stmt import Allocate, CallExtern, For, PrefetchStmt, Seq, Stmt, StmtNode, Store, While
from ...ir.visit import children


@dataclass(slots=True)
class LiveRange:
    """Points in time, both included; statements are numbered in the order in which they stand."""

    start: int
    end: int


def live_ranges(body: Stmt) -> dict[Var, LiveRange]:
    """The spans by ``buffer.data``, of memory that is allocated inside and accessed at all.

    An access in a loop counts for the whole loop, if the memory is allocated outside of it: it is kept from one
    iteration to the next.
    """
    clock = _Clock()
    clock.visit(body)
    spans: dict[Var, LiveRange] = {}
    for data, uses in clock.uses.items():
        spans[data] = LiveRange(min(u.start for u in uses), max(u.end for u in uses))
    return spans


@dataclass(slots=True, eq=False)
class _Clock:
    """Walks a program and records what is used when. ``loops`` are the spans of the loops around, outermost first."""

    now: int = 0
    loops: list[LiveRange] = field(default_factory=list)
    depth_of: dict[Var, int] = field(default_factory=dict)
    uses: dict[Var, list[LiveRange]] = field(default_factory=dict)

    def visit(self, stmt: Stmt) -> None:
        self.now += 1
        match stmt:
            case Seq(stmts):
                for s in stmts:
                    self.visit(s)
            case For():
                self._expressions(stmt)
                self._loop(stmt)
            case While():
                self._loop(stmt)
            case _:
                if isinstance(stmt, Allocate):
                    self.depth_of[stmt.buffer.data] = len(self.loops)
                self._expressions(stmt)
                if isinstance(stmt, (Store, PrefetchStmt)):
                    self._use(stmt.buffer.data)
                elif isinstance(stmt, CallExtern):
                    for region in stmt.regions:
                        self._use(region.buffer.data)
                for child in children(stmt):
                    if isinstance(child, StmtNode):
                        self.visit(child)

    def _loop(self, loop: For | While) -> None:
        self.loops.append(LiveRange(self.now, self.now))
        self.now += 1
        if isinstance(loop, While):
            self._expressions(loop)
        self.visit(loop.body)
        self.now += 1
        self.loops.pop().end = self.now

    def _expressions(self, stmt: Stmt) -> None:
        for e in expressions_of(stmt):
            for load in loads_of(e):
                self._use(load.buffer.data)

    def _use(self, data: Var) -> None:
        depth = self.depth_of.get(data)
        if depth is None:
            return
        span = self.loops[depth] if depth < len(self.loops) else LiveRange(self.now, self.now)
        self.uses.setdefault(data, []).append(span)
