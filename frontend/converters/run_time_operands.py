"""Forms of ONNX's operators for shapes, indices and counts that only a run knows.

Each computes its extents from the operands by vectors of int64, has them become dimensions (``OnnxNode.extents_of``),
and moves elements by positions along these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph.node import Call, Constant, Node, tensor_of
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.makers import minimum as shorter
from ...ir.simplify import simplify
from ...ops.definition.relations import normalize_axis
from ...ops.families.assume_extent import assume_extent
from ...ops.families.binary import (
    add,
    divide,
    equal,
    greater_equal,
    less,
    logical_and,
    logical_or,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    subtract,
)
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.creation import arange
from ...ops.families.gather import take
from ...ops.families.open_extents import open_slice, positions
from ...ops.families.pad import pad_by_extents
from ...ops.families.reduce import any as any_of
from ...ops.families.reduce import prod as product_of
from ...ops.families.reduce import sum as sum_of
from ...ops.families.repeat import broadcast_to_extents
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.select import where
from ...ops.families.unary import abs as absolute
from ...ops.families.unary import ceil
from ..assumed_extent import without_forms
from ..integers import as_int64, as_number, as_vector, clamped, from_the_end, integers, steps_between
from ..onnx_node import OnnxNode
from ..reshaping import reshape_to

FAR = 1 << 62
"""An index beyond all ends."""


def numbers_up_to(node: OnnxNode, extent: int | Expr) -> Node:
    """0, 1, … below an extent."""
    if isinstance(extent, int) or const_int(extent) is not None:
        return arange(0, int(extent) if isinstance(extent, int) else const_int(extent) or 0, 1, "int64")
    return positions(extent, node.shapes.inputs)


def extent_as_number(node: OnnxNode, extent: Expr) -> Node:
    """An extent as a scalar of int64."""
    return node.shapes.stand_for([extent], scalar=True)


def element(vector: Node, number: int) -> Node:
    """One number of a vector, as a scalar."""
    return take(vector, integers(number), 0)


def reshaped(node: OnnxNode) -> Node:
    """A Reshape to a shape that a run computes: 0 is x's own extent, -1 what the others leave."""
    x, wanted = node[0], node.finish(as_vector(node[1]))
    own = tensor_of(x).shape
    elements = node.shapes.elements(wanted)
    shape = wanted
    if not node.flag("allowzero"):
        same = [own[k] if k < len(own) else as_index(0) for k in range(len(elements))]
        shape = where(equal(shape, integers(0)), node.shapes.stand_for(same), shape)
        elements = [same[k] if isinstance(e, int) and e == 0 else e for k, e in enumerate(elements)]
    if -1 not in [e for e in elements if isinstance(e, int)]:
        total = product_of(node.shapes.stand_for(own)) if own else integers(1)
        is_rest = equal(shape, integers(-1))
        others = product_of(where(is_rest, integers(1), shape))
        shape = where(is_rest, divide(total, maximum(others, integers(1))), shape)
    made = run_time_elements(node, shape, elements, "the shape")
    return reshape_to(x, made, node.shapes.inputs)


def run_time_elements(
    node: OnnxNode, values: Node, elements: Sequence[int | Expr | None], meaning: str
) -> list[int | Expr]:
    """The elements of a vector as extents: those that are None as dimensions that the run computes."""
    unknown = [k for k, known in enumerate(elements) if known is None]
    born = iter(node.extents_of(take(values, integers(unknown), 0), meaning) if unknown else ())
    return [next(born) if known is None else known for known in elements]


def expanded(node: OnnxNode) -> Node:
    """An Expand to a shape that a run computes. Along an axis both have one extent, or one of them 1."""
    x, wanted, of = node[0], node.finish(as_vector(node[1])), node.shapes.inputs
    elements = node.shapes.elements(wanted)
    rank = tensor_of(x).ndim
    axes = range(rank - len(elements), rank)  # of x that the elements are for, negative where it has none
    own = [tensor_of(x).shape[axis] if axis >= 0 else ONE for axis in axes]
    found = run_time_elements(
        node, _broadcast_extents(node, own, wanted), elements, "the shape, -1 where it does not fit,"
    )
    stretched: list[int | Expr] = []
    for axis, mine, extent, known in zip(axes, own, found, elements, strict=True):
        is_fitted = known is None and const_int(mine) != 1
        if is_fitted and const_int(mine) is None:
            last = extent_as_number(node, simplify(mine - 1))
            x = take(x, minimum(numbers_up_to(node, extent), last), axis)
        elif is_fitted:
            x = assume_extent(assume_extent(x, axis, as_index(extent), of), axis, mine, ())
        stretched.append(1 if is_fitted or extent is mine else extent)
    return broadcast_to_extents(x, stretched, of)


def _broadcast_extents(node: OnnxNode, own: Sequence[Expr], wanted: Node) -> Node:
    """What extents are when they are broadcast with a vector of others: -1 where one that is open differs, and none of
    both is 1."""
    mine, one = node.shapes.stand_for(own), integers(1)
    is_open = Constant(np.array([const_int(extent) is None for extent in own]))
    misfit = logical_and(is_open, logical_and(not_equal(mine, one), not_equal(mine, wanted)))
    return where(equal(wanted, one), mine, where(misfit, integers(-1), wanted))


def sliced(node: OnnxNode) -> Node:
    """A Slice by starts, ends, axes or steps that a run computes."""
    made = node[0]
    at_most_one = _is_next(node[1], node[2], node)
    for axis, start, end, step in _bounds(node):
        extent = extent_as_number(node, tensor_of(made).shape[axis])
        made = _sliced_axis(node, made, axis, extent, (start, end, step), at_most_one)
    return made


def _is_next(starts: Node, ends: Node, node: OnnxNode) -> bool:
    """Whether there is one end, which is the start and 1, as in ``x[i : i + 1]``."""
    start, end = map(without_forms, (starts, ends))
    if not isinstance(end, Call) or end.op.name != "add" or tensor_of(ends).static_shape != (1,):
        return False
    step = node.shapes.of(end.args[1])
    return without_forms(end.args[0]) is start and step is not None and step.size == 1 and step.item() == 1


def _bounds(node: OnnxNode) -> list[tuple[int, Node, Node, Node]]:
    """Start, end and step of each axis that is sliced. Of operands whose length only a run knows each run checks that
    they are as long as the others, or one number, where it knows that of none."""
    vectors = {k: node.finish(as_vector(node[k])) for k in range(1, 5) if node.get(k) is not None}
    lengths = {k: const_int(tensor_of(vector).shape[0]) for k, vector in vectors.items()}
    length = as_index(next((number for number in lengths.values() if number is not None), 1))
    for k in (k for k, number in lengths.items() if number is None):
        vectors[k] = node.finish(assume_extent(vectors[k], 0, length, node.shapes.inputs))
    starts, ends, given = vectors[1], vectors[2], vectors.get(4)
    count = node.shapes.elements(starts)
    steps = integers([1] * len(count)) if given is None else given
    axes = node.get(3)
    if axes is None or isinstance(axes, Constant):
        numbers = node.constant_ints(3, "axes") or range(len(count))
        return [
            (normalize_axis(axis, node.rank), element(starts, k), element(ends, k), element(steps, k))
            for k, axis in enumerate(numbers)
        ]
    named = from_the_end(vectors[3], integers(node.rank))
    return [(axis, *_of_axis(named, axis, starts, ends, steps)) for axis in range(node.rank)]


def _of_axis(named: Node, axis: int, starts: Node, ends: Node, steps: Node) -> tuple[Node, Node, Node]:
    """Start, end and step of an axis, if it is among those that are named; all of it if not."""
    here = equal(named, integers(axis))
    is_named = any_of(here)

    def found(values: Node, otherwise: int) -> Node:
        return where(is_named, sum_of(where(here, values, integers(0))), integers(otherwise))

    return found(starts, 0), found(ends, FAR), found(steps, 1)


def _sliced_axis(
    node: OnnxNode, x: Node, axis: int, extent: Node, bounds: tuple[Node, Node, Node], at_most_one: bool
) -> Node:
    """An axis from a start to an end: a run of it where the step is known to be 1, else element by element. That a run
    is ``at_most_one`` element long is said by its extent, so that it is 1 where it broadcasts."""
    start, end, step = bounds
    zero, one = integers(0), integers(1)
    backwards = less(step, zero)
    lowest, highest = where(backwards, integers(-1), zero), where(backwards, subtract(extent, one), extent)
    first = minimum(maximum(from_the_end(start, extent), zero), highest)  # -1 of no elements backwards
    last = clamped(from_the_end(end, extent), lowest, highest)
    count = steps_between(first, last, step)
    known = node.shapes.of(node.finish(step))
    if known is not None and known.item() == 1:
        both = concatenate([reshape(first, (1,)), reshape(count, (1,))], 0)
        begin, length = node.extents_of(both, "a start and how many elements follow")
        length = shorter(as_index(length), ONE) if at_most_one else length
        return open_slice(x, axis, begin, length, node.shapes.inputs)
    (length,) = node.extents_of(reshape(count, (1,)), "how many elements a slice has")
    return take(x, add(first, multiply(numbers_up_to(node, length), step)), axis)


def padded(node: OnnxNode, mode: str) -> Node:
    """A Pad by widths, along axes or with a value that a run computes; widths may be negative."""
    rank, axes = node.rank, node.get(3)
    padded_axes = rank if axes is None else const_int(tensor_of(as_vector(axes)).shape[0])
    pads = node.finish(as_vector(node[1], None if padded_axes is None else 2 * padded_axes))
    widths = [_widths(node, pads, axes, axis) for axis in range(rank)]
    chosen = [k for k in range(rank) if not all(_is_zero(node, width) for width in widths[k])]
    if not chosen:
        return node[0]
    if _is_padded_by_counts(node, chosen, mode):
        return _padded_by_counts(node, _widths_together(pads, axes, chosen, widths), chosen, mode)
    x: Node = node[0]
    for axis in chosen:
        begin, end = widths[axis]
        extent = extent_as_number(node, tensor_of(x).shape[axis])
        whole = reshape(add(add(begin, extent), end), (1,))
        (count,) = node.extents_of(whole, "an extent behind the padding")
        if mode == "constant":
            x = concatenate([x, _row(node, x, axis)], axis)
        x = take(x, _source(numbers_up_to(node, count), extent, begin, end, mode), axis)
    return x


def _is_padded_by_counts(node: OnnxNode, axes: Sequence[int], mode: str) -> bool:
    """Whether one ``pad`` adds all, which is quicker than to take elements by their positions along one axis after the
    other: by a number that is known, or with elements of axes that are not known to be empty."""
    if mode == "constant":
        return isinstance(node.get(2), Constant | None)
    return mode != "wrap" and all(const_int(tensor_of(node[0]).shape[axis]) != 0 for axis in axes)


def _is_zero(node: OnnxNode, width: Node) -> bool:
    known = node.shapes.of(node.finish(width))
    return known is not None and bool(known.item() == 0)


def _widths_together(
    pads: Node, axes: Node | None, chosen: Sequence[int], widths: Sequence[tuple[Node, Node]]
) -> tuple[Node, Node]:
    """How much stands before and behind the elements of each chosen axis, as two vectors."""
    if axes is None:
        return take(pads, integers(chosen), 0), take(pads, integers([k + len(widths) for k in chosen]), 0)
    begins, ends = (concatenate([reshape(widths[axis][k], (1,)) for axis in chosen], 0) for k in (0, 1))
    return begins, ends


def _padded_by_counts(node: OnnxNode, widths: tuple[Node, Node], axes: Sequence[int], mode: str) -> Node:
    """x with elements added by a single ``pad``, whose counts are dimensions: of each axis how many elements it has
    then, and how many are added before it, or taken away, which are no negative numbers either."""
    shape, zero, count = tensor_of(node[0]).shape, integers([0]), len(axes)
    begins, ends = widths
    wholes = add(add(begins, node.shapes.stand_for([shape[axis] for axis in axes])), ends)
    added, taken = maximum(begins, zero), maximum(subtract(zero, begins), zero)
    numbers = node.extents_of(concatenate([wholes, added, taken], 0), "an extent behind the padding")
    before: list[int | Expr] = [0] * node.rank
    after: list[int | Expr] = [0] * node.rank
    for axis, whole, more, fewer in zip(axes, numbers, numbers[count:], numbers[2 * count :], strict=False):
        before[axis] = simplify(as_index(more) - fewer)
        after[axis] = simplify(as_index(whole) - shape[axis] - before[axis])
    value = node.constant(2, "the constant value")
    filled = value.reshape(-1)[0].item() if value is not None and value.size else 0
    return pad_by_extents(node[0], before, after, node.shapes.inputs, mode, filled)


def _row(node: OnnxNode, x: Node, axis: int) -> Node:
    """One more element of an axis, of the number that is padded with: there is one to take, if x has none."""
    shape = [ONE if k == axis else extent for k, extent in enumerate(tensor_of(x).shape)]
    return broadcast_to_extents(_padding(node), shape, node.shapes.inputs)


def _before(vector: Node, count: int) -> Node:
    """A vector as an axis that so many others follow."""
    return expand_dims(vector, tuple(range(1, count + 1))) if count else vector


def _padding(node: OnnxNode) -> Node:
    value = node.get(2)
    kind = str(node.type().dtype)
    return cast(integers(0), kind) if value is None else as_number(value)


def _widths(node: OnnxNode, pads: Node, axes: Node | None, axis: int) -> tuple[Node, Node]:
    """How much stands before and behind the elements of an axis."""
    half = len(node.shapes.elements(pads)) // 2
    if axes is None:
        return element(pads, axis), element(pads, half + axis)
    named = from_the_end(as_vector(axes), integers(node.rank))
    here = equal(named, integers(axis))
    parts = (take(pads, integers(range(first, first + half)), 0) for first in (0, half))
    begin, end = (sum_of(where(here, part, integers(0))) for part in parts)
    return begin, end


def _source(numbers: Node, extent: Node, begin: Node, end: Node, mode: str) -> Node:
    """Where the elements of a padded axis come from, of which these are the numbers. What wraps is what is left where
    elements are taken away at the other end."""
    zero, one = integers(0), integers(1)
    index = subtract(numbers, begin)
    last = subtract(extent, one)
    match mode:
        case "reflect":
            period = maximum(multiply(last, integers(2)), one)
            turned = mod(absolute(index), period)
            return minimum(turned, subtract(period, turned))
        case "wrap":
            taken, taken_behind = (maximum(subtract(zero, width), zero) for width in (begin, end))
            left = subtract(subtract(extent, taken), taken_behind)
            return add(taken, mod(subtract(index, taken), maximum(left, one)))
        case "constant":
            return where(logical_and(greater_equal(index, zero), less(index, extent)), index, extent)
        case _:
            return clamped(index, zero, last)


def ranged(node: OnnxNode) -> Node:
    """A Range whose bounds a run computes: of floats the count is that of float64, as the quotient of their
    difference."""
    start, limit, delta = (as_number(node[k]) for k in range(3))
    kind = node.type().dtype
    if kind.is_float:
        span, step = (cast(value, "float64") for value in (subtract(limit, start), delta))
        count: Node = maximum(cast(ceil(divide(span, step)), "int64"), integers(0))
    else:
        count = steps_between(*(as_int64(value) for value in (start, limit, delta)))
    (extent,) = node.extents_of(reshape(count, (1,)), "how many numbers a range has")
    return add(start, multiply(cast(numbers_up_to(node, extent), str(kind)), delta))


def one_hot(node: OnnxNode, off: Node, on: Node, axis: int) -> Node:
    """A OneHot whose depth a run computes; negative indices count from the end."""
    (depth,) = node.extents_of(as_vector(node[1], 1), "the depth")
    axis = normalize_axis(axis, node.rank + 1)
    index = expand_dims(as_int64(node[0]), (axis,))
    place = _before(numbers_up_to(node, depth), node.rank - axis)
    from_end = add(index, extent_as_number(node, as_index(depth)))
    return where(logical_or(equal(index, place), equal(from_end, place)), on, off)


def split(node: OnnxNode, axis: int) -> Sequence[Node]:
    """A Split into parts whose extents follow from open dimensions, or are computed by a run."""
    begin: Expr = as_index(0)
    parts = []
    for extent in node.extents_of(as_vector(node[1], len(node.proto.output)), "the extents of the parts"):
        parts.append(open_slice(node[0], axis, begin, extent, node.shapes.inputs))
        begin = simplify(begin + extent)
    own = tensor_of(node[0]).shape[axis]
    if begin is not own:
        parts[-1] = assume_extent(parts[-1], axis, simplify(own - begin + as_index(extent)), node.shapes.inputs)
    return parts


def trilu(node: OnnxNode, upper: bool) -> Node:
    """A Trilu whose diagonal a run computes."""
    rows, columns = (numbers_up_to(node, extent) for extent in node.type().shape[-2:])
    distance = subtract(columns, expand_dims(rows, (1,)))
    diagonal = as_int64(as_number(node[1]))
    kept = greater_equal(distance, diagonal) if upper else greater_equal(diagonal, distance)
    return where(kept, node[0], cast(integers(0), str(node.type().dtype)))
