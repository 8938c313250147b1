"""Pooling over all spatial axes at once: ``nn.global_max_pool``, ``nn.global_avg_pool``, ``nn.global_lp_pool``.

The result has the layout of x. Where the spatial axes are last, sums are kept in ``LANES`` parts that are added up in
the end, so that they vectorize along them; else vectors are of channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import te
from ..graph.layout import Layout
from ..graph.node import Call, Node
from ..graph.types import TensorType, Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import ONE, Axis, Expr, as_index
from ..ir.simplify import simplify
from .accumulate import accumulator, widened
from .attrs import Attrs, attr, positive
from .layout_rule import follow_layout, register_layout_rule
from .pool import power_of_magnitude, root
from .registry import Op, OpPattern, register_op
from .relations import tensor_argument
from .strategy import Compute, Tensors, register_compute, register_reduce_schedule
from .window import LAYOUT, axis_extents, rank_in, spatial_axes

LANES = 16


@dataclass(frozen=True)
class GlobalPoolAttrs(Attrs):
    layout: str = attr(LAYOUT, default="")


@dataclass(frozen=True)
class GlobalLpPoolAttrs(GlobalPoolAttrs):
    p: int = attr("exponent of the norm", default=2, check=positive)


def _relation(types: Sequence[Type], attrs: GlobalPoolAttrs) -> TensorType:
    x = tensor_argument(types[0], "x")
    layout, axes = _layout(attrs, x)
    extents = axis_extents(x, layout.text, f"NC{axes}", "C", ("x", "layout"))
    return TensorType(layout.shape({**extents, **dict.fromkeys(axes, ONE)}), x.dtype)


def _layout(attrs: GlobalPoolAttrs, x: TensorType) -> tuple[Layout, str]:
    """The layout of x, and its spatial axes."""
    axes = spatial_axes(rank_in(x, attrs.layout))
    return Layout(attrs.layout or f"NC{axes}"), axes


def _float_relation(types: Sequence[Type], attrs: GlobalPoolAttrs) -> TensorType:
    result = _relation(types, attrs)
    if not result.dtype.is_float:
        raise TypeInferenceError(f"x must be of floats, found {result.dtype}")
    return result


Fold = Callable[..., Expr]


def _fold(
    attrs: GlobalPoolAttrs, x: te.Tensor, result: TensorType, term: Callable[[Expr], Expr], fold: Fold, name: str
) -> te.Tensor:
    """The terms of all elements of a channel, folded, in the shape of the result."""
    layout, axes = _layout(attrs, result)
    if layout is Layout(f"NC{axes}"):
        parts = _fold_in_lanes(x, term, fold, name)
        return te.compute(result.shape, lambda n, c, *_: parts[n, c], name=f"{name}.all")
    places = {layout.position(axis): te.reduce_axis((0, x.shape[layout.position(axis)]), name=axis) for axis in axes}

    def element(*index: Axis) -> Expr:
        return fold(term(x[tuple(places.get(d, i) for d, i in enumerate(index))]), axis=list(places.values()))

    return te.compute(result.shape, element, name=f"{name}.whole")


def _fold_in_lanes(x: te.Tensor, term: Callable[[Expr], Expr], fold: Fold, name: str) -> te.Tensor:
    """As [N, C]."""
    size: Expr = ONE
    for extent in x.shape[2:]:
        size = simplify(size * extent)
    steps = te.reduce_axis((0, simplify((size + (LANES - 1)) // LANES)), name="s")

    def part(n: Axis, c: Axis, lane: Axis) -> Expr:
        flat = steps * LANES + lane
        return fold(term(x[(n, c, *_unflatten(flat, x.shape[2:]))]), axis=steps, where=flat < size)

    parts = te.compute((*x.shape[:2], LANES), part, name=f"{name}.parts")
    lane = te.reduce_axis((0, LANES), name="lane")
    return te.compute(x.shape[:2], lambda n, c: fold(parts[n, c, lane], axis=lane), name=f"{name}.whole")


def _unflatten(flat: Expr, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """Indices of an element by its number, row-major."""
    found: list[Expr] = []
    for extent in reversed(shape[1:]):
        found.append(flat % extent)
        flat = flat // extent
    return (flat, *reversed(found))


def _max(attrs: GlobalPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    whole = _fold(attrs, x, kind, lambda value: value, te.max, "global_max_pool")
    return te.compute(kind.shape, lambda *i: whole[i], name="global_max_pool")


def _avg(attrs: GlobalPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    whole = _fold(attrs, x, kind, widened, te.sum, "global_avg_pool")
    count = as_index(1)
    layout, axes = _layout(attrs, kind)
    for axis in axes:
        count = count * x.shape[layout.position(axis)]
    count = te.cast(count, accumulator(x.dtype))
    return te.compute(kind.shape, lambda *i: te.cast(whole[i] / count, kind.dtype), name="global_avg_pool")


def _lp(attrs: GlobalLpPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    whole = _fold(attrs, x, kind, lambda value: power_of_magnitude(widened(value), attrs.p), te.sum, "global_lp_pool")
    return te.compute(kind.shape, lambda *i: te.cast(root(whole[i], attrs.p), kind.dtype), name="global_lp_pool")


# Registration


def _primal(call: Call) -> Layout:
    x = tensor_argument(call.args[0].type, "x")
    return Layout(f"NC{spatial_axes(rank_in(x, ''))}")


def _register(
    name: str, description: str, attrs: type[GlobalPoolAttrs], compute: Compute, relation: Callable[..., Type]
) -> Op:
    arguments = [("x", "[N, C, spatial…], or in its layout")]
    pattern = OpPattern.OUT_ELEMENTWISE_FUSABLE
    op = register_op(name, description, arguments, relation, pattern, attrs, support_level=2)
    register_compute(op, compute)
    register_reduce_schedule(op)
    register_layout_rule(op, follow_layout(_primal))
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
