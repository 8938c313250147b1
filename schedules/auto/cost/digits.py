"""Fused loops apart again: ``f // 6`` and ``f % 6`` of a loop ``f`` move as two loops do, which the model knows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ....ir.build import index_var
from ....ir.constants import ZERO, const_int
from ....ir.expr import Binary, Const, Expr
from ....ir.makers import as_index
from ....ir.operand import Operand
from ....ir.stmt import For, LoopKind, Notes, Stmt
from ....ir.visit import Node, rewrite, walk

DIGIT: Notes = (("auto.digit", True),)
"""At loops that are a part of the one around them."""


def split_digits(stmt: Stmt) -> Stmt:
    """The statement with each loop whose body takes digits of its variable as loops over these, outermost first. The
    last iterations of the outermost may be too many."""

    def visit(node: Node) -> Node | None:
        return _apart(node) if isinstance(node, For) else None

    return rewrite(stmt, visit)


def _apart(loop: For) -> For | None:
    extent = const_int(loop.extent)
    factors = _divisors(loop)
    if extent is None or const_int(loop.min) != 0 or not factors:
        return None
    sizes = [b // a for a, b in zip((1, *factors), factors, strict=False)] + [-(-extent // factors[-1])]
    digits = [index_var(loop.var.name) for _ in sizes]
    weights = [1, *factors]

    def part(begin: int, end: int, unit: int) -> Expr:
        value: Operand = ZERO
        for digit, weight in list(zip(digits, weights, strict=True))[begin:end]:
            value = digit * (weight // unit) + value if weight // unit > 1 else digit + value
        return value.as_expr()

    def visit(node: Node) -> Node | None:
        match node:
            case Binary("//", a, Const(value=by)) if a is loop.var:
                return part(weights.index(int(by)), len(digits), int(by))
            case Binary("%", a, Const(value=by)) if a is loop.var:
                return part(0, weights.index(int(by)), 1)
            case _:
                return None

    body = rewrite(loop.body, visit)
    if any(node is loop.var for node in walk(body)):
        whole = part(0, len(digits), 1)
        body = rewrite(body, lambda node: whole if node is loop.var else None)
    for digit, size in zip(digits[:-1], sizes[:-1], strict=True):
        kind: LoopKind = "parallel" if loop.kind == "parallel" else "serial"
        body = For(digit, ZERO, as_index(size), kind, body, notes=DIGIT)
    return replace(loop, var=digits[-1], extent=as_index(sizes[-1]), body=body)


def _divisors(loop: For) -> tuple[int, ...]:
    """The constants by which the body takes digits of a loop, ascending; none if they do not divide each other."""
    found: set[int] = set()
    for node in walk(loop.body):
        if isinstance(node, Binary) and node.op in ("//", "%") and node.a is loop.var:
            by = const_int(node.b)
            if by is None or by < 1:
                return ()
            found.add(by)
    ordered = tuple(sorted(found - {1}))
    chain = all(b % a == 0 for a, b in pairwise(ordered))
    return ordered if chain and 1 not in found else ()
