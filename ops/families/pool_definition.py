"""What pooling computes: the fold of each window, which takes what is inside of the tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

from ... import te
from ...graph.layout import source_index
from ...graph.types import TensorType, Type, leaf_types
from ...ir.constants import ZERO
from ...ir.expr import Axis, Expr
from ...ir.facts import NO_FACTS, prove
from ...ir.makers import as_index
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.relations import tensor_argument
from .pool_windows import (
    AvgPoolAttrs,
    LpPoolAttrs,
    MaxPoolIndicesAttrs,
    PoolAttrs,
    place_of,
    power_of_magnitude,
    read_of,
    root,
    spatial_of,
    taps_of,
)
from .separable_pool import Fold


def max_pooled(attrs: PoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    """The largest element of each window that is inside of x, in the shape of the result."""
    (x,) = inputs
    taps = taps_of(attrs, spatial_of(x.shape, attrs))

    def element(*index: Axis) -> Expr:
        value, valid = read_of(x, attrs, index, taps)
        return te.max(te.if_then_else(valid, value, te.min_value(x.dtype)), axis=taps)

    return te.compute(tensor_argument(result, "result").shape, element, name="max_pool")


def max_pooled_with_indices(attrs: MaxPoolIndicesAttrs, inputs: Tensors, result: Type) -> Tensors:
    """The largest element of each window, and where in the flattened x the first such is."""
    (x,) = inputs
    taps = taps_of(attrs, x.shape[2:])
    values, _ = leaf_types(result)
    shape = values.shape

    def element(n: Axis, c: Axis, *o: Axis) -> tuple[Expr, ...]:
        place, valid = place_of(x.shape[2:], attrs, [as_index(i) for i in o], taps)
        return te.argmax(x[(n, c, *place)], axis=taps, where=valid)

    best, tap = te.compute(shape, element, name="max_pool.best")

    def position(n: Axis, c: Axis, *o: Axis) -> Expr:
        within = as_index(tap[(n, c, *o)])
        place: list[Expr] = [ZERO] * len(o)
        for d in reversed(range(len(o))):
            place[d] = o[d] * attrs.strides[d] + within % taps[d].extent * attrs.dilation[d] - attrs.padding[d]
            within = within // taps[d].extent
        order = range(len(o)) if attrs.storage_order == 0 else reversed(range(len(o)))
        flat = as_index(n) * x.shape[1] + c
        for d in order:
            flat = flat * x.shape[d + 2] + place[d]
        return te.cast(flat, "int64")

    largest = te.compute(shape, lambda *i: best[i], name="max_pool")
    return largest, te.compute(shape, position, name="max_pool.indices")


def _sum_pool(
    x: te.Tensor, attrs: PoolAttrs, shape: tuple[Expr, ...], term: Callable[[Expr], Expr], name: str
) -> te.Tensor:
    """The sums over windows, of terms of the elements inside the tensor."""
    taps = taps_of(attrs, spatial_of(x.shape, attrs))
    zero = te.const(0, accumulator(x.dtype))

    def element(*index: Axis) -> Expr:
        value, valid = read_of(x, attrs, index, taps)
        return te.sum(te.if_then_else(valid, term(widened(value)), zero), axis=taps)

    return te.compute(shape, element, name=name)


def avg_pooled(attrs: AvgPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    """The mean of each window, of as many elements as the attributes say count."""
    (x,) = inputs
    kind = tensor_argument(result, "result")
    sums = _sum_pool(x, attrs, kind.shape, lambda value: value, "avg_pool.sum")
    mean = _mean_of(attrs, x, kind)
    return te.compute(kind.shape, lambda *i: mean(sums[i], i), name="avg_pool")


def _mean_of(attrs: AvgPoolAttrs, x: te.Tensor, kind: TensorType) -> Callable[[Expr, Sequence[Axis]], Expr]:
    """What the sum of a window becomes at a place of the result."""
    extents = list(zip(spatial_of(x.shape, attrs), spatial_of(kind.shape, attrs), strict=True))

    def mean(total: Expr, index: Sequence[Axis]) -> Expr:
        _, _, *o = source_index([as_index(i) for i in index], attrs.primal, attrs.data)
        counts = (_count(attrs, extent, outputs, o[d], d) for d, (extent, outputs) in enumerate(extents))
        # Numbers are multiplied, which lanes do at once; wide integers they do not.
        count = reduce(operator.mul, (te.cast(each, total.dtype) for each in counts))
        return te.cast(total / count, kind.dtype)

    return mean


def _count(attrs: AvgPoolAttrs, extent: Expr, outputs: Expr, o: Expr, d: int) -> Expr:
    """How many elements of window ``o`` count on an axis; a plain number where that is the same for all windows."""
    window, step, spread = attrs.window[d], attrs.strides[d], attrs.dilation[d]
    begin_pad, end_pad = attrs.padding[d], attrs.padding[d + len(attrs.window)]
    before, after = (begin_pad, end_pad) if attrs.count_include_pad else (0, 0)
    begin = o * step - begin_pad
    # Taps begin + j * spread with -before <= … < extent + after count.
    first = as_index(0) if begin_pad == before else te.maximum(-((begin + before) // spread), 0)
    room = (extent + (after - 1) - begin) // spread + 1
    last_room = (extent + (after - 1) - ((outputs - 1) * step - begin_pad)) // spread + 1
    fits = prove(last_room >= window, NO_FACTS)
    return (as_index(window) if fits else te.minimum(room, window)) - first


def lp_pooled(attrs: LpPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    """The p-norm of each window: the root of the sum of its magnitudes, each to the power of p."""
    (x,) = inputs
    kind = tensor_argument(result, "result")
    sums = _sum_pool(x, attrs, kind.shape, lambda value: power_of_magnitude(value, attrs.p), "lp_pool.sum")
    return te.compute(kind.shape, lambda *i: te.cast(root(sums[i], attrs.p), kind.dtype), name="lp_pool")


def max_fold(attrs: PoolAttrs, x: te.Tensor, kind: TensorType) -> Fold:
    """The fold that gives the largest element of a window, for computes that join elements in their own order."""
    return Fold(te.min_value(x.dtype), lambda value: value, te.maximum, lambda best, _: best)


def avg_fold(attrs: AvgPoolAttrs, x: te.Tensor, kind: TensorType) -> Fold:
    """The fold that gives the mean of a window, for computes that join elements in their own order."""
    return Fold(te.const(0, accumulator(x.dtype)), widened, operator.add, _mean_of(attrs, x, kind))


def lp_fold(attrs: LpPoolAttrs, x: te.Tensor, kind: TensorType) -> Fold:
    """The fold that gives the p-norm of a window, for computes that join elements in their own order."""

    def term(value: Expr) -> Expr:
        return power_of_magnitude(widened(value), attrs.p)

    zero = te.const(0, accumulator(x.dtype))
    return Fold(zero, term, operator.add, lambda total, _: te.cast(root(total, attrs.p), kind.dtype))


MakeFold: TypeAlias = Callable[[Any, te.Tensor, TensorType], Fold]
"""Makes the fold of a pool, of its attributes, x, and the type of the result."""
