"""Names for the quotients and remainders that a loop's variable is taken apart with, where the divisor is not constant.

A fused loop over n·m iterations has i // m and i % m wherever its parts are used. LLVM does not move such a division
out of inner loops, since m might be 0; ``safe_divisions.py`` tells where it is not.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.build import index_var
from ...ir.contents import bindings_in, free_vars
from ...ir.expr import Binary, Var
from ...ir.facts import NO_FACTS, Facts
from ...ir.stmt import Allocate, For, LetStmt, PrimFunc, Stmt
from ...ir.visit import Node, rewrite, walk, with_body
from .safe_divisions import SafeDivisions, divides_by_variables


def name_quotients(func: PrimFunc, facts: Facts = NO_FACTS) -> PrimFunc:
    """The function in which loops compute such quotients once an iteration; ``facts`` are those at its entry."""
    if not divides_by_variables(func.body):
        return func
    safe = SafeDivisions(facts)
    return with_body(func, rewrite(func.body, lambda node: _named(node, safe) if isinstance(node, For) else None))


def _named(loop: For, safe: SafeDivisions) -> For | None:
    if loop.kind in ("vectorized", "unrolled"):
        return None
    found = list(safe.of_loop(loop))
    inside = bindings_in(loop.body) if found else set()
    quotients = [division for division in found if not inside.intersection(free_vars(division))]
    if not quotients:
        return None
    return replace(loop, body=_with_names(loop.body, list(dict.fromkeys(quotients))))


def _with_names(body: Stmt, quotients: list[Binary]) -> Stmt:
    """The body behind definitions of these; what it allocates stays outside of them."""
    if isinstance(body, Allocate):
        return replace(body, body=_with_names(body.body, quotients))
    names: dict[Node, Var] = {}

    def known(node: Node) -> Node | None:
        return names.get(node)

    definitions = []
    for quotient in sorted(quotients, key=lambda q: sum(1 for _ in walk(q))):  # those that others are made of first
        value = Binary(quotient.op, rewrite(quotient.a, known), quotient.b)
        names[quotient] = index_var("quotient" if quotient.op == "//" else "remainder")
        definitions.append((names[quotient], value))
    body = rewrite(body, known)
    for name, value in reversed(definitions):
        body = LetStmt(name, value, body)
    return body
