"""strided_slice: part of a tensor, as numpy's basic slices take it; and split, which is several of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, ZERO, const_int
from ...ir.contents import free_vars
from ...ir.expr import Expr
from ...ir.facts import nonnegative
from ...ir.makers import as_index, maximum, minimum
from ...ir.simplify import simplify
from ...te.compute import MAX_EXTENT
from ...te.tensor import Tensors
from ..definition.arguments import axis_of, integer_list, naming
from ..definition.attrs import Attrs, attr
from ..definition.layout_rule import ValueLayout, follow_axes
from ..definition.memory_view import RunOfArgument
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.PARTS

END = (1 << 62) - 1
"""As an end: to the end of the axis, whatever its extent; minus it: to its beginning, for a negative step. So is what
is beyond ``MAX_EXTENT``, since no axis is as long."""


def is_far(index: int) -> bool:
    """Whether an index is beyond the ends of all axes."""
    return abs(index) >= MAX_EXTENT


def _no_zero(steps: tuple[int, ...]) -> str | None:
    return None if all(type(s) is int and s != 0 for s in steps) else "must be integers other than 0"


@dataclass(frozen=True)
class StridedSliceAttrs(Attrs):
    """The attributes of ``strided_slice``; there is a number of each for every axis that is sliced."""

    axes: tuple[int, ...] = attr("the axes that are sliced, 0 or more")
    starts: tuple[int, ...] = attr("first index on each of them; negative counts from the end; clamped")
    ends: tuple[int, ...] = attr("index before which each ends; negative counts from the end; clamped")
    steps: tuple[int, ...] = attr("step on each of them", check=_no_zero)


def _resolve(extent: Expr, start: int, end: int, step: int) -> tuple[Expr, Expr]:
    """First index and number of elements, as numpy resolves a slice of an axis."""
    if start == 0 and end > 0 and is_far(end) and step == 1:
        return ZERO, extent
    low, high = (ZERO, extent) if step > 0 else (as_index(-1), extent - ONE)

    def clamp(index: int) -> Expr:
        if is_far(index):
            return low if index < 0 else high
        return minimum(maximum(extent + index if index < 0 else as_index(index), low), high)

    first, last = clamp(start), clamp(end)
    if step > 0 and start >= 0 and not is_far(start) and const_int(extent) is None:
        # A range of no elements may begin anywhere, and end before: without clamps these are simple formulas.
        first, last = as_index(start), extent + end if end < 0 and not is_far(end) else last
    span = last - first if step > 0 else first - last
    count = maximum((span + (abs(step) - 1)) // abs(step), 0)
    facts = nonnegative(free_vars(extent)).with_condition(extent >= 0)
    return simplify(first, facts), simplify(count, facts)


def _ranges(shape: Sequence[Expr], attrs: StridedSliceAttrs) -> list[tuple[Expr, Expr, int]]:
    """First index, number of elements and step, of each axis."""
    ranges: list[tuple[Expr, Expr, int]] = [(ZERO, extent, 1) for extent in shape]
    for axis, start, end, step in zip(attrs.axes, attrs.starts, attrs.ends, attrs.steps, strict=True):
        ranges[axis] = (*_resolve(shape[axis], start, end, step), step)
    return ranges


def _relation(types: Sequence[Type], attrs: StridedSliceAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if len({len(attrs.axes), len(attrs.starts), len(attrs.ends), len(attrs.steps)}) != 1:
        raise TypeInferenceError("axes, starts, ends and steps must be of one length")
    if len({normalize_axis(axis, x.ndim) for axis in attrs.axes}) != len(attrs.axes):
        raise TypeInferenceError(f"axes {attrs.axes} name an axis twice")
    return TensorType(tuple(count for _, count, _ in _ranges(x.shape, attrs)), x.dtype)


def _compute(attrs: StridedSliceAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    ranges = _ranges(x.shape, attrs)

    def element(*i: te.Axis) -> Expr:
        return x[tuple(first + index * step for index, (first, _, step) in zip(i, ranges, strict=True))]

    return te.compute([count for _, count, _ in ranges], element, name="strided_slice")


def _in_layout(attrs: StridedSliceAttrs, given: ValueLayout) -> StridedSliceAttrs | None:
    """Axes that are sliced must not be cut into blocks."""
    moved = [given.moved_axis(axis) for axis in attrs.axes]
    axes = tuple(axis for axis in moved if axis is not None)
    return replace(attrs, axes=axes) if len(axes) == len(moved) else None


def _in_memory(call: Call) -> RunOfArgument | None:
    """A part of the outermost axis that has several elements is a run of them, if all other axes are whole."""
    shape = tensor_of(call.args[0]).shape
    outer = True
    begin: Expr = ZERO
    for extent, (first, count, step) in zip(shape, _ranges(shape, call.attrs), strict=True):
        begin = begin * extent + minimum(first, extent)
        backwards_or_gaps = step != 1 and const_int(count) != 1
        if backwards_or_gaps or (count is not extent and not outer):
            return None
        outer = outer and const_int(count) == 1
    return RunOfArgument(simplify(begin))


STRIDED_SLICE = register_op(
    "strided_slice",
    "every so manieth element of ranges of the axes",
    [("x", "any shape")],
    _relation,
    OpPattern.INJECTIVE,
    StridedSliceAttrs,
    support_level=3,
    layout_rule=follow_axes(_in_layout),
    memory_rule=_in_memory,
)
register_compute(STRIDED_SLICE, _compute)


def strided_slice(
    x: Node,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> Call:
    """``x[start:end:step]`` on the given axes (the first ones, by default); indices are clamped as numpy does."""
    with naming("strided_slice", x):
        first, last = _clipped(starts, "starts"), _clipped(ends, "ends")
        given = tuple(range(len(first))) if axes is None else integer_list(axes, "axes")
        apart = (1,) * len(first) if steps is None else _clipped(steps, "steps")
    positions = tuple(axis_of("strided_slice", x, axis) for axis in given)
    return STRIDED_SLICE(x, attrs=StridedSliceAttrs(positions, first, last, apart))


def _clipped(indices: Sequence[int], name: str) -> tuple[int, ...]:
    return tuple(max(-END, min(END, index)) for index in integer_list(indices, name))


def split(x: Node, sections: Sequence[int], axis: int = 0) -> tuple[Call, ...]:
    """x cut along an axis into parts of the given extents, which must add up to the axis's: a slice each."""
    at = axis_of("split", x, axis)
    kind = tensor_of(x)
    extent = const_int(kind.shape[at])
    with naming("split", x):
        counts = integer_list(sections, "sections")
        if any(s < 0 for s in counts) or (extent is not None and sum(counts) != extent):
            raise TypeInferenceError(f"sections {counts} do not add up to axis {at}")
    parts: list[Call] = []
    start = 0
    for section in counts:
        parts.append(strided_slice(x, [start], [start + section], [at]))
        start += section
    return tuple(parts)
