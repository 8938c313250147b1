"""nn.lp_normalize: what is divided by its 1-norm or 2-norm along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...graph.node import Call, Node
from ...graph.types import Type
from ...ir.expr import Axis, Expr
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator
from ..definition.arguments import axis_of
from ..definition.attrs import Attrs, attr, one_of
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis
from ..definition.strategy import register_compute, register_reduce_schedule
from .norm import float_arguments

GROUP = OpGroup.NORMALISATION


@dataclass(frozen=True)
class LpNormalizeAttrs(Attrs):
    """The attributes of ``nn.lp_normalize``."""

    axis: int = attr("axis to normalise over, from 0")
    p: int = attr("norm", default=2, check=one_of(1, 2))


def _lp_relation(types: Sequence[Type], attrs: LpNormalizeAttrs) -> Type:
    x = float_arguments(types, ["x"], 1)[0]
    normalize_axis(attrs.axis, x.ndim)
    return x


def _lp_compute(attrs: LpNormalizeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    kind = accumulator(x.dtype)
    r = te.reduce_axis((0, x.shape[attrs.axis]), name="r")
    kept = (*x.shape[: attrs.axis], *x.shape[attrs.axis + 1 :])

    def total(*i: Axis) -> Expr:
        value = te.cast(x[(*i[: attrs.axis], r, *i[attrs.axis :])], kind)
        return te.sum(value * value if attrs.p == 2 else te.abs(value), axis=r)

    sums = te.compute(kept, total, name="lp_normalize.sum")

    def norm(*i: Axis) -> Expr:
        return te.sqrt(sums[i]) if attrs.p == 2 else sums[i]

    norms = te.compute(kept, norm, name="lp_normalize.norm")

    def element(*i: Axis) -> Expr:
        own = norms[(*i[: attrs.axis], *i[attrs.axis + 1 :])]
        zero = te.const(0, kind)
        # A vector of zeros stays one.
        return te.cast(te.select(own == zero, zero, te.cast(x[i], kind) / own), x.dtype)

    return te.compute(x.shape, element, name="lp_normalize")


LP_NORMALIZE = register_op(
    "nn.lp_normalize",
    "x divided by its 1-norm or 2-norm along an axis; 0 where that is 0",
    [("x", "any shape")],
    _lp_relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    LpNormalizeAttrs,
    support_level=2,
)
register_compute(LP_NORMALIZE, _lp_compute)
register_reduce_schedule(LP_NORMALIZE)


def lp_normalize(x: Node, axis: int = -1, p: int = 2) -> Call:
    """x divided by its p-norm along ``axis``; 0 where that is 0."""
    return LP_NORMALIZE(x, attrs=LpNormalizeAttrs(axis_of("nn.lp_normalize", x, axis), p))
