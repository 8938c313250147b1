"""Which product a sum or a difference takes in as an fma, unless precision is strict or the target has none.

It follows from the expression alone, so all copies of it are rounded alike, and vectors as scalars: code generation
leaves LLVM no contraction to choose. ``lowering/nest/fences.py`` has put fences around the products that must not be
taken in.
"""

from __future__ import annotations

from ..base.dataclass import dataclass
from ..ir.expr import Binary, Broadcast, Expr


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """``a * b + addend``, where a and the addend change their signs first if told to."""

    a: Expr
    b: Expr
    addend: Expr
    negate_a: bool
    negate_addend: bool


def contraction(node: Binary) -> Contraction | None:
    """The right operand's product, else the left one's; none for types of 16 bits, which are rounded at each step."""
    if node.op not in ("+", "-") or not node.dtype.is_float or node.dtype.bits == 16:
        return None
    subtracts = node.op == "-"
    if (factors := _factors(node.b)) is not None:
        return Contraction(*factors, node.a, subtracts, False)
    if (factors := _factors(node.a)) is not None:
        return Contraction(*factors, node.b, False, subtracts)
    return None


def _factors(value: Expr) -> tuple[Expr, Expr] | None:
    """The factors of a product; of one that all lanes share, those in all lanes: a vector is rounded as a scalar is."""
    match value:
        case Binary("*", a, b):
            return a, b
        case Broadcast(Binary("*", a, b), lanes):
            return Broadcast(a, lanes), Broadcast(b, lanes)
        case _:
            return None
