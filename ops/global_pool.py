"""Pooling over all spatial axes at once: ``nn.global_max_pool``, ``nn.global_avg_pool``, ``nn.global_lp_pool``.

Sums are kept in ``LANES`` parts that are added up last, so that they vectorize along the spatial axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import te
from ..graph.node import Call, Node
from ..graph.types import TensorType, Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import ONE, Axis, Expr, as_index
from ..ir.simplify import simplify
from .accumulate import accumulator, widened
from .attrs import Attrs, attr, positive
from .pool import power_of_magnitude, root
from .registry import OpPattern, register_op
from .relations import tensor_argument
from .strategy import Tensors, register_compute
from .window import spatial_rank

LANES = 16


@dataclass(frozen=True)
class GlobalLpPoolAttrs(Attrs):
    p: int = attr("exponent of the norm", default=2, check=positive)


def _relation(types: Sequence[Type], attrs: Any) -> TensorType:
    x = tensor_argument(types[0], "x")
    return TensorType((*x.shape[:2], *(ONE,) * spatial_rank(x)), x.dtype)


def _float_relation(types: Sequence[Type], attrs: Any) -> TensorType:
    result = _relation(types, attrs)
    if not result.dtype.is_float:
        raise TypeInferenceError(f"x must be of floats, found {result.dtype}")
    return result


Fold = Callable[..., Expr]


def _fold(x: te.Tensor, term: Callable[[Expr], Expr], fold: Fold, name: str) -> te.Tensor:
    """The terms of all elements of a channel, folded: as [N, C]."""
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


def _max(attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    whole = _fold(x, lambda value: value, te.max, "global_max_pool")
    shape = tensor_argument(result, "result").shape
    return te.compute(shape, lambda n, c, *_: whole[n, c], name="global_max_pool")


def _avg(attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    whole = _fold(x, widened, te.sum, "global_avg_pool")
    count = as_index(1)
    for extent in x.shape[2:]:
        count = count * extent
    count = te.cast(count, accumulator(x.dtype))
    return te.compute(kind.shape, lambda n, c, *_: te.cast(whole[n, c] / count, kind.dtype), name="global_avg_pool")


def _lp(attrs: GlobalLpPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = tensor_argument(result, "result")
    whole = _fold(x, lambda value: power_of_magnitude(widened(value), attrs.p), te.sum, "global_lp_pool")
    return te.compute(
        kind.shape, lambda n, c, *_: te.cast(root(whole[n, c], attrs.p), kind.dtype), name="global_lp_pool"
    )


_X = [("x", "[N, C, spatial…]")]
_PATTERN = OpPattern.OUT_ELEMENTWISE_FUSABLE
GLOBAL_MAX_POOL = register_op(
    "nn.global_max_pool",
    "The largest element of each channel; NaN if there is one",
    _X,
    _relation,
    _PATTERN,
    support_level=2,
)
register_compute(GLOBAL_MAX_POOL, _max)
GLOBAL_AVG_POOL = register_op(
    "nn.global_avg_pool", "The mean of each channel", _X, _float_relation, _PATTERN, support_level=2
)
register_compute(GLOBAL_AVG_POOL, _avg)
GLOBAL_LP_POOL = register_op(
    "nn.global_lp_pool", "The p-norm of each channel", _X, _float_relation, _PATTERN, GlobalLpPoolAttrs, support_level=2
)
register_compute(GLOBAL_LP_POOL, _lp)


def global_max_pool(x: Node) -> Call:
    """The largest element of each channel, as [N, C, 1…]."""
    return GLOBAL_MAX_POOL(x)


def global_avg_pool(x: Node) -> Call:
    """The mean of each channel, as [N, C, 1…]."""
    return GLOBAL_AVG_POOL(x)


def global_lp_pool(x: Node, p: int = 2) -> Call:
    """The p-norm of each channel, as [N, C, 1…]."""
    return GLOBAL_LP_POOL(x, attrs=GlobalLpPoolAttrs(p))
