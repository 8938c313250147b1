"""pad: a tensor with elements added before and after along its axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ... import te
from ...base.errors import TypeInferenceError
from ...graph.node import Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition.arguments import integer_list, naming
from ..definition.attrs import Attrs, all_non_negative, attr, one_of
from ..definition.layout_rule import ValueLayout, follow_axes
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import register_compute
from .slicing import END, strided_slice

GROUP = OpGroup.PARTS


@dataclass(frozen=True)
class PadAttrs(Attrs):
    before: tuple[int, ...] = attr("elements added before each axis", check=all_non_negative)
    after: tuple[int, ...] = attr("elements added after each axis", check=all_non_negative)
    mode: str = attr(
        "what is added: a constant, the nearest element, a mirror image without its edge, or x again",
        "constant",
        one_of("constant", "edge", "reflect", "wrap"),
    )
    value: float | bool = attr("the constant", 0.0)


def _relation(types: Sequence[Type], attrs: PadAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if not len(attrs.before) == len(attrs.after) == x.ndim:
        raise TypeInferenceError(f"padding is given for {len(attrs.before)} and {len(attrs.after)} of {x.ndim} axes")
    for axis, (extent, b, a) in enumerate(zip(x.shape, attrs.before, attrs.after, strict=True)):
        if attrs.mode != "constant" and const_int(extent) == 0 and b + a > 0:
            raise TypeInferenceError(f"axis {axis} is empty: there is nothing to pad it with by {attrs.mode!r}")
    extents = (simplify(e + (b + a)) for e, b, a in zip(x.shape, attrs.before, attrs.after, strict=True))
    return TensorType(tuple(extents), x.dtype)


def _compute(attrs: PadAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    return te.pad(inputs[0], attrs.before, attrs.after, attrs.mode, attrs.value)


def _in_layout(attrs: PadAttrs, given: ValueLayout) -> PadAttrs | None:
    """What is added to axes that are not cut into blocks goes with them."""
    before, after = [0] * given.layout.ndim, [0] * given.layout.ndim
    for axis, added in enumerate(zip(attrs.before, attrs.after, strict=True)):
        place = given.moved_axis(axis)
        if place is not None:
            before[place], after[place] = added
        elif any(added):
            return None
    return replace(attrs, before=tuple(before), after=tuple(after))


PAD = register_op(
    "pad",
    "elements added around a tensor",
    [("x", "any shape")],
    _relation,
    OpPattern.INJECTIVE,
    PadAttrs,
    support_level=2,
    layout_rule=follow_axes(_in_layout),
)
register_compute(PAD, _compute)


def pad(
    x: Node, before: Sequence[int], after: Sequence[int], mode: str = "constant", value: float | bool = 0.0
) -> Node:
    """x with elements added before and after each axis; a negative count takes elements away."""
    rank = tensor_of(x).ndim
    with naming("pad", x):
        begins, ends = integer_list(before, "before"), integer_list(after, "after")
        if not len(begins) == len(ends) == rank:
            raise TypeInferenceError(f"padding is given for {len(begins)} and {len(ends)} axes")
    if min([*begins, *ends], default=0) < 0:
        x = strided_slice(x, [max(-b, 0) for b in begins], [a if a < 0 else END for a in ends])
    attrs = PadAttrs(tuple(max(b, 0) for b in begins), tuple(max(a, 0) for a in ends), mode, value)
    return PAD(x, attrs=attrs)
