"""How rules are applied: bottom-up, until none applies, with facts from the surroundings; same object back if none did.

The result of a rule is visited again, so that simplifying what comes out changes nothing.
Visits are generators, run by ``run`` on a stack of its own: ``x = yield child, facts`` reads like recursion, but knows
no recursion limit. What has been visited under some facts is remembered for these facts.
"""

from __future__ import annotations

from typing import TypeVar, cast

from ..expr import Const, ExprNode
from ..facts import NO_FACTS, Facts, entry_facts
from ..stmt import PrimFunc
from ..visit import Node, with_body
from .expressions import ExpressionVisitor
from .statements import StatementVisitor
from .visitor import Request, Visit

N = TypeVar("N", bound=Node)


def simplify(node: N, facts: Facts = NO_FACTS) -> N:
    """An equal, simpler expression or statement, under facts about its variables; the same object if there is none."""
    known = Facts() if facts is NO_FACTS else facts
    return cast(N, _Simplifier().run(node, known))


def simplify_func(func: PrimFunc) -> PrimFunc:
    """The function with its body simplified."""
    return with_body(func, simplify(func.body, entry_facts(func)))


class _Simplifier(ExpressionVisitor, StatementVisitor):
    """One run over one root. Mutable: holds what is done so far."""

    def run(self, root: Node, facts: Facts) -> Node:
        stack: list[tuple[Node, Facts, Visit]] = []
        active: set[tuple[Node, Facts]] = set()
        request: Request = (root, facts)
        while True:
            node, inner = request
            value = self._known(node, inner)
            if value is None and request in active:
                value = node  # rules that undo each other: stop, any of the forms is right
            if value is None:
                active.add(request)
                stack.append((node, inner, self._visit(node, inner)))
            while stack:
                node, inner, visit = stack[-1]
                try:
                    request = next(visit) if value is None else visit.send(value)
                    break
                except StopIteration as finished:
                    value = cast(Node, finished.value)
                    self._remember(node, inner, value)
                    stack.pop()
                    active.discard((node, inner))
            else:
                assert value is not None
                return value

    def _known(self, node: Node, facts: Facts) -> Node | None:
        return node if isinstance(node, Const) else self.memo(facts).get(node)

    def _remember(self, node: Node, facts: Facts, value: Node) -> None:
        if isinstance(node, ExprNode):
            memo = self.memo(facts)
            memo[node] = memo[value] = value

    def _visit(self, node: Node, facts: Facts) -> Visit:
        if isinstance(node, ExprNode):
            return self.visit_expr(node, facts)
        return self.visit_stmt(node, facts)
