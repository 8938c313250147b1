"""Where the loops and stores of a lowered function come from: from which ones of the nest that the schedule prints.

``with_origins`` numbers those, and the passes hand the numbers on, to copies and vectors too; copies for the borders of
a range get a minus sign. ``nest_of`` says what each number stands for. So a report can tell what became of each loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from ..base.dataclass import dataclass
from .expr import Var
from .printer import expr_text
from .stmt import For, LoopKind, Stmt, StmtNode, Store
from .visit import Node, children, rewrite


@dataclass(frozen=True, slots=True)
class NestLoop:
    """A loop of a schedule's nest: its variable, its id in the schedule, and the numbers of the loops around it."""

    number: int
    around: tuple[int, ...]
    name: str
    id: str
    kind: LoopKind
    extent: str


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops of a nest by their numbers, in order of appearance, and for each store those of the loops around it,
    outermost first."""

    loops: Mapping[int, NestLoop]
    stores: Mapping[int, tuple[int, ...]]


def with_origins(body: Stmt) -> Stmt:
    """The statement with numbers, from 1 on, as the origins of its loops and stores."""
    numbers = count(1)

    def numbered(node: Node) -> Node | None:
        return replace(node, origin=next(numbers)) if isinstance(node, (For, Store)) else None

    return rewrite(body, numbered)


def as_border(stmt: Stmt) -> Stmt:
    """A copy of a numbered statement that is made for the iterations at the borders: its numbers are negative."""

    def negative(node: Node) -> Node | None:
        return replace(node, origin=-abs(node.origin)) if isinstance(node, (For, Store)) and node.origin else None

    return rewrite(stmt, negative)


def enclosed(root: Stmt) -> Iterator[tuple[Stmt, tuple[Stmt, ...]]]:
    """Each statement and the statements around it, outermost first, in order of appearance."""
    stack: list[tuple[Stmt, tuple[Stmt, ...]]] = [(root, ())]
    while stack:
        stmt, around = stack.pop()
        yield stmt, around
        inside = (*around, stmt)
        stack += [(child, inside) for child in reversed(children(stmt)) if isinstance(child, StmtNode)]


def nest_of(body: Stmt, ids: Mapping[Var, str]) -> Nest:
    """What the numbers of a numbered statement stand for; ``ids`` are the schedule's ids of its loops, by variable."""
    loops: dict[int, NestLoop] = {}
    stores: dict[int, tuple[int, ...]] = {}
    for stmt, outside in enclosed(body):
        around = tuple(loop.origin for loop in outside if isinstance(loop, For))
        if isinstance(stmt, For):
            name, extent = stmt.var.name, expr_text(stmt.extent)
            loops[stmt.origin] = NestLoop(stmt.origin, around, name, ids.get(stmt.var, ""), stmt.kind, extent)
        elif isinstance(stmt, Store):
            stores[stmt.origin] = around
    return Nest(loops, stores)
