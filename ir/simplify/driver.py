"""How rules are applied: bottom-up, until none applies, with facts from the surroundings; same object back if none did.

The result of a rule is visited again, so that simplifying what comes out changes nothing.
Visits are generators, run by ``run`` on a stack of its own: ``x = yield child, facts`` reads like recursion, but knows
no recursion limit. What has been visited under some facts is remembered for these facts.
"""

from __future__ import annotations

from typing import TypeVar, cast

from ...base.timing import CURRENT
from ..buffer import Buffer
from ..expr import Const, Expr, Var
from ..expr_node import ExprNode
from ..facts import NO_FACTS, Facts, entry_facts
from ..stmt import PrimFunc, Stmt, StmtNode
from ..visit import Node, with_body
from .expressions import ExpressionVisitor
from .statements import StatementVisitor
from .visitor import Request, Visit

N = TypeVar("N", bound=Node)


def simplify(node: N, facts: Facts = NO_FACTS) -> N:
    """An equal, simpler expression or statement, under facts about its variables; the same object if there is none.

    The facts remember what becomes of expressions; without facts these remember it themselves.
    """
    if isinstance(node, Const):
        return node
    if isinstance(node, StmtNode):
        return cast(N, _Simplifier().simplify(cast(Stmt, node), Facts() if facts is NO_FACTS else facts))
    if facts is NO_FACTS:
        return cast(N, _simplified_by_itself(cast(Expr, node)))
    known = facts.simplified.get(cast(Expr, node))
    return cast(N, _Simplifier().simplify(cast(Expr, node), facts) if known is None else known)


def _simplified_by_itself(e: Expr) -> Expr:
    """An expression simplified without facts, which it remembers itself."""
    try:
        return e if e.simplest is None else e.simplest
    except AttributeError:
        simpler = cast(Expr, _Simplifier().simplify(e, Facts()))
    object.__setattr__(e, "simplest", None if simpler is e else simpler)
    return simpler


def simplify_func(func: PrimFunc) -> PrimFunc:
    """The function with its body simplified."""
    return FunctionSimplifier()(func)


class FunctionSimplifier:
    """``simplify_func`` for a function that passes change between its calls. Mutable: keeps the facts at its entry,
    which remember what is simplified, so that a call looks at that only which is new since the last one."""

    def __init__(self) -> None:
        self._facts = NO_FACTS
        self._params: tuple[Buffer | Var, ...] | None = None

    def __call__(self, func: PrimFunc) -> PrimFunc:
        """The function with its body simplified; the same object if nothing changes."""
        return with_body(func, simplify(func.body, self.facts_of(func)))

    def facts_of(self, func: PrimFunc) -> Facts:
        """What holds at the function's entry."""
        if self._params is not func.params:
            self._params, self._facts = func.params, entry_facts(func)
        return self._facts


class _Simplifier(ExpressionVisitor, StatementVisitor):
    """Simplifies roots, of which none binds a variable of another one anew. Mutable: counts its visits."""

    def simplify(self, root: Node, facts: Facts) -> Node:
        """The root simplified; the stage that this thread is in counts the work."""
        before = self.visits
        simpler = self.run(root, facts)
        stage = CURRENT.get()
        if stage is not None:
            stage.simplifications += 1
            stage.visits += self.visits - before
        return simpler

    def run(self, root: Node, facts: Facts) -> Node:
        stack: list[tuple[Node, Facts, Visit]] = []
        active: set[tuple[Node, Facts]] = set()
        request: Request = (root, facts)
        while True:
            node, inner = request
            value: Node | None = self.known(node, inner)
            if value is None and request in active:
                value = node  # rules that undo each other: stop, any of the forms is right
            if value is None and isinstance(node, ExprNode):
                value = self.at_once(node, inner)
            if value is None:
                self.visits += 1
                active.add(request)
                stack.append((node, inner, self._visit(node, inner)))
            while stack:
                node, inner, visit = stack[-1]
                try:
                    request = next(visit) if value is None else visit.send(value)
                    break
                except StopIteration as finished:
                    value = finished.value
                    if isinstance(node, ExprNode):
                        self.remember(node, inner, value)
                    stack.pop()
                    active.discard((node, inner))
            else:
                assert value is not None
                return value

    def _visit(self, node: Node, facts: Facts) -> Visit:
        if isinstance(node, ExprNode):
            return self.visit_expr(node, facts)
        return self.visit_stmt(node, facts)
