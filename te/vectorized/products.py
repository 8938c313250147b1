"""Sums of products as numpy's products of matrices: axes that both factors and the result have are batches."""

from __future__ import annotations

import math

import numpy as np

from ...ir.expr import Binary, Const, Expr, Var
from ...ir.visit import Node, rewrite, walk
from .grid import Array, Grid

_EXACT = 1 << 53
"""Up to here float64 holds all integers."""


def sum_of_products(a: Array, b: Array, spatial: Grid, folded: Grid) -> Array:
    """The sum of ``a * b`` over the folded axes, which come behind the spatial ones. Both are arrays on the grid of all
    of these."""
    kept, ndim = spatial.ndim, spatial.ndim + folded.ndim
    # What only one factor has is summed in it; what none has, as often as there are terms.
    for axis in range(kept, ndim):
        if a.shape[axis] == b.shape[axis] == 1:
            a = a * a.dtype.type(folded.shape[axis - kept])
        elif b.shape[axis] == 1:
            a = a.sum(axis, dtype=a.dtype, keepdims=True)
        elif a.shape[axis] == 1:
            b = b.sum(axis, dtype=b.dtype, keepdims=True)
    has = [(a.shape[axis] != 1, b.shape[axis] != 1) for axis in range(kept)]
    first = next((axis for axis in range(kept) if has[axis][0] != has[axis][1]), None)
    if first is not None and has[first][1]:  # rows are what comes first in the result
        a, b, has = b, a, [(in_b, in_a) for in_a, in_b in has]
    batch, rows, columns, alone = (
        [axis for axis in range(kept) if has[axis] == which]
        for which in ((True, True), (True, False), (False, True), (False, False))
    )
    summed = [*range(kept, ndim)]
    batches = [a.shape[axis] for axis in batch]
    terms = math.prod(a.shape[kept:])
    left = a.transpose(*batch, *rows, *summed, *alone, *columns).reshape(*batches, -1, terms)
    right = b.transpose(*batch, *summed, *columns, *alone, *rows).reshape(*batches, terms, -1)
    outer = [*(a.shape[axis] for axis in rows), *(b.shape[axis] for axis in columns), *(1 for _ in alone)]
    order = [*batch, *rows, *columns, *alone]
    made = _matmul(left, right).reshape([*batches, *outer]).transpose([order.index(axis) for axis in range(kept)])
    return np.broadcast_to(made, spatial.shape)


def _matmul(a: Array, b: Array) -> Array:
    """The product of matrices, in a dtype that numpy has a fast one for, and that holds all sums exactly if integers
    are summed."""
    wider = np.dtype(a.dtype)
    if a.dtype.kind in "iu":
        if _magnitude(a) * _magnitude(b) * a.shape[-1] < _EXACT:
            wider = np.dtype(np.float64)
    elif a.dtype.itemsize < 4:
        wider = np.dtype(np.float32)
    made: Array = np.matmul(a.astype(wider, copy=False), b.astype(wider, copy=False)).astype(a.dtype, copy=False)
    return made


def _magnitude(x: Array) -> int:
    return max(abs(int(x.min())), abs(int(x.max())))


def with_groups(spatial: Grid, product: Binary) -> tuple[Grid, Binary]:
    """The groups of an axis as an axis of their own, where a product reads by them, as grouped convolutions do: so it
    reads without gathering."""
    for node in walk(product):
        match node:
            case Binary("//", Var() as var, Const() as size) if var in spatial.positions:
                position = spatial.positions[var]
                if not spatial.shape[position] % int(size) and not spatial.begins[position]:
                    return _split(spatial, position, size, product)
    return spatial, product


def _split(spatial: Grid, position: int, size: Const, product: Binary) -> tuple[Grid, Binary]:
    """The axis at a position as groups of this size and their members."""
    var = spatial.axes[position]
    group, member = Var(f"{var.name}.group"), Var(f"{var.name}.member")
    whole: Expr = group * size + member
    parts: dict[Node, Expr] = {var: whole}
    parts |= {Binary("//", whole, size): group, Binary("%", whole, size): member}
    split = spatial.with_split(position, {group: spatial.shape[position] // int(size), member: int(size)})
    return split, rewrite(product, lambda node: parts.get(node))  # noqa: PLW0108 - of several overloads
