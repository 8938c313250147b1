"""Names for the quotients and remainders that a loop's variable is taken apart with, where the divisor is not constant.

A fused loop over n·m iterations has i // m and i % m wherever its parts are used. LLVM does not move such a division
out of inner loops, since m might be 0; where an iteration runs it is not, for then n·m is positive.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...ir.build import index_var
from ...ir.constants import const_int
from ...ir.expr import Binary, Expr, Var
from ...ir.linear import linear_of
from ...ir.stmt import Allocate, For, LetStmt, PrimFunc, Stmt
from ...ir.visit import Node, bound_vars, free_vars, reads_memory, rewrite, walk, with_body


def name_quotients(func: PrimFunc) -> PrimFunc:
    """The function in which loops compute such quotients once an iteration."""
    return with_body(func, rewrite(func.body, lambda node: _named(node) if isinstance(node, For) else None))


def _named(loop: For) -> For | None:
    extent = _product(loop.extent)
    if extent is None or loop.kind in ("vectorized", "unrolled"):
        return None
    inside = {var for node in walk(loop.body) for var in bound_vars(node)}
    quotients = [
        node
        for node in walk(loop.body)
        if isinstance(node, Binary)
        and node.op in ("//", "%")
        and (divisor := _product(node.b)) is not None
        and not divisor - extent
        and node.dtype.lanes == 1
        and not inside.intersection(free_vars(node))
        and not reads_memory(node)
    ]
    if not quotients:
        return None
    return replace(loop, body=_with_names(loop.body, list(dict.fromkeys(quotients))))


def _product(e: Expr) -> Counter[Expr] | None:
    """The factors of a product of what is not constant; None of others."""
    form = linear_of(e) if e.dtype.is_index and const_int(e) is None else None
    if form is None or form.constant or len(form.terms) != 1:
        return None
    (term,) = form.terms.values()
    return Counter(term.factors)


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
