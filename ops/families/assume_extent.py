"""assume_extent: the same tensor, an extent of which is said in another way, as (h + 1) // 2 for h // 2.

Each run checks that both are the same number. It is fused with nothing: a view of the memory of x, so that no nest has
both extents, of which no schedule could tell that they are one.

``definition/extent_formulas.py`` has how attributes say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ... import te
from ...base.dataclass import dataclass
from ...base.target import Target
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ZERO
from ...ir.expr import Expr
from ...ir.makers import maximum
from ...te.tensor import Tensors
from ..definition.attrs import Attrs, attr
from ..definition.extent_formulas import as_formulas, element_of, extent_of_formula, with_axes
from ..definition.layout_rule import LayoutCandidate, ValueLayout
from ..definition.memory_view import RunOfArgument
from ..definition.registry import OpPattern, register_op
from ..definition.relations import AssumptionFails, ExtentsDiffer, normalize_axis, same_extent, tensor_argument
from ..definition.strategy import register_compute


@dataclass(frozen=True)
class AssumeExtentAttrs(Attrs):
    """The attributes of ``assume_extent``."""

    axis: int = attr("the axis, 0 or more")
    extent: int | str = attr("its extent: a number, or a formula over those of the other arguments, as x1_0 + 1")


def _relation(types: Sequence[Type], attrs: AssumeExtentAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    axis = normalize_axis(attrs.axis, x.ndim)
    stated = extent_of_formula(attrs.extent, types)
    try:
        same_extent(stated, x.shape[axis], f"axis {axis} of {x} should have the extent {stated}")
    except ExtentsDiffer as error:
        raise AssumptionFails(error.left, error.right, str(error)) from None
    return TensorType((*x.shape[:axis], stated, *x.shape[axis + 1 :]), x.dtype)


def _compute(attrs: AssumeExtentAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    shape = tensor_argument(result, "result").shape
    return te.compute(shape, lambda *i: element_of(inputs[0], i), name="assume_extent")


def _in_layout(call: Call, given: ValueLayout | None, target: Target) -> Sequence[LayoutCandidate]:
    """An axis that is not cut into blocks may stand elsewhere."""
    kind = tensor_of(call.args[0])
    if given is None or kind.ndim != given.primal.ndim:
        return ()
    axis = given.moved_axis(call.attrs.axis)
    extent = with_axes(call.attrs.extent, lambda argument, a: given.moved_axis(a) if argument == 0 else a)
    if axis is None or extent is None:
        return ()
    others = (None,) * (len(call.args) - 1)
    return (LayoutCandidate((given, *others), replace(call.attrs, axis=axis, extent=extent), given),)


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """What the extent is, and what is said of it, differ by nothing."""
    own, stated = (tensor_of(node).shape[call.attrs.axis] for node in (call.args[0], call))
    return (ZERO - maximum(own - stated, stated - own),)


ASSUME_EXTENT = register_op(
    "assume_extent",
    "the same tensor; each run checks that an axis has the extent that is stated",
    [("x", "any shape; behind it tensors that the extent is computed from, whose elements are not read")],
    _relation,
    OpPattern.OPAQUE,
    AssumeExtentAttrs,
    variadic=True,
    support_level=3,
    layout_rule=_in_layout,
    memory_rule=lambda call: RunOfArgument(ZERO),
    extent_rule=_asked_of_extents,
)
register_compute(ASSUME_EXTENT, _compute)


def assume_extent(x: Node, axis: int, extent: Expr, of: Iterable[Node]) -> Call:
    """x with ``extent`` for that of an axis: a formula over dimensions that tensors among ``of`` have by themselves.

    Raises ``TypeInferenceError`` for a dimension that none of them has, and for a number that the axis does not have.
    """
    (formula,), used = as_formulas([extent], of)
    return ASSUME_EXTENT(x, *used, attrs=AssumeExtentAttrs(axis, formula))
