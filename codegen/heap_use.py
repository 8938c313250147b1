"""How much memory a function takes from the heap while it runs, such as for panels that it packs: known beforehand."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from ..base.dataclass import dataclass
from ..ir.constants import ZERO
from ..ir.contents import free_vars
from ..ir.expr import Expr, Var
from ..ir.makers import maximum
from ..ir.simplify import simplify
from ..ir.stmt import Allocate, For, PrimFunc, Stmt, StmtNode
from ..ir.visit import children
from .abi import symbolic_dims
from .allocation import heap_bytes, place


@dataclass(frozen=True, slots=True, eq=False)
class HeapUse:
    """The most bytes of heap memory that a function uses: ``once``, and for ``each`` thread that runs."""

    once: Expr = ZERO
    each: Expr = ZERO


def heap_use(func: PrimFunc) -> HeapUse:
    """The heap memory of a function whose parallel loops are still part of it. An allocation whose size depends on more
    than the function's symbolic dimensions is not counted."""
    found = _use(func.body, set(symbolic_dims(func)))
    return HeapUse(simplify(found.once), simplify(found.each))


def _use(stmt: Stmt, known: Collection[Var]) -> HeapUse:
    if isinstance(stmt, For) and stmt.kind == "parallel":
        inside = _use(stmt.body, known)
        return HeapUse(each=inside.once + inside.each)
    parts = [_use(child, known) for child in children(stmt) if isinstance(child, StmtNode)]
    once, each = (reduce(maximum, sizes, ZERO) for sizes in ([p.once for p in parts], [p.each for p in parts]))
    if isinstance(stmt, Allocate) and place(stmt.buffer) == "heap":
        size = heap_bytes(stmt.buffer)
        if all(var in known for var in free_vars(size)):
            once = once + size
    return HeapUse(once, each)
