"""Indices whose quotients and remainders cancel become the sums of loops that they are.

Elements of a tensor that is read in another shape have such: ``i // 480 * 480 + i // 48 % 10 * 48 + i % 48`` is ``i``.
Where i is ``outer * 64 + inner``, the simplifier has taken each quotient apart in another way, and finds nothing to put
together. Then the index is computed for all iterations of the loops around, if these are known and not too many: where
it grows by the same number along each of them, it is replaced. That is a proof, since all of them are tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...ir.constants import const, const_int
from ...ir.contents import divides, free_vars
from ...ir.expr import Binary, Const, Expr, Load, Var
from ...ir.simplify import simplify
from ...ir.stmt import For, PrimFunc, Store
from ...ir.visit import Node, rewrite, walk, with_body

MOST_ITERATIONS = 1 << 21
"""An index is tried for so many at most, which takes some tens of milliseconds."""
SOME = 8
"""So many numbers of each range, or somewhat more, are tried first."""
Numbers: TypeAlias = npt.NDArray[np.int64]


def affine_indices(func: PrimFunc) -> PrimFunc:
    """The function with such indices replaced; the same object if it has none."""
    ranges = _known_ranges(func)
    known: dict[Expr, Expr] = {}

    def straight(index: Expr) -> Expr:
        if index not in known:
            found = _affine(index, ranges)
            known[index] = index if found is None else found
        return known[index]

    def visit(node: Node) -> Node | None:
        if not isinstance(node, (Load, Store)) or all(straight(index) is index for index in node.indices):
            return None
        return replace(node, indices=tuple(map(straight, node.indices)))

    return with_body(func, rewrite(func.body, visit))


def _known_ranges(func: PrimFunc) -> dict[Var, range]:
    """What each variable runs over whose loops all have known bounds: from the first of these to the last."""
    found: dict[Var, range] = {}
    unknown: set[Var] = set()
    for loop in (node for node in walk(func.body) if isinstance(node, For)):
        low, extent = const_int(loop.min), const_int(loop.extent)
        if low is None or extent is None:
            unknown.add(loop.var)
        elif extent > 0:
            before = found.get(loop.var, range(low, low + extent))
            found[loop.var] = range(min(before.start, low), max(before.stop, low + extent))
    return {var: numbers for var, numbers in found.items() if var not in unknown}


def _affine(index: Expr, ranges: Mapping[Var, range]) -> Expr | None:
    """The index as a sum of multiples of variables; None if it is none, or has too many values to know."""
    variables = list(dict.fromkeys(free_vars(index)))
    if not divides(index) or not all(var in ranges for var in variables):
        return None
    if math.prod(len(ranges[var]) for var in variables) > MOST_ITERATIONS:
        return None
    if _sum_over(index, {var: _some_of(ranges[var]) for var in variables}) is None:
        return None
    return _sum_over(index, {var: np.array(ranges[var], np.int64) for var in variables})


def _some_of(numbers: range) -> Numbers:
    """A few numbers of a range in order, the first two among them: most indices are no sums for these already."""
    count = len(numbers)
    chosen = {*range(min(count, SOME)), *range(0, count, -(-count // SOME)), count - 1}
    return np.array([numbers[k] for k in sorted(chosen)], np.int64)


def _sum_over(index: Expr, numbers: Mapping[Var, Numbers]) -> Expr | None:
    """The sum of multiples of variables that an index is for all of these numbers."""
    mesh = dict(zip(numbers, np.ix_(*numbers.values()), strict=True))
    found = _values(index, mesh)
    if found is None:
        return None
    found = np.broadcast_to(found, [len(each) for each in numbers.values()])
    origin = int(found[(0,) * found.ndim])
    total, values = const(origin, index.dtype), np.array(origin, np.int64)
    for axis, (var, along) in enumerate(mesh.items()):
        first = int(numbers[var][0])
        step = int(found[tuple(int(k == axis) for k in range(found.ndim))]) - origin if along.size > 1 else 0
        values = values + step * (along - first)
        total = total + (var - first) * step
    return simplify(total) if np.array_equal(found, np.broadcast_to(values, found.shape)) else None


def _values(e: Expr, numbers: Mapping[Var, Numbers]) -> Numbers | None:
    """What an expression is for these numbers; None for one that has more than integer arithmetic."""
    match e:
        case Const(int(value)):
            return np.array(value, np.int64)
        case Var():
            return numbers[e]
        case Binary(op, x, y) if op in _ARITHMETIC:
            a, b = _values(x, numbers), _values(y, numbers)
            if a is None or b is None or (op in ("//", "%") and not b.all()):
                return None
            result: Numbers = _ARITHMETIC[op](a, b)
            return result
        case _:
            return None


_ARITHMETIC = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
}
