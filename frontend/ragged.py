"""Sequences that only a run knows, as two tensors: the elements of all of its tensors, one behind the other, and their
extents. What is inserted, erased and taken is so a part of either, and no run needs more than tensors.

Positions count from the end where they are negative; each run checks that they lie within the sequence.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from ..base.dtype import INT64, DType
from ..base.errors import ModelError
from ..graph.node import Constant, Node, tensor_of
from ..graph.types import TensorType
from ..ir.constants import ONE, ZERO, const_int
from ..ir.expr import Expr
from ..ir.makers import as_index
from ..ir.simplify import simplify
from ..ops.families.assume_extent import assume_extent
from ..ops.families.binary import add, equal, greater_equal, less, logical_and, subtract
from ..ops.families.concatenate import concatenate
from ..ops.families.creation import arange
from ..ops.families.gather import take
from ..ops.families.open_extents import open_slice, positions
from ..ops.families.reduce import all as all_of
from ..ops.families.reduce import prod as product_of
from ..ops.families.reduce import sum as sum_of
from ..ops.families.repeat import broadcast_to_extents
from ..ops.families.reshape import reshape
from ..ops.families.select import where
from ..ops.families.transpose import transpose
from .integers import as_int64, as_number, from_the_end, integers
from .onnx_node import OnnxNode
from .reshaping import reshape_to
from .values import Ragged, SequenceValue


def as_ragged(node: OnnxNode, sequence: SequenceValue, like: TensorType | None = None) -> Ragged:
    """A sequence in the form of which only a run knows the length. ``like`` is a tensor that goes into it, which tells
    what an empty one would hold. Raises ``ModelError`` for tensors of different ranks or dtypes."""
    if isinstance(sequence, Ragged):
        return sequence
    kinds = [tensor_of(element) for element in sequence.elements]
    first = kinds[0] if kinds else like
    if first is None:
        raise node.unsupported("an empty sequence of which nothing tells the rank of its tensors")
    for kind in (*kinds, *(() if like is None else (like,))):
        if (kind.ndim, kind.dtype) != (first.ndim, first.dtype):
            raise node.unsupported(
                f"a sequence of {first} and {kind}, of different ranks or dtypes, whose length or order only the run "
                "knows,"
            )
    if not kinds:
        return Ragged(_nothing((0,), first.dtype), _nothing((0, first.ndim), INT64), first.shape)
    parts = [reshape(element, (-1,)) for element in sequence.elements]
    extents = [extent for kind in kinds for extent in kind.shape]
    alike = all(kind is first for kind in kinds)
    return Ragged(
        node.finish(concatenate(parts, 0)),
        node.finish(reshape(node.shapes.stand_for(extents), (len(kinds), first.ndim), allow_zero=True)),
        first.shape if alike else None,
    )


def shape_of_both(a: Ragged, b: Ragged) -> tuple[Expr, ...] | None:
    """The one shape that the tensors of two sequences have; None if it is not certainly one."""
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return None
    return a.shape if all(map(operator.is_, a.shape, b.shape)) else None


def with_rank(node: OnnxNode, sequence: Ragged, rank: int) -> Ragged:
    """A sequence beside tensors of so many axes, which are as many as its own or more."""
    missing = rank - sequence.rank
    if not missing:
        return sequence
    none = broadcast_to_extents(integers(-1), [sequence.length, missing], node.shapes.inputs)
    extents = node.finish(concatenate([node.finish(none), sequence.extents], 1))
    return Ragged(sequence.values, extents, mixed=True)


def _nothing(shape: tuple[int, ...], kind: DType) -> Constant:
    return Constant(np.zeros(shape, kind.to_numpy()))


def stacked(node: OnnxNode, sequence: Ragged) -> Node:
    """The tensors of a sequence, which have one shape, along a new first axis."""
    assert sequence.shape is not None
    return node.finish(reshape_to(sequence.values, (sequence.length, *sequence.shape), node.shapes.inputs))


def of_rows(node: OnnxNode, rows: Node) -> Ragged:
    """The sequence of what a tensor has along its first axis."""
    kind = tensor_of(rows)
    shape, inputs = kind.shape[1:], node.shapes.inputs
    row = reshape(node.shapes.stand_for(shape), (1, len(shape))) if shape else _nothing((1, 0), INT64)
    extents = broadcast_to_extents(node.finish(row), [kind.shape[0], len(shape)], inputs)
    return Ragged(node.finish(reshape(rows, (-1,))), node.finish(extents), shape)


def element_at(node: OnnxNode, sequence: Ragged, position: Node) -> Node:
    """The tensor at a position."""
    index = _checked(node, position, sequence.length, "the position in a sequence")
    number = node.shapes.stand_for([index], scalar=True)
    if sequence.shape is not None:
        return take(stacked(node, sequence), number, 0)
    row = take(sequence.extents, number, 0)
    begin, *shape = node.extents_of(
        concatenate([reshape(_begin(node, sequence, number), (1,)), row], 0), "where the tensor of a sequence lies"
    )
    count = simplify(math.prod(map(as_index, shape), start=ONE))
    return reshape_to(open_slice(sequence.values, 0, begin, count, node.shapes.inputs), shape, node.shapes.inputs)


def inserted(node: OnnxNode, sequence: Ragged, tensor: Node, position: Node | None) -> Ragged:
    """The sequence with a tensor before a position, or behind all others."""
    kind = tensor_of(tensor)
    alike = sequence.shape is not None and (
        const_int(sequence.length) == 0 or all(a is b for a, b in zip(sequence.shape, kind.shape, strict=True))
    )
    row = node.finish(reshape(node.shapes.stand_for(kind.shape), (1, kind.ndim), allow_zero=True))
    new = node.finish(reshape(tensor, (-1,)))
    values, extents = (node.finish(concatenate(pair, 0)) for pair in ((sequence.values, new), (sequence.extents, row)))
    last = Ragged(values, extents, kind.shape if alike else None)
    if position is None:
        return last
    index = _checked(node, position, sequence.length, "the position of an insertion", simplify(sequence.length + 1))
    numbers, at, end = (numbers_below(node, last.length), *_numbers_of(node, index, sequence.length))
    order = where(equal(numbers, at), end, where(less(numbers, at), numbers, subtract(numbers, integers([1]))))
    if alike:
        return _in_order(node, last, order)
    total = tensor_of(sequence.values).shape[0]
    begin, rest = _parts(node, sequence, index, index)
    parts = [_part(node, sequence.values, ZERO, begin), new, _part(node, sequence.values, begin, rest)]
    whole = assume_extent(concatenate(parts, 0), 0, simplify(total + tensor_of(new).shape[0]), node.shapes.inputs)
    return Ragged(node.finish(whole), node.finish(take(extents, order, 0)))


def erased(node: OnnxNode, sequence: Ragged, position: Node | None) -> Ragged:
    """The sequence without the tensor at a position, or the last one."""
    position = integers(-1) if position is None else position
    index = _checked(node, position, sequence.length, "the position of what is erased")
    (left,) = node.extents_of(
        subtract(node.shapes.stand_for([sequence.length]), integers([1])), "the length of a sequence without one"
    )
    numbers, (at, _) = numbers_below(node, as_index(left)), _numbers_of(node, index, sequence.length)
    order = where(less(numbers, at), numbers, add(numbers, integers([1])))
    if sequence.shape is not None:
        return _in_order(node, sequence, order)
    begin, rest = _parts(node, sequence, index, simplify(index + 1))
    total = tensor_of(sequence.values).shape[0]
    parts = [_part(node, sequence.values, ZERO, begin), _part(node, sequence.values, simplify(total - rest), rest)]
    return Ragged(node.finish(concatenate(parts, 0)), node.finish(take(sequence.extents, order, 0)))


def _in_order(node: OnnxNode, sequence: Ragged, order: Node) -> Ragged:
    """The tensors of one shape at these positions."""
    return of_rows(node, node.finish(take(stacked(node, sequence), order, 0)))


def _numbers_of(node: OnnxNode, *extents: Expr) -> tuple[Node, ...]:
    return tuple(node.shapes.stand_for([extent]) for extent in extents)


def _parts(node: OnnxNode, sequence: Ragged, first: Expr, last: Expr) -> tuple[Expr, Expr]:
    """How many elements there are before the tensor of one number, and from that of another on."""
    total = node.shapes.stand_for(tensor_of(sequence.values).shape)
    begin, end = (reshape(_begin(node, sequence, *_numbers_of(node, index)), (1,)) for index in (first, last))
    counts = concatenate([begin, subtract(total, end)], 0)
    before, behind = node.extents_of(counts, "how many elements of a sequence stand before and behind a position")
    return as_index(before), as_index(behind)


def _part(node: OnnxNode, x: Node, begin: Expr, count: Expr) -> Node:
    return open_slice(x, 0, begin, count, node.shapes.inputs)


def concatenated(node: OnnxNode, sequence: Ragged, axis: int, new_axis: bool) -> Node:
    """All tensors along an axis, an axis of theirs or a new one. Raises ``ModelError`` for tensors that may differ in
    shape, but for along the first axis."""
    rank = sequence.rank
    if new_axis or sequence.shape is not None:
        rows = stacked(node, _alike(node, sequence))
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        turned = transpose(rows, order) if axis else rows
        if new_axis:
            return turned
        shape = tensor_of(turned).shape
        merged = simplify(shape[axis] * shape[axis + 1])
        return reshape_to(turned, (*shape[:axis], merged, *shape[axis + 2 :]), node.shapes.inputs)
    if axis:
        raise node.unsupported(
            f"tensors of shapes that only the run knows, which are concatenated along axis {axis} and not the first,"
        )
    others = _common(node, sequence.extents, range(1, rank))
    column = take(sequence.extents, integers(0), 1)
    found = node.extents_of(concatenate([reshape(sum_of(column), (1,)), others], 0), "the extents of a concatenation")
    return reshape_to(sequence.values, found, node.shapes.inputs)


def _alike(node: OnnxNode, sequence: Ragged) -> Ragged:
    """The sequence, whose tensors have to be of one shape."""
    if sequence.shape is not None:
        return sequence
    common = _common(node, sequence.extents, range(sequence.rank))
    shape = node.extents_of(common, "the shape that all tensors of a sequence have, -1 where they differ,")
    return Ragged(sequence.values, sequence.extents, tuple(map(as_index, shape)))


def _common(node: OnnxNode, extents: Node, axes: Sequence[int]) -> Node:
    """The extents that all tensors have along some axes, -1 where they differ."""
    own = take(extents, integers(list(axes)), 1)
    first = take(own, integers([0]), 0)
    return node.finish(where(all_of(equal(own, first), (0,)), reshape(first, (-1,)), integers(-1)))


def _checked(node: OnnxNode, position: Node, length: Expr, meaning: str, end: Expr | None = None) -> Expr:
    """A position as an extent: each run checks that it lies within the sequence, or before ``end``."""
    count, behind = (
        node.shapes.stand_for([extent], scalar=True) for extent in (length, length if end is None else end)
    )
    given = node.finish(as_int64(as_number(position)))
    index = from_the_end(given, count)
    inside = logical_and(greater_equal(index, integers(0)), less(index, behind))
    found = node.finish(reshape(where(inside, index, integers(-1)), (1,)))
    if (known := node.shapes.of(found)) is not None and known.item() == -1:
        raise ModelError(f"{node}: {meaning} lies outside of it, which has {length} tensors")
    (extent,) = node.extents_of(found, f"{meaning}, -1 outside of it,")
    return as_index(extent)


def _begin(node: OnnxNode, sequence: Ragged, index: Node) -> Node:
    """How many elements there are before the tensor of a number."""
    sizes = product_of(sequence.extents, (1,)) if sequence.rank else None
    if sizes is None:
        return index
    return sum_of(where(less(numbers_below(node, sequence.length), index), sizes, integers(0)))


def numbers_below(node: OnnxNode, length: Expr) -> Node:
    """0, 1, … below an extent."""
    known = const_int(length)
    return arange(0, known, 1, "int64") if known is not None else positions(length, node.shapes.inputs)
