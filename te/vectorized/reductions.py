"""Reductions on a grid of spatial axes and those that are folded.

A sum of products is a product of matrices. All others are folded a slab of some million points at a time: by numpy's
own functions where the combiner is one, else in pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.expr import Binary, Combiner, Reduce, Var
from ..tensor import Tensor
from .grid import POINT, Array, Grid
from .products import sum_of_products, with_groups
from .values import Value, Values

SLAB = 1 << 21
"""So many points are evaluated at a time, where they are folded in slabs."""
FEW = 16
"""So few terms are folded one by one, which are vectors then as long as all others are."""
_FUNCTIONS = {"+": np.add, "*": np.multiply, "min": np.minimum, "max": np.maximum}


def reduced(
    reduction: Reduce, spatial: Grid, folded: Grid, tensors: Mapping[Tensor, Array], bound: Mapping[Var, Value]
) -> list[Array]:
    """An array for each value that the combiner folds, on the spatial axes."""
    if (product := _product_of(reduction)) is not None and spatial.size and folded.size:
        groups, product = with_groups(spatial, product)
        values = Values(groups.joined(folded), tensors, bound)
        a, b = (_on_grid(values.of(factor), groups.ndim + folded.ndim) for factor in (product.a, product.b))
        return [sum_of_products(a, b, groups, folded).reshape(spatial.shape)]
    kinds = [source.dtype.to_numpy() for source in reduction.sources]
    start = Values(POINT, {}, bound)
    neutral = [start.of(e) for e in reduction.combiner.identity]
    results = [np.full(spatial.shape, value, kind) for value, kind in zip(neutral, kinds, strict=True)]
    for slab in _slabs(spatial, folded):
        both = spatial.joined(slab)
        values = Values(both, tensors, bound)
        terms = [np.asarray(values.of(source), kind) for source, kind in zip(reduction.sources, kinds, strict=True)]
        if reduction.condition is not None:
            holds = values.of(reduction.condition)
            terms = [np.where(holds, term, value) for term, value in zip(terms, neutral, strict=True)]
        flat = [np.broadcast_to(term, both.shape).reshape(*spatial.shape, slab.size) for term in terms]
        results = _combined(reduction.combiner, results, _folded(reduction.combiner, flat, bound), bound)
    return [result.astype(kind, copy=False) for result, kind in zip(results, kinds, strict=True)]


def _on_grid(value: Value, ndim: int) -> Array:
    array = np.asarray(value)
    return array if array.ndim else array.reshape((1,) * ndim)


def _slabs(spatial: Grid, folded: Grid) -> Iterator[Grid]:
    """The folded axes in parts: the outer ones value by value, as far as the inner ones have too many points."""
    if not folded.size or not spatial.size:
        return
    shape, outer = folded.shape, 0
    while outer < len(shape) and (folded.size <= FEW or math.prod(shape[outer:]) * spatial.size > SLAB):
        outer += 1
    for number in itertools.product(*map(range, shape[:outer])):
        yield folded.within([*((k, k + 1) for k in number), *((0, count) for count in shape[outer:])])


def _folded(combiner: Combiner, terms: Sequence[Array], bound: Mapping[Var, Value]) -> list[Array]:
    """The terms along the last axis folded to one, each with its neighbour again and again: they keep their order."""
    function = _function_of(combiner)
    if function is not None and terms[0].shape[-1] > 1:
        return [function.reduce(term, axis=-1, dtype=term.dtype) for term in terms]
    while (count := terms[0].shape[-1]) > 1:
        even = count // 2 * 2
        made = _combined(combiner, [t[..., 0:even:2] for t in terms], [t[..., 1:even:2] for t in terms], bound)
        terms = [np.concatenate([m, t[..., even:]], -1) for m, t in zip(made, terms, strict=True)]
    return [term[..., 0] for term in terms]


def _combined(
    combiner: Combiner, left: Sequence[Array], right: Sequence[Array], bound: Mapping[Var, Value]
) -> list[Array]:
    sides = (*zip(combiner.lhs, left, strict=True), *zip(combiner.rhs, right, strict=True))
    values = Values(POINT, {}, {**bound, **dict[Any, Any](sides)})
    return [np.asarray(values.of(result)) for result in combiner.results]


def _product_of(reduction: Reduce) -> Binary | None:
    """The product that a plain sum is of."""
    source = reduction.sources[0]
    is_sum = reduction.condition is None and _function_of(reduction.combiner) is np.add
    return source if is_sum and isinstance(source, Binary) and source.op == "*" else None


def _function_of(combiner: Combiner) -> np.ufunc | None:
    """The function of numpy that a combiner of single values is, if it is one."""
    result = combiner.results[0]
    if len(combiner.results) > 1 or not isinstance(result, Binary):
        return None
    return _FUNCTIONS.get(result.op) if {result.a, result.b} == {*combiner.lhs, *combiner.rhs} else None
