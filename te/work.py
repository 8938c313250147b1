"""How much work a definition is: arithmetic operations by the textbook, whatever schedule it will have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir.constants import ONE, ZERO
from ..ir.expr import Axis, Binary, Call, Cast, Expr, IfThenElse, Let, Select, Unary
from ..ir.simplify import simplify
from .order import operations_behind
from .tensor import ComputeOp, PlaceholderOp, Tensor

_OPERATIONS = {"arithmetic_fence": 0, "fma": 2, "dot2": 4, "dot4": 8}
"""Of calls that do not count as one multiplication, addition or function."""


def operations(outputs: Sequence[Tensor]) -> Expr:
    """Additions, multiplications, divisions, minima, maxima and calls of functions that it takes to compute the outputs
    once from placeholders: each counts 1, an ``fma`` 2. Comparisons, and arithmetic of indices, do not count.

    0 where the definition does not tell: in scans, externs, and reductions over ragged axes.
    """
    total: Expr = ZERO
    for op in operations_behind(outputs):
        if isinstance(op, PlaceholderOp):
            continue
        if not isinstance(op, ComputeOp) or op.ragged_axes:
            return ZERO
        reduction = op.reduction
        bodies = op.body if reduction is None else (*reduction.sources, *reduction.combiner.results)
        total = total + _product([*op.axis, *op.reduce_axis]) * _count(bodies)
    return simplify(total)


def _product(axes: Iterable[Axis]) -> Expr:
    product = ONE
    for axis in axes:
        product = product * axis.extent
    return product


def _count(values: Iterable[Expr]) -> int:
    """The operations of expressions; what stands in them twice is computed once."""
    seen: set[Expr] = set()
    waiting, count = list(values), 0
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        match node:
            case Binary() | Unary():
                count += 1
            case Call(name):
                count += _OPERATIONS.get(name, 1)
        waiting.extend(_operands(node))
    return count


def _operands(node: Expr) -> Sequence[Expr]:
    """The parts of an expression that are values: no indices, and no conditions."""
    match node:
        case Binary(_, a, b) | Select(_, a, b) | IfThenElse(_, a, b):
            return a, b
        case Unary(_, a) | Cast(_, a):
            return (a,)
        case Let(_, value, body):
            return value, body
        case Call(_, args):
            return args
        case _:
            return ()
