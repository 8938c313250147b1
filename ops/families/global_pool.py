"""Pooling over all spatial axes at once: ``nn.global_max_pool``, ``nn.global_avg_pool``, ``nn.global_lp_pool``.

The result has the layout of x. Where the spatial axes are last, sums are kept in ``LANES`` parts that are added up in
the end, so that they vectorize along them; small planes are folded side by side. Else vectors are of channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ... import te
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.constants import ONE
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...ir.row_major import unravel_index
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.attrs import Attrs, attr, positive
from ..definition.condition import clause
from ..definition.cost import moved
from ..definition.folds import SHORT_ROWS, Fold, LaneOrder, are_short_rows
from ..definition.layout_rule import follow_layout
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import reduce_schedule
from ..definition.registry import Op, OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import Compute, OpStrategy, register_strategy
from .pool_windows import power_of_magnitude, root
from .reduce import RowStages, RowTotals, fold_axes, short_rows_schedule
from .window import LAYOUT, axis_extents, rank_in, spatial_axes

GROUP = OpGroup.POOLING

LANES = 16


@dataclass(frozen=True)
class GlobalPoolAttrs(Attrs):
    """The attributes of ``nn.global_max_pool`` and ``nn.global_avg_pool``."""

    layout: str = attr(LAYOUT, default="")


@dataclass(frozen=True)
class GlobalLpPoolAttrs(GlobalPoolAttrs):
    """The attributes of ``nn.global_lp_pool``."""

    p: int = attr("exponent of the norm", default=2, check=positive)


def _relation(types: Sequence[Type], attrs: GlobalPoolAttrs) -> TensorType:
    x = tensor_argument(types[0], "x")
    layout, axes = _layout(attrs.layout, x)
    extents = axis_extents(x, layout.text, f"NC{axes}", "C", ("x", "layout"))
    return TensorType(layout.shape({**extents, **dict.fromkeys(axes, ONE)}), x.dtype)


def _layout(text: str, x: TensorType) -> tuple[Layout, str]:
    """The layout of x, that of planes unless one is given, and its spatial axes."""
    axes = spatial_axes(rank_in(x, text))
    return Layout(text or f"NC{axes}"), axes


def _float_relation(types: Sequence[Type], attrs: GlobalPoolAttrs) -> TensorType:
    result = _relation(types, attrs)
    if not result.dtype.is_float:
        raise TypeInferenceError(f"x must be of floats, found {result.dtype}")
    return result


def fold_planes(
    layout: str,
    x: te.Tensor,
    result: TensorType,
    term: Callable[[Expr], Expr],
    fold: Fold,
    name: str,
    order: LaneOrder | None,
) -> RowStages:
    """The terms of all elements of a channel, folded, in the shape of the result; by an ``order`` planes are rows."""
    made, axes = _layout(layout, result)
    if made is Layout(f"NC{axes}"):
        if order is None:
            sums = RowTotals(_fold_in_lanes(x, term, fold, name), x.shape[:2])
        else:
            sums = fold_axes(f"{name}.whole", x.shape, range(2, x.ndim), fold, lambda i: term(x[i]), order)
        whole = te.compute(result.shape, lambda n, c, *_: sums[n, c], name=f"{name}.all")
        return RowStages(whole, (sums.tensor,))
    positions = {made.position(axis): te.reduce_axis((0, x.shape[made.position(axis)]), name=axis) for axis in axes}

    def element(*index: Axis) -> Expr:
        source = term(x[tuple(positions.get(d, i) for d, i in enumerate(index))])
        return fold(source, axis=list(positions.values()), where=None)

    return RowStages(te.compute(result.shape, element, name=f"{name}.whole"), ())


def _fold_in_lanes(x: te.Tensor, term: Callable[[Expr], Expr], fold: Fold, name: str) -> te.Tensor:
    """The sums, [N, C], folded in lanes."""
    size: Expr = ONE
    for extent in x.shape[2:]:
        size = simplify(size * extent)
    steps = te.reduce_axis((0, simplify((size + (LANES - 1)) // LANES)), name="s")

    def part(n: Axis, c: Axis, lane: Axis) -> Expr:
        flat = steps * LANES + lane
        return fold(term(x[(n, c, *unravel_index(flat, x.shape[2:]))]), axis=steps, where=flat < size)

    parts = te.compute((*x.shape[:2], LANES), part, name=f"{name}.parts")
    lane = te.reduce_axis((0, LANES), name="lane")
    return te.compute(x.shape[:2], lambda n, c: fold(parts[n, c, lane], axis=lane, where=None), name=f"{name}.whole")


def _max(order: LaneOrder | None) -> Compute:
    def compute(attrs: GlobalPoolAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = tensor_argument(result, "result")
        folded = fold_planes(attrs.layout, x, kind, lambda value: value, te.max, "global_max_pool", order)
        whole = folded.result
        return RowStages(te.compute(kind.shape, lambda *i: whole[i], name="global_max_pool"), folded.totals)

    return compute


def _avg(order: LaneOrder | None) -> Compute:
    def compute(attrs: GlobalPoolAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = tensor_argument(result, "result")
        folded = fold_planes(attrs.layout, x, kind, widened, te.sum, "global_avg_pool", order)
        count = as_index(1)
        layout, axes = _layout(attrs.layout, kind)
        for axis in axes:
            count = count * x.shape[layout.position(axis)]
        count = te.cast(count, accumulator(x.dtype))
        whole = folded.result
        mean = te.compute(kind.shape, lambda *i: te.cast(whole[i] / count, kind.dtype), name="global_avg_pool")
        return RowStages(mean, folded.totals)

    return compute


def _lp(order: LaneOrder | None) -> Compute:
    def compute(attrs: GlobalLpPoolAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = tensor_argument(result, "result")

        def power(value: Expr) -> Expr:
            return power_of_magnitude(widened(value), attrs.p)

        folded = fold_planes(attrs.layout, x, kind, power, te.sum, "global_lp_pool", order)
        whole = folded.result
        norm = te.compute(kind.shape, lambda *i: te.cast(root(whole[i], attrs.p), kind.dtype), name="global_lp_pool")
        return RowStages(norm, folded.totals)

    return compute


# Registration


def _primal(call: Call) -> Layout:
    x = tensor_argument(call.args[0].type, "x")
    return Layout(f"NC{spatial_axes(rank_in(x, ''))}")


def _register(
    name: str,
    description: str,
    attrs: type[GlobalPoolAttrs],
    compute: Callable[[LaneOrder | None], Compute],
    relation: Callable[..., Type],
) -> Op:
    arguments = [("x", "[N, C, spatial…], or in its layout")]
    pattern = OpPattern.OUT_ELEMENTWISE_FUSABLE
    rule = follow_layout(_primal)
    op = register_op(name, description, arguments, relation, pattern, attrs, support_level=2, layout_rule=rule)

    @register_strategy(op)
    def strategy(attrs: GlobalPoolAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
        x = tensor_argument(inputs[0], "x")
        layout, axes = _layout(attrs.layout, x)
        made = OpStrategy()
        made.add_implementation(compute(None), reduce_schedule.for_target(target), f"{name}.generic")
        planes = layout is Layout(f"NC{axes}") and are_short_rows(range(2, x.ndim), x.shape)
        with made.specialized(clause("planes of a few vectors", planes)):
            made.add_implementation(
                compute(SHORT_ROWS), short_rows_schedule, f"{name}.short_rows", cost=moved([x, result])
            )
        return made

    return op


GLOBAL_MAX_POOL = _register(
    "nn.global_max_pool", "The largest element of each channel; NaN if there is one", GlobalPoolAttrs, _max, _relation
)
GLOBAL_AVG_POOL = _register("nn.global_avg_pool", "The mean of each channel", GlobalPoolAttrs, _avg, _float_relation)
GLOBAL_LP_POOL = _register("nn.global_lp_pool", "The p-norm of each channel", GlobalLpPoolAttrs, _lp, _float_relation)


# Calls


def global_max_pool(x: Node, layout: str = "") -> Call:
    """The largest element of each channel, as [N, C, 1…]."""
    return GLOBAL_MAX_POOL(x, attrs=GlobalPoolAttrs(layout))


def global_avg_pool(x: Node, layout: str = "") -> Call:
    """The mean of each channel, as [N, C, 1…]."""
    return GLOBAL_AVG_POOL(x, attrs=GlobalPoolAttrs(layout))


def global_lp_pool(x: Node, p: int = 2, layout: str = "") -> Call:
    """The p-norm of each channel, as [N, C, 1…]."""
    return GLOBAL_LP_POOL(x, attrs=GlobalLpPoolAttrs(layout, p))
