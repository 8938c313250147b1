"""Put conditions that follow each other inside each other, where one that holds implies the one before it.

``if i < n - 1: A``, ``if i < n - 2: B`` becomes ``if i < n - 1: A; if i < n - 2: B``, with the second one inside the
first: the last tile of a row leaves out all that is beyond its end by one test, and LLVM makes a loop of its own for
each length. Only single stores are worth that: a test takes as long as one, and more of them make long code.

Part of ``promote_registers``.
"""

from __future__ import annotations

from ...ir.contents import reads_memory
from ...ir.expr import Compare, Expr
from ...ir.linear import linear_of
from ...ir.stmt import If, Seq, Stmt, Store, seq
from ...ir.visit import Node, rewrite
from .guards import margin_of


def nest_conditions(stmt: Stmt) -> Stmt:
    """The statement with such conditions inside each other."""

    def visit(node: Node) -> Node | None:
        return _nested(node) if isinstance(node, Seq) else None

    return rewrite(stmt, visit)


def _nested(whole: Seq) -> Stmt:
    done: list[Stmt] = []
    for stmt in reversed(whole.stmts):
        match stmt, done:
            case If(condition, Store() as store, None, mask=False), [*_, If(orelse=None) as inner] if _implies(
                inner.condition, condition
            ):
                done[-1] = If(condition, seq(store, inner))
            case _:
                done.append(stmt)
    return seq(*reversed(done)) if len(done) < len(whole.stmts) else whole


def _implies(later: Expr, earlier: Expr) -> bool:
    """Whether one condition holds only where the one before it does, which no store changes."""
    if not isinstance(later, Compare) or not isinstance(earlier, Compare):
        return False
    less, more = margin_of(later), margin_of(earlier)
    if less is None or more is None or reads_memory(less) or reads_memory(more):
        return False
    difference = linear_of(more).plus(linear_of(less), -1)
    return difference.is_constant and difference.constant >= 0
