"""Copy out the bodies of loops marked ``unrolled``, one copy an iteration, with the loop variable a constant.

Runs after vectorization, so that the copies are of vector statements.
"""

from __future__ import annotations

from ...ir.constants import const, const_int
from ...ir.expr import Expr
from ...ir.simplify import simplify
from ...ir.stmt import CallExtern, Evaluate, For, PrimFunc, Stmt, Store, seq
from ...ir.visit import Node, rewrite, walk, with_body
from .copying import CopyPlan
from .diagnostics import loop_error
from .folding import add


def unroll(func: PrimFunc, *, max_statements: int = 4096) -> PrimFunc:
    """The function without unrolled loops. ``max_statements`` limits what one loop, with those inside it, may become.

    Raises ``ScheduleError`` if the extent of one is not constant, or if it would become too many statements.
    """

    def visit(node: Node) -> Node | None:
        return _copies(node, max_statements) if isinstance(node, For) and node.kind == "unrolled" else None

    body = rewrite(func.body, visit)
    return with_body(func, body)


def _copies(loop: For, max_statements: int) -> Stmt:
    extent = const_int(simplify(loop.extent))
    if extent is None:
        raise loop_error(
            loop,
            loop,
            f"the loop {loop.var.name} cannot be unrolled, its extent is not constant: split it by a constant",
        )
    size = extent * sum(isinstance(node, (Store, Evaluate, CallExtern)) for node in walk(loop.body))
    if size > max_statements:
        raise loop_error(
            loop,
            loop,
            f"unrolling the loop {loop.var.name} makes {size} statements, more than the {max_statements} allowed: "
            "split it and unroll the inner part",
        )
    plan = CopyPlan(loop.body, (loop.var,))
    return seq(*(plan.copy({loop.var: _plus(loop.min, i)}) for i in range(extent)))


def _plus(low: Expr, step: int) -> Expr:
    return add(low, const(step, low.dtype))
