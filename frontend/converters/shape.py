"""ONNX's operators that move elements without looking at them: Reshape, Transpose, Concat, Slice, Pad and their like.

Shapes, axes and pads were attributes first, and became inputs later. ``run_time_operands.py`` has the forms for inputs
that only a run knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType

from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Expr
from ...ir.facts import Facts, prove
from ...ir.makers import as_index, maximum, minimum
from ...ir.simplify import simplify
from ...ops.definition.relations import normalize_axis
from ...ops.families import concatenate, repeat, reshape, slicing, space_depth, transpose
from ...ops.families import pad as padding
from ...ops.families.assume_extent import assume_extent
from ...ops.families.open_extents import open_slice
from ...ops.families.split_part import split_evenly
from ..integers import as_vector
from ..onnx_node import OnnxNode
from ..registry import converter
from ..reshaping import reshape_to
from ..run_time_broadcast import may_meet_number_as_one
from . import run_time_axes, run_time_operands

INT_MAX = 2**31 - 1


@converter("Reshape", 1)
def _reshape_1(node: OnnxNode) -> Node:
    return reshape.reshape(node[0], node.required_ints("shape"))


@converter("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
def _reshape(node: OnnxNode) -> Node:
    if not node.is_known(1):
        return run_time_operands.reshaped(node)
    shape = node.extents(1, "the shape")
    numbers = [extent for extent in shape if isinstance(extent, int)]
    if len(numbers) == len(shape) and node.type().static_shape is not None:
        return reshape.reshape(node[0], numbers, node.flag("allowzero"))
    own = node.type().shape
    kept = [
        own[k] if isinstance(e, int) and e == 0 and not node.flag("allowzero") and k < len(own) else e
        for k, e in enumerate(shape)
    ]
    return reshape_to(node[0], kept, node.shapes.inputs)


@converter("Transpose", 1, 13, 21, 23, 24, 25)
def _transpose(node: OnnxNode) -> Node:
    return transpose.transpose(node[0], node.ints("perm"))


@converter("Squeeze", 1, 11)
def _squeeze_1(node: OnnxNode) -> Node:
    return _squeezed(node, node.ints("axes"))


@converter("Squeeze", 13, 21, 23, 24, 25)
def _squeeze(node: OnnxNode) -> Node:
    if not isinstance(node.get(1), (Constant, NoneType)):
        return run_time_axes.squeezed(node)
    return _squeezed(node, node.constant_ints(1, "axes"))


def _squeezed(node: OnnxNode, axes: Sequence[int] | None) -> Node:
    """Axes that are named have the extent 1, which each run checks where they are open."""
    made = node[0]
    for axis in (normalize_axis(axis, node.rank) for axis in axes or ()):
        if const_int(tensor_of(made).shape[axis]) is None:
            made = assume_extent(made, axis, ONE, ())
    return reshape.squeeze(made, axes)


@converter("Unsqueeze", 1, 11)
def _unsqueeze_1(node: OnnxNode) -> Node:
    return reshape.expand_dims(node[0], node.required_ints("axes"))


@converter("Unsqueeze", 13, 21, 23, 24, 25)
def _unsqueeze(node: OnnxNode) -> Node:
    if not isinstance(node[1], Constant):
        return run_time_axes.unsqueezed(node)
    return reshape.expand_dims(node[0], node.required_constant(1, "axes"))


@converter("Flatten", 1, 9, 11, 13, 21, 23, 24, 25)
def _flatten(node: OnnxNode) -> Node:
    return reshape.flatten(node[0], node.integer("axis", 1), node.shapes.inputs)


@converter("Concat", 1)
def _concat_1(node: OnnxNode) -> Node:
    return concatenate.concatenate(node.all, node.integer("axis", 1))


@converter("Concat", 4, 11, 13)
def _concat(node: OnnxNode) -> Node:
    return concatenate.concatenate(node.all, node.integer("axis"))


@converter("Split", 1)
def _split_1(node: OnnxNode) -> Sequence[Node]:
    return _split(node, node.ints("split") or node.constant_ints(1, "the extents of the parts"))


@converter("Split", 2, 11)
def _split_2(node: OnnxNode) -> Sequence[Node]:
    return _split(node, node.ints("split"))


@converter("Split", 13, 18)
def _split_13(node: OnnxNode) -> Sequence[Node]:
    if not isinstance(node.get(1), (Constant, NoneType)):
        return run_time_operands.split(node, normalize_axis(node.integer("axis", 0), node.rank))
    return _split(node, node.constant_ints(1, "the extents of the parts"))


def _split(node: OnnxNode, sections: Sequence[int] | None) -> Sequence[Node]:
    """The parts of a Split. Without given extents all are equal; since version 18 the last may be smaller."""
    axis = normalize_axis(node.integer("axis", 0), node.rank)
    count = len(node.proto.output)
    parts = node.integer("num_outputs", count) if sections is None else len(sections)
    if parts != count:
        raise ModelError(f"{node}: it has {count} outputs, but {parts} parts")
    if sections is not None:
        return slicing.split(node[0], sections, axis)
    extent = const_int(node.type().shape[axis])
    if extent is None:
        return split_evenly(node[0], parts, axis, even=node.version < 18)
    if node.version < 18 and extent % parts:
        raise ModelError(f"{node}: an extent of {extent} does not split into {parts} equal parts")
    size = -(-extent // parts)
    return slicing.split(node[0], [max(0, min(size, extent - k * size)) for k in range(parts)], axis)


@converter("Slice", 1)
def _slice_1(node: OnnxNode) -> Node:
    return _sliced(node, node.required_ints("starts"), node.required_ints("ends"), node.ints("axes"), None)


@converter("Slice", 10, 11, 13)
def _slice(node: OnnxNode) -> Node:
    if not node.is_known(1, 2, 3, 4):
        return run_time_operands.sliced(node)
    starts, ends = node.extents(1, "starts"), node.extents(2, "ends")
    return _sliced(node, starts, ends, node.constant_ints(3, "axes"), node.constant_ints(4, "steps"))


def _sliced(
    node: OnnxNode,
    starts: Sequence[int | Expr],
    ends: Sequence[int | Expr],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Node:
    """A slice by numbers, and by formulas over open extents."""
    starts, ends = (_far_as_ends(node, indices, axes) for indices in (starts, ends))
    first, last = ([e for e in given if isinstance(e, int)] for given in (starts, ends))
    if len(first) == len(starts) and len(last) == len(ends):
        return slicing.strided_slice(node[0], first, last, axes, steps)
    made = node[0]
    if steps is not None and any(step < 1 for step in steps):
        return run_time_operands.sliced(node)
    starts, ends = (tuple(map(_in_range, given)) for given in (starts, ends))
    axes = tuple(range(len(starts))) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, axes, steps or (1,) * len(starts), strict=True):
        if isinstance(start, int) and isinstance(end, int):
            made = slicing.strided_slice(made, [start], [end], [axis], [step])
        else:
            made = _open_slice(node, made, normalize_axis(axis, node.rank), as_index(start), as_index(end), step)
    return made


def _far_as_ends(node: OnnxNode, indices: Sequence[int | Expr], axes: Sequence[int] | None) -> Sequence[int | Expr]:
    """Indices of a slice. Along open axes ``INT_MAX`` and what is beyond stand for the end, whatever the extent, as the
    standard has it, and ``INT_MIN`` for the beginning; exporters write those of int32 too."""
    shape = node.type().shape
    along = range(len(indices)) if axes is None else axes
    open_axes = {axis for axis, extent in enumerate(shape) if const_int(extent) is None}
    open_axes |= {axis - len(shape) for axis in open_axes}
    if len(along) != len(indices):
        return indices
    return [_far_as_end(index) if axis in open_axes else index for index, axis in zip(indices, along, strict=True)]


def _far_as_end(index: int | Expr) -> int | Expr:
    if not isinstance(index, int) or abs(index) < INT_MAX:
        return index
    return slicing.END if index > 0 else -slicing.END


def _in_range(index: int | Expr) -> int | Expr:
    """An index of a slice; of numbers beyond any end, one that an extent can be computed with."""
    return max(-slicing.END, min(index, slicing.END)) if isinstance(index, int) else index


def _open_slice(node: OnnxNode, x: Node, axis: int, start: Expr, end: Expr, step: int) -> Node:
    """A slice between indices that are computed from open extents, forwards."""
    extent = tensor_of(x).shape[axis]
    facts = node.shapes.facts(start, end, extent)
    first, last = (_clamped(index, extent, facts) for index in (start, end))
    count = simplify(maximum(last - first, 0), facts)
    part = open_slice(x, axis, first, count, node.shapes.inputs)
    return part if step == 1 else slicing.strided_slice(part, [0], [slicing.END], [axis], [step])


def _clamped(index: Expr, extent: Expr, facts: Facts) -> Expr:
    """An index of a slice as it counts from the beginning, within an axis."""
    number = const_int(index)
    if number is not None and slicing.is_far(number):
        return extent if number > 0 else ZERO
    if prove(index >= 0, facts):
        return simplify(minimum(index, extent), facts)
    if prove(index < 0, facts):
        return simplify(maximum(extent + index, 0), facts)
    from_the_end = minimum(maximum(-index, 0), 1)  # 1 if the index is negative, which the shapes of a run tell
    return simplify(maximum(minimum(index + from_the_end * extent, extent), 0), facts)


@converter("Pad", 1)
def _pad_1(node: OnnxNode) -> Node:
    return _pad(node, node.required_ints("paddings"), node.real("value", 0.0))


@converter("Pad", 2)
def _pad_2(node: OnnxNode) -> Node:
    return _pad(node, node.required_ints("pads"), node.real("value", 0.0))


@converter("Pad", 11, 13, 18, 19, 21, 23, 24, 25)
def _pad_11(node: OnnxNode) -> Node:
    if not node.is_known(1) or not all(isinstance(node.get(k), (Constant, NoneType)) for k in (2, 3)):
        return run_time_operands.padded(node, node.string("mode", "constant"))
    pads: Sequence[int | Expr] = node.extents(1, "pads")
    axes = node.constant_ints(3, "axes")
    if axes is not None:
        pads = _spread(node, pads, axes)
    value = node.constant(2, "the constant value")
    return _pad(node, pads, value.reshape(-1)[0].item() if value is not None and value.size else 0)


def _spread(node: OnnxNode, pads: Sequence[int | Expr], axes: Sequence[int]) -> list[int | Expr]:
    """Pads of some axes as pads of all."""
    if len(pads) != 2 * len(axes):
        raise ModelError(f"{node}: {len(axes)} axes need {2 * len(axes)} pads, found {len(pads)}")
    spread: list[int | Expr] = [0] * (2 * node.rank)
    for k, axis in enumerate(axes):
        at = normalize_axis(axis, node.rank)
        spread[at], spread[at + node.rank] = pads[k], pads[k + len(axes)]
    return spread


def _pad(node: OnnxNode, pads: Sequence[int | Expr], value: float) -> Node:
    """Pads are all begins, then all ends."""
    if len(pads) != 2 * node.rank:
        raise ModelError(f"{node}: {node.rank} axes need {2 * node.rank} pads, found {len(pads)}")
    before, after = pads[: node.rank], pads[node.rank :]
    return padding.pad_by_extents(node[0], before, after, node.shapes.inputs, node.string("mode", "constant"), value)


@converter("Tile", 1)
def _tile_1(node: OnnxNode) -> Node:
    """One axis, which an input names, is repeated."""
    tiles, axis = node.constant_int(1, "tiles"), node.constant_int(2, "axis")
    repeats = [1] * node.rank
    repeats[normalize_axis(axis or 0, node.rank)] = 1 if tiles is None else tiles
    return repeat.tile(node[0], repeats)


@converter("Tile", 6, 13)
def _tile(node: OnnxNode) -> Node:
    repeats = (
        node.extents(1, "repeats") if node.is_known(1) else node.extents_of(as_vector(node[1], node.rank), "repeats")
    )
    return repeat.tile_by_extents(node[0], repeats, node.shapes.inputs)


@converter("Expand", 8, 13)
def _expand(node: OnnxNode) -> Node:
    """An open extent may stay what it is, which an extent of 1 says; one of a run may be 1 where a number is asked."""
    if not node.is_known(1):
        return run_time_operands.expanded(node)
    wanted = node.extents(1, "the shape")
    own = (*(None,) * (len(wanted) - node.rank), *node.type().shape)
    kept = [1 if extent is mine else extent for extent, mine in zip(wanted, own[len(own) - len(wanted) :], strict=True)]
    meets_number = any(
        mine is not None and isinstance(extent, int) and extent > 1 and may_meet_number_as_one(mine, node.shapes)
        for extent, mine in zip(kept, own[len(own) - len(wanted) :], strict=True)
    )
    broadcast = repeat.stretched_to_extents if meets_number else repeat.broadcast_to_extents
    return broadcast(node[0], kept, node.shapes.inputs)


@converter("DepthToSpace", 1, 11, 13, 28)
def _depth_to_space(node: OnnxNode) -> Node:
    return space_depth.depth_to_space(node[0], node.integer("blocksize"), node.string("mode", "DCR"))


@converter("SpaceToDepth", 1, 13, 28)
def _space_to_depth(node: OnnxNode) -> Node:
    return space_depth.space_to_depth(node[0], node.integer("blocksize"), node.string("mode", "DCR"))
