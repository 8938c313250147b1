"""pad: a tensor with elements added before and after along its axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index, maximum, minimum
from ...ir.simplify import simplify
from ...te.border import pad_by_less
from ...te.tensor import Tensors
from ..definition.arguments import integer_list, naming
from ..definition.attrs import Attrs, attr, one_of
from ..definition.condition import clause
from ..definition.cost import moved
from ..definition.extent_formulas import FORMULAS, as_formulas, extent_of_formula, no_number_negative, with_axes
from ..definition.layout_rule import ValueLayout, follow_axes
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import injective_schedule
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import OpStrategy, register_strategy
from .slicing import END, strided_slice

GROUP = OpGroup.PARTS


@dataclass(frozen=True)
class PadAttrs(Attrs):
    """The attributes of ``pad``."""

    before: tuple[int | str, ...] = attr(f"elements added before each axis: {FORMULAS}", check=no_number_negative)
    after: tuple[int | str, ...] = attr(f"elements added after each axis: {FORMULAS}", check=no_number_negative)
    mode: str = attr(
        "what is added: a constant, the nearest element, a mirror image without its edge, or x again",
        "constant",
        one_of("constant", "edge", "reflect", "wrap"),
    )
    value: float | bool = attr("the constant", 0.0)


def _counts(attrs: PadAttrs, arguments: Sequence[Type | te.Tensor]) -> tuple[list[int | Expr], list[int | Expr]]:
    """What is added before and after each axis."""

    def count(formula: int | str) -> int | Expr:
        extent = extent_of_formula(formula, arguments)
        number = const_int(extent)
        return extent if number is None else number

    return list(map(count, attrs.before)), list(map(count, attrs.after))


def _relation(types: Sequence[Type], attrs: PadAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if not len(attrs.before) == len(attrs.after) == x.ndim:
        raise TypeInferenceError(f"padding is given for {len(attrs.before)} and {len(attrs.after)} of {x.ndim} axes")
    extents = []
    for axis, (extent, b, a) in enumerate(zip(x.shape, *_counts(attrs, types), strict=True)):
        adds = any(not isinstance(number, int) or number for number in (b, a))
        if attrs.mode != "constant" and const_int(extent) == 0 and adds:
            raise TypeInferenceError(f"axis {axis} is empty: there is nothing to pad it with by {attrs.mode!r}")
        extents.append(simplify(extent + b + a))
    return TensorType(tuple(extents), x.dtype)


def _compute(attrs: PadAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    return te.pad(inputs[0], *_counts(attrs, inputs), attrs.mode, attrs.value)


def _compute_by_less(attrs: PadAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    return pad_by_less(inputs[0], *_counts(attrs, inputs))


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """What is left of an axis that open counts take elements from, and that an axis has any to add of."""
    if len(call.args) == 1:
        return []
    left = [e for e in tensor_of(call).shape if const_int(e) is None]
    attrs = cast(PadAttrs, call.attrs)
    if attrs.mode == "constant":
        return left
    arguments = [tensor_of(argument) for argument in call.args]
    added = [maximum(as_index(b), 0) + maximum(as_index(a), 0) for b, a in zip(*_counts(attrs, arguments), strict=True)]
    return left + [
        simplify(extent - minimum(count, 1))
        for extent, count in zip(arguments[0].shape, added, strict=True)
        if const_int(extent) is None
    ]


def _in_layout(attrs: PadAttrs, given: ValueLayout) -> PadAttrs | None:
    """What is added to axes that are not cut into blocks goes with them, and so do the axes of formulas."""
    added: list[tuple[int | str, int | str]] = [(0, 0)] * given.layout.ndim
    for axis, counts in enumerate(zip(attrs.before, attrs.after, strict=True)):
        before, after = (with_axes(count, lambda _, a: given.moved_axis(a)) for count in counts)
        place = given.moved_axis(axis)
        if before is None or after is None or (place is None and counts != (0, 0)):
            return None
        if place is not None:
            added[place] = (before, after)
    return replace(attrs, before=tuple(before for before, _ in added), after=tuple(after for _, after in added))


PAD = register_op(
    "pad",
    "elements added around a tensor",
    [("x", "any shape; behind it tensors that open counts are computed from, whose elements are not read")],
    _relation,
    OpPattern.INJECTIVE,
    PadAttrs,
    variadic=True,
    support_level=2,
    layout_rule=follow_axes(_in_layout),
    extent_rule=_asked_of_extents,
)


@register_strategy(PAD)
def _strategy(attrs: PadAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy, schedule = OpStrategy(), injective_schedule.for_target(target)
    strategy.add_implementation(_compute, schedule, "pad.generic")
    if attrs.mode != "reflect":
        return strategy
    shape = tensor_argument(inputs[0], "x").shape
    ends = [(extent, count) for counts in _counts(attrs, inputs) for extent, count in zip(shape, counts, strict=True)]
    added = [(extent, count) for extent, count in ends if isinstance(count, Expr) or count > 0]
    if any(isinstance(count, Expr) or const_int(extent) is None for extent, count in added):
        with strategy.specialized(*(clause("less is added than there is", extent > count) for extent, count in added)):
            strategy.add_implementation(_compute_by_less, schedule, "pad.by_less", cost=moved([*inputs, result]))
    return strategy


def pad(
    x: Node, before: Sequence[int], after: Sequence[int], mode: str = "constant", value: float | bool = 0.0
) -> Node:
    """x with elements added before and after each axis; a negative count takes elements away."""
    rank = tensor_of(x).ndim
    with naming("pad", x):
        begins, ends = integer_list(before, "before"), integer_list(after, "after")
        if not len(begins) == len(ends) == rank:
            raise TypeInferenceError(f"padding is given for {len(begins)} and {len(ends)} axes")
    return pad_by_extents(x, begins, ends, (), mode, value)


def pad_by_extents(
    x: Node,
    before: Sequence[int | Expr],
    after: Sequence[int | Expr],
    of: Iterable[Node],
    mode: str = "constant",
    value: float | bool = 0.0,
) -> Node:
    """x with elements added before and after each axis: as many as numbers say, or formulas over dimensions that
    tensors among ``of`` have by themselves. A negative count takes elements away; each run checks that there are."""
    begins, ends = ([e if isinstance(e, int) else const_int(e) for e in counts] for counts in (before, after))
    taken = [min(n, 0) if n is not None else 0 for n in (*begins, *ends)]
    rank = len(begins)
    if any(taken):
        x = strided_slice(x, [-n for n in taken[:rank]], [n or END for n in taken[rank:]])
    formulas, used = as_formulas([0 if n else e for e, n in zip((*before, *after), taken, strict=True)], of)
    return PAD(x, *used, attrs=PadAttrs(formulas[:rank], formulas[rank:], mode, value))
