"""Pooling over the spatial axes of N, C, …: ``nn.max_pool`` (with or without indices), ``nn.avg_pool``, ``nn.lp_pool``.

Windows that reach beyond the tensor take what is inside of it; what the padding counts for is each operator's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import te
from ..graph.node import Call, Node, tensor_of
from ..graph.types import TensorType, TupleType, Type
from ..ir.dtype import dtype
from ..ir.errors import TypeInferenceError
from ..ir.expr import ONE, ZERO, Axis, Expr, as_index
from ..ir.facts import NO_FACTS, prove
from .accumulate import accumulator, widened
from .attrs import Attrs, all_non_negative, all_positive, attr, one_of, positive
from .registry import Op, OpPattern, register_op
from .relations import tensor_argument
from .strategy import Compute, Tensors, register_compute
from .window import AutoPad, PerAxis, check_ranks, inside, per_axis, resolve_padding, spatial_rank, window_shape


@dataclass(frozen=True)
class PoolAttrs(Attrs):
    window: tuple[int, ...] = attr("extents of the window, per spatial axis", check=all_positive)
    strides: tuple[int, ...] = attr("step of the window, per spatial axis", check=all_positive)
    padding: tuple[int, ...] = attr("border around the spatial axes: all begins, then all ends", check=all_non_negative)
    dilation: tuple[int, ...] = attr("distance of the window's elements, per spatial axis", check=all_positive)
    ceil_mode: bool = attr("whether a last window may reach beyond the padding", default=False)


@dataclass(frozen=True)
class AvgPoolAttrs(PoolAttrs):
    count_include_pad: bool = attr("whether padding counts as elements, of value 0", default=False)


@dataclass(frozen=True)
class LpPoolAttrs(PoolAttrs):
    p: int = attr("exponent of the norm", default=2, check=positive)


@dataclass(frozen=True)
class MaxPoolIndicesAttrs(PoolAttrs):
    storage_order: int = attr(
        "indices count the spatial axes row-major (0) or column-major (1)", default=0, check=one_of(0, 1)
    )


# Types


def _relation(types: Sequence[Type], attrs: PoolAttrs) -> TensorType:
    x = tensor_argument(types[0], "x")
    rank = spatial_rank(x)
    check_ranks(rank, window=attrs.window, strides=attrs.strides, dilation=attrs.dilation, padding=attrs.padding)
    for d in range(rank):
        reach = (attrs.window[d] - 1) * attrs.dilation[d] + 1
        if max(attrs.padding[d], attrs.padding[rank + d]) >= reach:
            raise TypeInferenceError(f"the padding {attrs.padding} leaves windows {attrs.window} without any element")
    spatial = window_shape(x.shape[2:], attrs.window, attrs.strides, attrs.dilation, attrs.padding, attrs.ceil_mode)
    return TensorType((*x.shape[:2], *spatial), x.dtype)


def _float_relation(types: Sequence[Type], attrs: PoolAttrs) -> TensorType:
    result = _relation(types, attrs)
    if not result.dtype.is_float:
        raise TypeInferenceError(f"x must be of floats, found {result.dtype}")
    return result


def _indices_relation(types: Sequence[Type], attrs: PoolAttrs) -> TupleType:
    values = _relation(types, attrs)
    return TupleType((values, TensorType(values.shape, dtype("int64"))))


# Computes


def _place(x: te.Tensor, attrs: PoolAttrs, o: Sequence[Axis], taps: Sequence[Axis]) -> tuple[tuple[Expr, ...], Expr]:
    """Where a tap of an output's window reads, and whether that is inside the tensor."""
    rank = len(o)
    place = tuple(o[d] * attrs.strides[d] + taps[d] * attrs.dilation[d] - attrs.padding[d] for d in range(rank))
    return place, inside(place, x.shape[2:], attrs.padding, [attrs.ceil_mode] * rank)


def _taps(attrs: PoolAttrs) -> list[Axis]:
    return [te.reduce_axis((0, extent), name=f"r{d}") for d, extent in enumerate(attrs.window)]


def _max(attrs: PoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    taps = _taps(attrs)
    lowest = te.min_value(x.dtype)

    def element(n: Axis, c: Axis, *o: Axis) -> Expr:
        place, valid = _place(x, attrs, o, taps)
        return te.max(te.if_then_else(valid, x[(n, c, *place)], lowest), axis=taps)

    return te.compute(tensor_argument(result, "result").shape, element, name="max_pool")


def _max_with_indices(attrs: MaxPoolIndicesAttrs, inputs: Tensors, result: Type) -> Tensors:
    (x,) = inputs
    taps = _taps(attrs)
    assert isinstance(result, TupleType)
    shape = tensor_argument(result.fields[0], "values").shape

    def element(n: Axis, c: Axis, *o: Axis) -> tuple[Expr, ...]:
        place, valid = _place(x, attrs, o, taps)
        return te.argmax(x[(n, c, *place)], axis=taps, where=valid)

    best, tap = te.compute(shape, element, name="max_pool.best")

    def position(n: Axis, c: Axis, *o: Axis) -> Expr:
        within = as_index(tap[(n, c, *o)])
        place: list[Expr] = [ZERO] * len(o)
        for d in reversed(range(len(o))):
            place[d] = o[d] * attrs.strides[d] + within % attrs.window[d] * attrs.dilation[d] - attrs.padding[d]
            within = within // attrs.window[d]
        order = range(len(o)) if attrs.storage_order == 0 else reversed(range(len(o)))
        flat = as_index(n) * x.shape[1] + c
        for d in order:
            flat = flat * x.shape[d + 2] + place[d]
        return te.cast(flat, "int64")

    values = te.compute(shape, lambda *i: best[i], name="max_pool")
    return values, te.compute(shape, position, name="max_pool.indices")


def _sum_pool(
    x: te.Tensor, attrs: PoolAttrs, shape: tuple[Expr, ...], term: Callable[[Expr], Expr], name: str
) -> te.Tensor:
    """The sums over windows, of terms of the elements inside the tensor."""
    taps = _taps(attrs)
    zero = te.const(0, accumulator(x.dtype))

    def element(n: Axis, c: Axis, *o: Axis) -> Expr:
        place, valid = _place(x, attrs, o, taps)
        return te.sum(te.if_then_else(valid, term(widened(x[(n, c, *place)])), zero), axis=taps)

    return te.compute(shape, element, name=name)


def _avg(attrs: AvgPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    sums = _sum_pool(x, attrs, kind.shape, lambda value: value, "avg_pool.sum")

    def element(n: Axis, c: Axis, *o: Axis) -> Expr:
        count: Expr = ONE
        for d in range(len(o)):
            count = count * _count(attrs, x.shape[d + 2], kind.shape[d + 2], as_index(o[d]), d)
        return te.cast(sums[(n, c, *o)] / te.cast(count, sums.dtype), kind.dtype)

    return te.compute(kind.shape, element, name="avg_pool")


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


def _lp(attrs: LpPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    sums = _sum_pool(x, attrs, kind.shape, lambda value: power_of_magnitude(value, attrs.p), "lp_pool.sum")
    return te.compute(kind.shape, lambda *i: te.cast(root(sums[i], attrs.p), kind.dtype), name="lp_pool")


def power_of_magnitude(value: Expr, p: int) -> Expr:
    """|value|ᵖ"""
    if p == 2:
        return value * value
    return te.abs(value) if p == 1 else te.power(te.abs(value), te.const(p, value.dtype))


def root(value: Expr, p: int) -> Expr:
    """The p-th root of a value that is not negative."""
    if p == 2:
        return te.sqrt(value)
    return value if p == 1 else te.power(value, te.const(1 / p, value.dtype))


# Registration


def _register(
    name: str,
    description: str,
    attrs: type[PoolAttrs],
    compute: Compute,
    relation: Callable[[Sequence[Type], PoolAttrs], Type],
    pattern: OpPattern = OpPattern.OUT_ELEMENTWISE_FUSABLE,
) -> Op:
    op = register_op(name, description, [("x", "[N, C, spatial…]")], relation, pattern, attrs, support_level=2)
    register_compute(op, compute)
    return op


MAX_POOL = _register("nn.max_pool", "The largest of each window; NaN if there is one", PoolAttrs, _max, _relation)
MAX_POOL_WITH_INDICES = _register(
    "nn.max_pool_with_indices",
    "The largest element of each window, and the place of the first such in the flattened x, as int64",
    MaxPoolIndicesAttrs,
    _max_with_indices,
    _indices_relation,
    OpPattern.OPAQUE,
)
AVG_POOL = _register("nn.avg_pool", "The mean of each window", AvgPoolAttrs, _avg, _float_relation)
LP_POOL = _register("nn.lp_pool", "The p-norm of each window", LpPoolAttrs, _lp, _float_relation)


# Calls


@dataclass(frozen=True, slots=True)
class _Window:
    """Normalised arguments that all pools share."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


def _window(
    x: Node, window: PerAxis, strides: PerAxis, padding: PerAxis, dilation: PerAxis, auto_pad: AutoPad
) -> _Window:
    kind = tensor_of(x)
    rank = spatial_rank(kind)
    extents = per_axis(window, rank, "window")
    steps, spread = per_axis(strides, rank, "strides"), per_axis(dilation, rank, "dilation")
    return _Window(extents, steps, resolve_padding(kind.shape[2:], extents, steps, spread, padding, auto_pad), spread)


def max_pool(
    x: Node,
    window: PerAxis,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    auto_pad: AutoPad = "NOTSET",
) -> Call:
    """The largest element of each window. Padding never wins."""
    w = _window(x, window, strides, padding, dilation, auto_pad)
    return MAX_POOL(x, attrs=PoolAttrs(w.window, w.strides, w.padding, w.dilation, ceil_mode))


def max_pool_with_indices(
    x: Node,
    window: PerAxis,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    storage_order: int = 0,
    auto_pad: AutoPad = "NOTSET",
) -> Call:
    """``max_pool``, and where in x, flattened, each maximum is. The result is a tuple of both."""
    w = _window(x, window, strides, padding, dilation, auto_pad)
    attrs = MaxPoolIndicesAttrs(w.window, w.strides, w.padding, w.dilation, ceil_mode, storage_order)
    return MAX_POOL_WITH_INDICES(x, attrs=attrs)


def avg_pool(
    x: Node,
    window: PerAxis,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    auto_pad: AutoPad = "NOTSET",
) -> Call:
    """The mean of each window: of its elements in x, or with ``count_include_pad`` of those in the padding as well."""
    w = _window(x, window, strides, padding, dilation, auto_pad)
    attrs = AvgPoolAttrs(w.window, w.strides, w.padding, w.dilation, ceil_mode, count_include_pad)
    return AVG_POOL(x, attrs=attrs)


def lp_pool(
    x: Node,
    window: PerAxis,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    p: int = 2,
    auto_pad: AutoPad = "NOTSET",
) -> Call:
    """The p-norm of each window, (Σ |x|ᵖ)^(1/p)."""
    w = _window(x, window, strides, padding, dilation, auto_pad)
    return LP_POOL(x, attrs=LpPoolAttrs(w.window, w.strides, w.padding, w.dilation, ceil_mode, p))
