"""Chunks of fused loops as rows: what takes the loop's variable apart is counted, not divided.

A task runs the iterations from ``begin`` to ``end`` of a loop over n·m, and divides each by m, where m is open: as long
as a short row takes. Before → after::

    for i in range(begin, end):            for row in range(begin // m, (end + m - 1) // m):
        quotient = i // m                      for column in range(…):  # of the chunk's part of the row
        remainder = i % m                          i = row * m + column
        …                                          …

Part of ``outline_parallel``.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.build import index_var
from ...ir.constants import ONE, ZERO, const_int
from ...ir.contents import free_vars, substitute
from ...ir.expr import Binary, Expr, Var
from ...ir.makers import maximum, minimum
from ...ir.simplify import simplify
from ...ir.stmt import For, LetStmt, Stmt, Store
from ...ir.visit import walk
from .folding import add, multiply, subtract

MOST_STORES = 8
"""A body of more stores takes so long that a division is none of it, but rows of few iterations would be."""


def in_rows(loop: For) -> Stmt:
    """The loop, or rows of it where its body begins by taking its variable apart by an open divisor. That is at least 1
    where the loop runs, as ``name_quotients`` has made sure of."""
    definitions, body = _definitions(loop.body)
    length = _row_length(loop.var, definitions)
    if length is None or sum(isinstance(node, Store) for node in walk(body)) > MOST_STORES:
        return loop
    row, column = index_var("row"), index_var("column")
    end, safe = simplify(loop.min + loop.extent), maximum(length, ONE)
    first = loop.min // safe
    begin = maximum(subtract(loop.min, multiply(row, length)), ZERO)
    count = subtract(minimum(subtract(end, multiply(row, length)), length), begin)
    parts: dict[Var, Expr] = {}
    of_row: list[tuple[Var, Expr]] = []
    of_each: list[tuple[Var, Expr]] = [(loop.var, add(multiply(row, length), column))]
    changing = {loop.var, column}
    for var, given in definitions:
        value = substitute(given, parts)
        if value is loop.var // length:
            parts[var] = row
        elif value is loop.var % length:
            parts[var] = column
        elif changing.isdisjoint(free_vars(value)):
            of_row.append((var, value))
        else:
            changing.add(var)
            of_each.append((var, value))
    inner = replace(loop, var=column, min=begin, extent=count, body=_defining(of_each, substitute(body, parts)))
    return For(row, first, subtract((end + length - ONE) // safe, first), "serial", _defining(of_row, inner))


def _definitions(body: Stmt) -> tuple[list[tuple[Var, Expr]], Stmt]:
    """What a body defines at its beginning, in order, and the rest."""
    found = []
    while isinstance(body, LetStmt):
        found.append((body.var, body.value))
        body = body.body
    return found, body


def _row_length(var: Var, definitions: list[tuple[Var, Expr]]) -> Expr | None:
    """The first open divisor by which the variable itself is divided."""
    own = {name for name, _ in definitions}
    for _, value in definitions:
        match value:
            case Binary("//" | "%", a, b) if a is var and const_int(b) is None and own.isdisjoint(free_vars(b)):
                return b
    return None


def _defining(definitions: list[tuple[Var, Expr]], body: Stmt) -> Stmt:
    for var, value in reversed(definitions):
        body = LetStmt(var, value, body)
    return body
