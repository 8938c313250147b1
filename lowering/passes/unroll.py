"""Copy out the bodies of loops marked ``unrolled``, one copy an iteration, with the loop variable a constant.

Runs after vectorization, so that the copies are of vector statements.
"""

from __future__ import annotations

from ...base.errors import ScheduleError
from ...ir.constants import const, const_int
from ...ir.contents import statements_of, variables_of
from ...ir.expr import Expr
from ...ir.simplify import simplify
from ...ir.stmt import CallExtern, Evaluate, For, If, PrimFunc, Stmt, Store, seq
from ...ir.visit import Node, NodeParts, rewrite, with_body
from .copying import CopyPlan
from .diagnostics import loop_error
from .folding import add


def unroll(func: PrimFunc, *, max_statements: int = 4096) -> PrimFunc:
    """The function without unrolled loops. ``max_statements`` limits what one loop, with those inside it, may become.

    Raises ``ScheduleError`` if the extent of one is not constant, or if it would become too many statements.
    """

    return with_body(func, _unrolled(func.body, max_statements))


def _unrolled(stmt: Stmt, most: int) -> Stmt:
    """Inner loops first, but for those in a loop that makes a choice: of its copies, each has one branch only."""

    def visit(node: Node) -> Node | None:
        return _copies(node, most) if isinstance(node, For) and node.kind == "unrolled" else None

    def as_it_is(node: Node) -> NodeParts | None:
        return NodeParts((), lambda _: node) if isinstance(node, For) and _chooses(node) else None

    return rewrite(stmt, visit, as_it_is)


def _chooses(loop: For) -> bool:
    """Whether a loop is unrolled and a choice in it depends on its iteration."""
    return loop.kind == "unrolled" and any(
        isinstance(stmt, If) and loop.var in variables_of(stmt.condition) for stmt in statements_of(loop.body)
    )


def _copies(loop: For, most: int) -> Stmt:
    extent = const_int(simplify(loop.extent))
    if extent is None:
        raise loop_error(
            loop,
            loop,
            f"the loop {loop.var.name} cannot be unrolled, its extent is not constant: split it by a constant",
        )
    size, chooses = extent * _statements(loop.body), _chooses(loop)
    if size > most and not chooses:
        raise _too_many(loop, f"{size}", most)
    plan = CopyPlan(loop.body, (loop.var,))
    if not chooses:
        return seq(*(plan.copy({loop.var: _plus(loop.min, i)}) for i in range(extent)))
    copies: list[Stmt] = []
    size = 0
    for i in range(extent):
        copies.append(_unrolled(plan.copy({loop.var: _plus(loop.min, i)}), most))
        size += _statements(copies[-1])
        if size > most:
            raise _too_many(loop, f"{size} or more", most)
    return seq(*copies)


def _statements(stmt: Stmt) -> int:
    return sum(isinstance(each, (Store, Evaluate, CallExtern)) for each in statements_of(stmt))


def _too_many(loop: For, size: str, most: int) -> ScheduleError:
    return loop_error(
        loop,
        loop,
        f"unrolling the loop {loop.var.name} makes {size} statements, more than the {most} allowed: "
        "split it and unroll the inner part",
    )


def _plus(low: Expr, step: int) -> Expr:
    return add(low, const(step, low.dtype))
