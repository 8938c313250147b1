"""The last, partial vector of a row, where that is several of the processor's and takes functions to compute, is cut
into these: what is behind the end is left out then, instead of computed under a mask.

Where a vector has 16 lanes, ``for v in vectorized(64): if i*64 + v < n: B[…] = tanh(A[…])`` stays as it is if
``i*64 + 32 < n``: vectors side by side take less time than one after the other. Else it becomes ``for part in range(2):
if i*64 + part*16 < n: for v in vectorized(16): if i*64 + part*16 + v < n: …``. A row of 7 elements takes a quarter of
the time. Without functions, masks cost less than tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...base.dtype import INDEX
from ...base.target import Target
from ...ir.constants import ZERO, const, const_int
from ...ir.contents import accesses_in, reads_memory, statements_of, substitute, variables_of
from ...ir.expr import Binary, Compare, Expr, Load, Var
from ...ir.functions import lanes_of_functions
from ...ir.stmt import For, If, PrimFunc, Seq, Stmt, Store
from ...ir.visit import Node, rewrite, walk, with_body
from .copying import fresh_copy
from .folding import add, multiply
from .linear import affine_in, difference


def narrow_tails(func: PrimFunc, target: Target) -> PrimFunc:
    """The function with such vectors cut; the same object if it has none."""
    joined = {loop for stmt in statements_of(func.body) if isinstance(stmt, Seq) for loop in _joined(stmt)}

    def visit(node: Node) -> Node | None:
        if not isinstance(node, For) or node.kind != "vectorized" or node in joined:
            return None
        return _narrowed(node, target)

    return with_body(func, rewrite(func.body, visit))


def _joined(parts: Seq) -> Iterator[For]:
    """The vectors of which one is made of the other, next to it: what is handed on stays in registers, and would have
    to be in memory before a part of it could be read."""
    loops = [stmt for stmt in parts.stmts if isinstance(stmt, For) and stmt.kind == "vectorized"]
    for k, loop in enumerate(loops):
        made = {access.buffer.data for access in accesses_in(loop) if isinstance(access, Store)}
        for reader in loops[k + 1 :]:
            if any(isinstance(access, Load) and access.buffer.data in made for access in accesses_in(reader)):
                yield from (loop, reader)


def _narrowed(loop: For, target: Target) -> Stmt | None:
    """A vectorized loop, or, where its end is in its first half, a loop over vectors, of which those behind the end do
    nothing; None if it has no end, or one that is known, computes no function, or is one vector."""
    lanes, body = const_int(loop.extent), loop.body
    if lanes is None or not isinstance(body, If) or body.orelse is not None or not _ends(body.condition, loop.var):
        return None
    width = lanes_of_functions([body.then], target)
    if width is None or width < 2 or lanes % (2 * width) or _divides(body.then, loop.var):
        return None
    part, lane = Var("part", INDEX), Var(loop.var.name, INDEX)
    first = add(loop.min, multiply(part, const(width, INDEX)))
    copy = fresh_copy(substitute(body, {loop.var: add(first, lane)}))
    vector = replace(loop, var=lane, min=ZERO, extent=const(width, INDEX), body=copy)
    parts = For(part, ZERO, const(lanes // (2 * width), INDEX), "serial", If(_reaches(body, loop, first), vector))
    half = add(loop.min, const(lanes // 2, INDEX))
    return If(_reaches(body, loop, half), loop, parts)


def _divides(body: Stmt, var: Var) -> bool:
    """Whether lanes have quotients of their own: these are computed once, before all rows, if nothing decides that."""
    divisions = (node for node in walk(body) if isinstance(node, Binary) and node.op in ("//", "%"))
    return any(var in variables_of(division) for division in divisions)


def _reaches(body: If, loop: For, value: Expr) -> Expr:
    return substitute(body.condition, {loop.var: value})


def _ends(condition: Expr, var: Var) -> bool:
    """Whether a condition holds up to some value of a variable that a run knows, and for none behind it."""
    if not isinstance(condition, Compare) or not condition.a.dtype.is_index or reads_memory(condition):
        return False
    if condition.op not in ("<", "<=", ">", ">="):
        return False
    left, right = affine_in(condition.a, var), affine_in(condition.b, var)
    if left is None or right is None or difference(left[1], right[1]) is not None:
        return False
    return (left[0] - right[0]) * (1 if condition.op in ("<", "<=") else -1) > 0
