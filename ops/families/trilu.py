"""trilu: the upper or lower triangle of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import Type
from ...ir.expr import Expr
from ...te.tensor import Tensors
from ..definition.arguments import flag, integer
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.PARTS


@dataclass(frozen=True)
class TriluAttrs(Attrs):
    """The attributes of ``trilu``."""

    k: int = attr("which diagonal is the triangle's edge: 0 is the main one, 1 the one above it", 0)
    upper: bool = attr("whether the upper triangle is kept, or the lower", True)


def _relation(types: Sequence[Type], attrs: TriluAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.ndim < 2:
        raise TypeInferenceError(f"x must be one or several matrices, found {x}")
    return x


def _compute(attrs: TriluAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs

    def element(*i: te.Axis) -> Expr:
        column, edge = i[-1].as_expr(), i[-2] + attrs.k
        kept = column >= edge if attrs.upper else column <= edge
        return te.select(kept, x[i], te.const(0, x.dtype))

    return te.compute(x.shape, element, name="trilu")


TRILU = register_op(
    "trilu",
    "the upper or lower triangle of the last two axes, 0 elsewhere",
    [("x", "rank 2 or more")],
    _relation,
    OpPattern.ELEMENTWISE,
    TriluAttrs,
    support_level=3,
)
register_compute(TRILU, _compute)


def trilu(x: Node, k: int = 0, upper: bool = True) -> Call:
    """``numpy.triu`` or ``numpy.tril`` of the last two axes."""
    return TRILU(x, attrs=TriluAttrs(integer(k, "k"), flag(upper, "upper")))
