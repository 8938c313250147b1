"""Pooling over all spatial axes at once: ``nn.global_max_pool``, ``nn.global_avg_pool``, ``nn.global_lp_pool``.

The result has the layout of x. Where the spatial axes are last, planes are rows, which are folded in lanes; short ones
side by side. Else vectors are of channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.constants import ONE
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.attrs import Attrs, attr, positive
from ..definition.cost import moved
from ..definition.folds import LONG_ROWS, SHORT_ROWS, Fold, LaneOrder, long_rows, short_rows
from ..definition.layout_rule import follow_layout
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import reduce_schedule
from ..definition.registry import Op, OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import Compute, OpStrategy, register_strategy
from .pool_windows import power_of_magnitude, root
from .reduce import RowStages, fold_axes, rows_schedule, short_rows_schedule
from .window import LAYOUT, axis_extents, rank_in, spatial_axes

GROUP = OpGroup.POOLING


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


def fold_positions(
    layout: str,
    x: te.Tensor,
    result: TensorType,
    term: Callable[[Expr], Expr],
    fold: Fold,
    name: str,
    order: LaneOrder | None,
) -> RowStages:
    """The terms of all elements of a channel, folded, in the shape of the result; in an ``order``, if positions are the
    innermost axes."""
    made, axes = _layout(layout, result)
    positions = sorted(made.position(axis) for axis in axes)
    sums = fold_axes(f"{name}.whole", x.shape, positions, fold, lambda i: term(x[i]), order)

    def element(*index: Axis) -> Expr:
        return sums[[i for d, i in enumerate(index) if d not in positions]]

    return RowStages(te.compute(result.shape, element, name=f"{name}.all"), (sums.tensor,))


def of_planes(layout: str, x: TensorType) -> bool:
    """Whether an x in this layout has its positions innermost."""
    made, axes = _layout(layout, x)
    return made is Layout(f"NC{axes}")


def _max(order: LaneOrder | None) -> Compute:
    def compute(attrs: GlobalPoolAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = tensor_argument(result, "result")
        folded = fold_positions(attrs.layout, x, kind, lambda value: value, te.max, "global_max_pool", order)
        whole = folded.result
        return RowStages(te.compute(kind.shape, lambda *i: whole[i], name="global_max_pool"), folded.totals)

    return compute


def _avg(order: LaneOrder | None) -> Compute:
    def compute(attrs: GlobalPoolAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = tensor_argument(result, "result")
        folded = fold_positions(attrs.layout, x, kind, widened, te.sum, "global_avg_pool", order)
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

        folded = fold_positions(attrs.layout, x, kind, power, te.sum, "global_lp_pool", order)
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
        made, cost = OpStrategy(), moved([x, result])
        made.add_implementation(compute(None), reduce_schedule.for_target(target), f"{name}.generic")
        if of_planes(attrs.layout, x):
            with made.specialized(long_rows(range(2, x.ndim), x.shape)):
                made.add_implementation(compute(LONG_ROWS), rows_schedule, f"{name}.rows", cost=cost)
            with made.specialized(short_rows(range(2, x.ndim), x.shape)):
                made.add_implementation(compute(SHORT_ROWS), short_rows_schedule, f"{name}.short_rows", cost=cost)
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
