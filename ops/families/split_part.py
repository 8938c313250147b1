"""split_part: one of the parts that an axis is cut into, by its number. Of an axis whose extent is open, where
``strided_slice``, which takes numbers, could not say where a part begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ZERO
from ...ir.contents import free_vars
from ...ir.expr import Expr
from ...ir.facts import nonnegative
from ...ir.makers import as_index, maximum, minimum
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition.arguments import axis_of
from ..definition.attrs import Attrs, attr, positive
from ..definition.layout_rule import ValueLayout, follow_axes
from ..definition.memory_view import RunOfArgument, part_of_axis
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis, tensor_argument
from ..definition.strategy import register_compute


@dataclass(frozen=True)
class SplitPartAttrs(Attrs):
    """The attributes of ``split_part``."""

    axis: int = attr("the axis that is cut, 0 or more")
    part: int = attr("number of the part, from 0")
    parts: int = attr("how many parts there are", check=positive)
    even: bool = attr("all parts are equal; else the last ones may be smaller, or empty", default=False)


def _range(extent: Expr, attrs: SplitPartAttrs) -> tuple[Expr, Expr]:
    """Where the part begins, and its extent."""
    facts = nonnegative(free_vars(extent)).with_condition(extent >= 0)
    if attrs.even:
        size = simplify(extent // attrs.parts, facts)
        return simplify(size * attrs.part, facts), size
    size = simplify((extent + (attrs.parts - 1)) // attrs.parts, facts)
    begin = minimum(size * attrs.part, extent)
    count = size if attrs.part == 0 else maximum(minimum(size, extent - size * attrs.part), as_index(0))
    return simplify(begin, facts), simplify(count, facts)


def _relation(types: Sequence[Type], attrs: SplitPartAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    normalize_axis(attrs.axis, x.ndim)
    if not 0 <= attrs.part < attrs.parts:
        raise TypeInferenceError(f"part {attrs.part} is none of {attrs.parts}, which are counted from 0")
    _, count = _range(x.shape[attrs.axis], attrs)
    return TensorType((*x.shape[: attrs.axis], count, *x.shape[attrs.axis + 1 :]), x.dtype)


def _compute(attrs: SplitPartAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,), axis = inputs, attrs.axis
    begin, _ = _range(x.shape[axis], attrs)
    return te.compute(
        tensor_argument(result, "result").shape,
        lambda *i: x[(*i[:axis], i[axis] + begin, *i[axis + 1 :])],
        name="split_part",
    )


def _in_layout(attrs: SplitPartAttrs, given: ValueLayout) -> SplitPartAttrs | None:
    """The axis that is cut must not be cut into blocks."""
    axis = given.moved_axis(attrs.axis)
    return None if axis is None else replace(attrs, axis=axis)


def _in_memory(call: Call) -> RunOfArgument | None:
    shape, axis = tensor_of(call.args[0]).shape, call.attrs.axis
    begin, _ = _range(shape[axis], call.attrs)
    return part_of_axis(shape, axis, begin)


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """Equal parts leave nothing over."""
    extent = tensor_of(call.args[0]).shape[call.attrs.axis]
    return (ZERO - extent % call.attrs.parts,) if call.attrs.even else ()


SPLIT_PART = register_op(
    "split_part",
    "one of the parts that an axis is cut into",
    [("x", "any shape")],
    _relation,
    OpPattern.INJECTIVE,
    SplitPartAttrs,
    support_level=3,
    layout_rule=follow_axes(_in_layout),
    memory_rule=_in_memory,
    extent_rule=_asked_of_extents,
)
register_compute(SPLIT_PART, _compute)


def split_evenly(x: Node, parts: int, axis: int = 0, even: bool = False) -> tuple[Call, ...]:
    """x cut along an axis into parts of one extent. The last ones are smaller, or empty, where it does not divide the
    axis, unless they must be ``even``: then a run with such an axis is refused."""
    at = axis_of("split_part", x, axis)
    return tuple(SPLIT_PART(x, attrs=SplitPartAttrs(at, part, parts, even)) for part in range(parts))
