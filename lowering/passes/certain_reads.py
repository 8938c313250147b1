"""What evaluating an expression reads whatever the values of its parts are. Part of ``vectorize``."""

from __future__ import annotations

from ...ir.expr import Expr, IfThenElse, Load, Logical
from ...ir.structural import structural_equal
from ...ir.visit import children


def certainly_reads(e: Expr, load: Load) -> bool:
    """Whether evaluating an expression reads what a load reads, in any case: under no mask, and in no branch."""
    stack: list[Expr] = [e]
    while stack:
        match stack.pop():
            case Load(buffer, _, None) as read if buffer.data is load.buffer.data and structural_equal(read, load):
                return True
            case IfThenElse(condition=condition):
                stack.append(condition)
            case Logical(_, a, b):
                stack += [a] if a.dtype.lanes == 1 else [a, b]
            case node:
                stack += (child for child in children(node) if isinstance(child, Expr))
    return False
