"""Pooling over the spatial axes: ``nn.max_pool`` (with or without indices), ``nn.avg_pool``, ``nn.lp_pool``.

The result has the layout of x. Windows that reach beyond the tensor take what is inside of it; what the padding counts
for is each operator's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import dtype
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, TupleType, Type
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition import folds
from ..definition.arguments import PerAxis, naming, per_axis
from ..definition.condition import Clause, clause
from ..definition.cost import moved
from ..definition.layout_rule import follow_layout
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import reduce_schedule
from ..definition.registry import Op, OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import Compute, OpStrategy, register_compute, register_reduce_schedule, register_strategy
from .conv.flat import lanes_for
from .global_pool import fold_positions, of_planes
from .pool_definition import (
    MakeFold,
    avg_fold,
    avg_pooled,
    lp_fold,
    lp_pooled,
    max_fold,
    max_pooled,
    max_pooled_with_indices,
)
from .pool_windows import (
    LONG_WINDOW,
    SHORT_IMAGE,
    AvgPoolAttrs,
    LpPoolAttrs,
    MaxPoolIndicesAttrs,
    PoolAttrs,
    WindowAttrs,
    spatial_of,
)
from .reduce import RowStages, rows_schedule
from .separable_pool import SHORT_ROW, PooledStages, SeparablePool
from .window import (
    AutoPad,
    axis_extents,
    check_ranks,
    rank_in,
    resolve_padding,
    spatial_axes,
    window_shape,
)

GROUP = OpGroup.POOLING


# Types


def _relation(types: Sequence[Type], attrs: PoolAttrs) -> TensorType:
    x = tensor_argument(types[0], "x")
    shape = _pooled(_extents(x, attrs.data, attrs), attrs)
    return TensorType(attrs.data.shape(shape), x.dtype)


def _extents(x: TensorType, layout: Layout, attrs: WindowAttrs) -> dict[str, Expr]:
    return axis_extents(x, layout.text, attrs.primal.text, "C", ("x", "layout"))


def _pooled(extents: Mapping[str, Expr], attrs: WindowAttrs) -> dict[str, Expr]:
    """The extents of what pooling gives, by axis."""
    rank = len(attrs.window)
    axes = spatial_axes(rank)
    check_ranks(rank, window=attrs.window, strides=attrs.strides, dilation=attrs.dilation, padding=attrs.padding)
    for d in range(rank):
        reach = (attrs.window[d] - 1) * attrs.dilation[d] + 1
        if max(attrs.padding[d], attrs.padding[rank + d]) >= reach:
            raise TypeInferenceError(f"the padding {attrs.padding} leaves windows {attrs.window} without any element")
    spatial = [extents[axis] for axis in axes]
    made = window_shape(spatial, attrs.window, attrs.strides, attrs.dilation, attrs.padding, attrs.ceil_mode)
    return {**extents, **dict(zip(axes, made, strict=True))}


def _float_relation(types: Sequence[Type], attrs: PoolAttrs) -> TensorType:
    result = _relation(types, attrs)
    if not result.dtype.is_float:
        raise TypeInferenceError(f"x must be of floats, found {result.dtype}")
    return result


def _indices_relation(types: Sequence[Type], attrs: WindowAttrs) -> TupleType:
    x = tensor_argument(types[0], "x")
    shape = _pooled(_extents(x, attrs.primal, attrs), attrs)
    values = TensorType(attrs.primal.shape(shape), x.dtype)
    return TupleType((values, TensorType(values.shape, dtype("int64"))))


# Whole images


def _whole(name: str, make: MakeFold, fold: folds.Fold, order: folds.LaneOrder | None) -> Compute:
    """The only window of each channel, which all of the image is in, folded as global pools fold it."""

    def compute(attrs: PoolAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = tensor_argument(result, "result")
        parts = make(attrs, x, kind)
        folded = fold_positions(attrs.layout, x, kind, parts.term, fold, name, order)
        whole = folded.result
        return RowStages(te.compute(kind.shape, lambda *i: parts.finish(whole[i], i), name=name), folded.totals)

    return compute


def _are_whole(attrs: PoolAttrs, x: TensorType, result: TensorType) -> list[Clause]:
    """There is one window, and all of the image is in it; of images of open extents that is asked of long windows only,
    since code of its own for others is seldom used."""
    rank = len(attrs.window)
    positions = const_int(simplify(prod(spatial_of(x.shape, attrs), start=ONE)))
    several = positions is not None and positions >= SHORT_IMAGE
    long = several or all(window > LONG_WINDOW for window in attrs.window)
    reach = [window - begin for window, begin in zip(attrs.window, attrs.padding[:rank], strict=True)]
    inside = [extent <= most for extent, most in zip(spatial_of(x.shape, attrs), reach, strict=True)]
    single = [outputs <= 1 for outputs in spatial_of(result.shape, attrs)]
    served = [clause("long windows, or whole images", long), clause("no dilation", set(attrs.dilation) == {1})]
    return [*served, *(clause("an image in one window", each) for each in (*inside, *single))]


# Axis by axis


def _add_separable(
    strategy: OpStrategy, attrs: PoolAttrs, inputs: Sequence[Type], result: Type, target: Target, make: MakeFold
) -> None:
    x, kind = tensor_argument(inputs[0], "x"), tensor_argument(result, "result")
    lanes, outputs = target.lanes(kind.dtype), const_int(kind.shape[attrs.data.position("W")])
    if attrs.data.axes[-1].name == "W":
        lanes = lanes_for(outputs or lanes, lanes)
    strides, padding, dilation = attrs.strides, attrs.padding, attrs.dilation
    plan = SeparablePool(attrs.data, attrs.window, strides, padding, dilation, attrs.ceil_mode, outputs or 0, lanes)

    def compute(attrs: PoolAttrs, inputs: Tensors, result: Type) -> PooledStages:
        kind = tensor_argument(result, "result")
        return plan.compute(inputs[0], kind, make(attrs, inputs[0], kind))

    served = [clause("short windows", plan.has_short_windows), clause("images around rows", plan.row > 0)]
    cost = plan.cost(x, kind)
    if plan.along_rows and outputs is None and lanes >= 2 * SHORT_ROW:
        short = replace(plan, lanes=SHORT_ROW, outputs=SHORT_ROW)  # before what costs as much
        with strategy.specialized(*served, clause("short rows", kind.shape[plan.row] <= SHORT_ROW)):
            strategy.add_implementation(
                compute, short.schedule, "pool.separable_short_rows", keeps_order=False, cost=cost
            )
    with strategy.specialized(*served):
        strategy.add_implementation(compute, plan.schedule, "pool.separable", keeps_order=False, cost=cost)


# Registration


def _register(
    name: str,
    description: str,
    attrs: type[WindowAttrs],
    compute: Compute,
    relation: Callable[[Sequence[Type], Any], Type],
    fold: MakeFold,
    reducer: folds.Fold,
) -> Op:
    arguments = [("x", "[N, C, spatial…], or in its layout")]
    pattern = OpPattern.OUT_ELEMENTWISE_FUSABLE
    rule = follow_layout(lambda call: call.attrs.primal)
    op = register_op(name, description, arguments, relation, pattern, attrs, support_level=2, layout_rule=rule)

    @register_strategy(op)
    def strategy(attrs: PoolAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
        made = OpStrategy()
        made.add_implementation(compute, reduce_schedule.for_target(target), f"{name}.generic")
        _add_separable(made, attrs, inputs, result, target, fold)
        with made.specialized(*_are_whole(attrs, tensor_argument(inputs[0], "x"), tensor_argument(result, "result"))):
            planes = of_planes(attrs.layout, tensor_argument(inputs[0], "x"))
            compute_whole = _whole(name.removeprefix("nn."), fold, reducer, folds.LONG_ROWS if planes else None)
            schedule = rows_schedule if planes else reduce_schedule.for_target(target)
            made.add_implementation(compute_whole, schedule, f"{name}.whole", cost=moved([*inputs, result]))
        return made

    return op


MAX_POOL = _register(
    "nn.max_pool", "The largest of each window; NaN if there is one", PoolAttrs, max_pooled, _relation, max_fold, te.max
)
AVG_POOL = _register(
    "nn.avg_pool", "The mean of each window", AvgPoolAttrs, avg_pooled, _float_relation, avg_fold, te.sum
)
LP_POOL = _register("nn.lp_pool", "The p-norm of each window", LpPoolAttrs, lp_pooled, _float_relation, lp_fold, te.sum)
MAX_POOL_WITH_INDICES = register_op(
    "nn.max_pool_with_indices",
    "The largest element of each window, and the place of the first such in the flattened x, as int64",
    [("x", "[N, C, spatial…]")],
    _indices_relation,
    OpPattern.OPAQUE,
    MaxPoolIndicesAttrs,
    support_level=2,
)
register_compute(MAX_POOL_WITH_INDICES, max_pooled_with_indices)
register_reduce_schedule(MAX_POOL_WITH_INDICES)


# Calls


@dataclass(frozen=True, slots=True)
class _Window:
    """Normalised arguments that all pools share."""

    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


def _window(
    op: Op,
    x: Node,
    window: PerAxis,
    strides: PerAxis,
    padding: PerAxis,
    dilation: PerAxis,
    auto_pad: AutoPad,
    layout: str = "",
) -> _Window:
    with naming(op.name, x):
        kind = tensor_of(x)
        rank = rank_in(kind, layout)
        axes = spatial_axes(rank)
        found = axis_extents(kind, layout or f"NC{axes}", f"NC{axes}", "C", ("x", "layout"))
        spatial = [found[axis] for axis in axes]
        extents = per_axis(window, rank, "window")
        steps, spread = per_axis(strides, rank, "strides"), per_axis(dilation, rank, "dilation")
        return _Window(extents, steps, resolve_padding(spatial, extents, steps, spread, padding, auto_pad), spread)


def max_pool(
    x: Node,
    window: PerAxis,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    auto_pad: AutoPad = "NOTSET",
    layout: str = "",
) -> Call:
    """The largest element of each window. Padding never wins."""
    w = _window(MAX_POOL, x, window, strides, padding, dilation, auto_pad, layout)
    return MAX_POOL(x, attrs=PoolAttrs(w.window, w.strides, w.padding, w.dilation, ceil_mode, layout))


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
    w = _window(MAX_POOL_WITH_INDICES, x, window, strides, padding, dilation, auto_pad)
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
    layout: str = "",
) -> Call:
    """The mean of each window: of its elements in x, or with ``count_include_pad`` of those in the padding as well."""
    w = _window(AVG_POOL, x, window, strides, padding, dilation, auto_pad, layout)
    attrs = AvgPoolAttrs(w.window, w.strides, w.padding, w.dilation, ceil_mode, layout, count_include_pad)
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
    layout: str = "",
) -> Call:
    """The p-norm of each window, (Σ |x|ᵖ)^(1/p)."""
    w = _window(LP_POOL, x, window, strides, padding, dilation, auto_pad, layout)
    return LP_POOL(x, attrs=LpPoolAttrs(w.window, w.strides, w.padding, w.dilation, ceil_mode, layout, p))
