"""ONNX's operators of sequences and optionals.

A sequence of known length is the list of its tensors, and what is done to it is done now. ``ragged.py`` has what is
left to a run: sequences whose length only that knows, and positions where tensors differ in shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
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
    maximum,
    minimum,
    mod,
    multiply,
    subtract,
)
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.cumsum import cumsum
from ...ops.families.gather import take
from ...ops.families.reduce import all as all_of
from ...ops.families.reduce import sum as sum_of
from ...ops.families.repeat import broadcast_to_extents
from ...ops.families.reshape import expand_dims, reshape, squeeze
from ...ops.families.select import where
from ...ops.families.slicing import split
from ...ops.families.transpose import transpose
from ...ops.families.unary import identity
from .. import ragged
from ..integers import as_vector, integers, steps_between
from ..onnx_node import OnnxNode
from ..registry import converter
from ..reshaping import reshape_to
from ..tensors import element_type
from ..values import Absent, Growing, Listed, Possible, Ragged, SequenceValue, Value, value_text
from . import run_time_operands
from .creation import value_everywhere
from .run_time_operands import numbers_up_to

MOST_PARTS = 256
"""A tensor that is split into more equal parts is a sequence that takes them when asked for."""


def sequence_input(node: OnnxNode, index: int = 0, of_any_ranks: bool = False) -> SequenceValue:
    """An input that is a sequence. Raises ``ModelError`` for anything else, and for one that a run makes of tensors of
    several ranks."""
    found = node.value(index)
    if isinstance(found, Ragged) and found.mixed and not of_any_ranks:
        raise node.unsupported("a sequence to which a loop has appended tensors of another rank than it had")
    if isinstance(found, (Listed, Ragged)):
        return found
    if isinstance(found, Growing):
        raise node.unsupported(
            f"reading a sequence (input {index}, {node.proto.input[index]!r}) that a loop carries, whose number of "
            "iterations is not known, or large,"
        )
    raise ModelError(
        f"{node}: input {index}, {node.proto.input[index]!r}, should be a sequence, it is {value_text(found)}"
    )


@converter("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
def _identity(node: OnnxNode) -> Value:
    found = node.value(0)
    return identity(found) if isinstance(found, Node) else found


@converter("SequenceEmpty", 11)
def _empty(node: OnnxNode) -> Value:
    return Listed((), element_type(node.integer("dtype", 1), str(node)))


@converter("SequenceConstruct", 11)
def _construct(node: OnnxNode) -> Value:
    return Listed(tuple(node.all))


@converter("SequenceLength", 11)
def _length(node: OnnxNode) -> Node:
    found = sequence_input(node, of_any_ranks=True)
    length = as_index(len(found.elements)) if isinstance(found, Listed) else found.length
    return node.shapes.stand_for([length], scalar=True)


@converter("SequenceAt", 11)
def _at(node: OnnxNode) -> Node:
    found = sequence_input(node)
    number = _known_position(node, found, behind=0)
    if isinstance(found, Listed) and number is not None:
        return found.elements[number]
    return ragged.element_at(node, ragged.as_ragged(node, found), node[1])


@converter("SequenceInsert", 11)
def _insert(node: OnnxNode) -> Value:
    given, last = node.value(0), node.get(2) is None
    if isinstance(given, Growing) and last:
        return Growing((*given.added, node[1]))
    found = sequence_input(node)
    number = None if last or not isinstance(found, Listed) else _known_position(node, found, 1, 2)
    if isinstance(found, Listed) and (last or number is not None):
        at = len(found.elements) if number is None else number
        return Listed((*found.elements[:at], node[1], *found.elements[at:]))
    return ragged.inserted(node, ragged.as_ragged(node, found, node.type(1)), node[1], node.get(2))


@converter("SequenceErase", 11)
def _erase(node: OnnxNode) -> Value:
    found = sequence_input(node)
    if isinstance(found, Listed):
        number = len(found.elements) - 1 if node.get(1) is None else _known_position(node, found, behind=0)
        if number is not None and found.elements:
            return Listed((*found.elements[:number], *found.elements[number + 1 :]), found.dtype)
    return ragged.erased(node, ragged.as_ragged(node, found), node.get(1))


def _known_position(node: OnnxNode, sequence: SequenceValue, behind: int, index: int = 1) -> int | None:
    """A position in a sequence of known length, if it is known as well; one of an insertion may lie behind the last
    tensor. Raises ``ModelError`` for one outside of it."""
    position = node[index]
    if not isinstance(sequence, Listed) or not isinstance(position, Constant):
        return None
    length = len(sequence.elements)
    given = node.constant_int(index, "the position")
    assert given is not None
    number = given + length if given < 0 else given
    if not 0 <= number < length + behind:
        raise ModelError(f"{node}: the position {given} lies outside of {value_text(sequence)}")
    return number


@converter("ConcatFromSequence", 11)
def _concat(node: OnnxNode) -> Node:
    found, new_axis = sequence_input(node), node.flag("new_axis")
    if isinstance(found, Listed):
        if not found.elements:
            raise node.unsupported("a concatenation of no tensors")
        rank = tensor_of(found.elements[0]).ndim
        axis = normalize_axis(node.integer("axis"), rank + new_axis)
        return concatenate([expand_dims(e, (axis,)) for e in found.elements] if new_axis else found.elements, axis)
    return ragged.concatenated(node, found, normalize_axis(node.integer("axis"), found.rank + new_axis), new_axis)


@converter("SplitToSequence", 11, 24)
def _split(node: OnnxNode) -> Value:
    """Without extents of the parts these are 1, and then the axis may be dropped."""
    axis, sections = normalize_axis(node.integer("axis", 0), node.rank), node.get(1)
    extent = const_int(node.type().shape[axis])
    if sections is None:
        return _into_rows(node, axis, extent, node.flag("keepdims", True))
    if tensor_of(sections).ndim == 1:
        known = const_int(tensor_of(sections).shape[0]) is not None
        return Listed(tuple(_by_extents(node, axis))) if known else _by_open_extents(node, axis)
    if isinstance(sections, Constant) and extent is not None:
        size = node.constant_int(1, "the extent of the parts") or 0
        if size < 1:
            raise ModelError(f"{node}: the extent of the parts should be at least 1, found {size}")
        return Listed(tuple(split(node[0], [min(size, extent - k) for k in range(0, extent, size)], axis)))
    return _into_pieces(node, axis)


def _by_extents(node: OnnxNode, axis: int) -> Sequence[Node]:
    if isinstance(node[1], Constant) and const_int(node.type().shape[axis]) is not None:
        return split(node[0], node.required_constant(1, "the extents of the parts"), axis)
    return run_time_operands.split(node, axis)


def _into_rows(node: OnnxNode, axis: int, extent: int | None, keep: bool) -> Value:
    """Parts of extent 1."""
    if extent is not None and extent <= MOST_PARTS:
        parts = split(node[0], [1] * extent, axis) if extent else ()
        return Listed(tuple(parts if keep else (squeeze(part, [axis]) for part in parts)), node.type().dtype)
    others = [k for k in range(node.rank) if k != axis]
    rows = transpose(node[0], (axis, *others)) if axis else node[0]
    return ragged.of_rows(node, node.finish(expand_dims(rows, (axis + 1,)) if keep else rows))


def _by_open_extents(node: OnnxNode, axis: int) -> Ragged:
    """Parts of extents that a vector of open length has. Each run checks that together they are the axis."""
    same = value_everywhere(node[1])
    if same is not None and same > 0:
        return _into_equal_parts(node, axis, int(same))
    extents = node.finish(as_vector(node[1]))
    whole = node.shapes.stand_for([node.type().shape[axis]])
    fits = logical_and(all_of(greater_equal(extents, integers(0))), equal(sum_of(extents), squeeze(whole)))
    (total,) = node.extents_of(
        where(fits, whole, integers([-1])), "what the extents of the parts come to, -1 where that is not the axis,"
    )
    x = node.finish(assume_extent(node[0], axis, as_index(total), node.shapes.inputs))
    begins = node.finish(subtract(cumsum(extents, 0), extents))
    of_parts = _Pieces(node, x, axis, lambda places: _last_begun(begins, places), begins, extents)
    return Ragged(of_parts.elements(), of_parts.shapes())


def _into_equal_parts(node: OnnxNode, axis: int, extent: int) -> Ragged:
    """Parts of one extent that is known, as many as the vector of extents is long."""
    count, inputs = node.type(1).shape[0], node.shapes.inputs
    x = assume_extent(node[0], axis, simplify(count * extent), inputs)
    shape = tensor_of(x).shape
    parts = reshape_to(x, (*shape[:axis], count, extent, *shape[axis + 1 :]), inputs)
    order = [axis, *(k for k in range(node.rank + 1) if k != axis)]
    return ragged.of_rows(node, node.finish(transpose(parts, order) if axis else parts))


def _last_begun(begins: Node, places: Node) -> Node:
    """Which parts elements are of, by where parts begin: the last one that begins there, or before."""
    begun = greater_equal(expand_dims(places, (1,)), expand_dims(begins, (0,)))
    return subtract(sum_of(cast(begun, "int64"), (1,)), integers(1))


def _into_pieces(node: OnnxNode, axis: int) -> Ragged:
    """Parts of an extent that only a run knows, or of an axis whose extent is open; the last may be smaller."""
    whole, size = node.shapes.stand_for([node.type().shape[axis]]), node.finish(as_vector(node[1]))
    count = node.finish(steps_between(integers([0]), whole, maximum(size, integers([1]))))
    (number,) = node.extents_of(where(less(size, integers([1])), integers([-1]), count), "how many parts there are")
    begins = node.finish(multiply(numbers_up_to(node, number), size))
    extents = node.finish(minimum(size, subtract(whole, begins)))
    of_parts = _Pieces(
        node, node[0], axis, lambda places: divide(places, maximum(size, integers([1]))), begins, extents
    )
    return Ragged(of_parts.elements(), of_parts.shapes())


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """The parts that an axis of a tensor is cut into, whose number only a run knows."""

    node: OnnxNode
    x: Node
    axis: int
    part_of: Callable[[Node], Node]
    """Which parts places on the axis are of."""
    begins: Node
    extents: Node

    def shapes(self) -> Node:
        """The extents of all parts, a row for each."""
        number = tensor_of(self.extents).shape[0]
        columns = [
            expand_dims(self.extents, (1,)) if k == self.axis else self._everywhere(extent, number)
            for k, extent in enumerate(tensor_of(self.x).shape)
        ]
        return self.node.finish(concatenate(columns, 1))

    def _everywhere(self, extent: Expr, number: Expr) -> Node:
        column = expand_dims(self.node.shapes.stand_for([extent]), (0,))
        return broadcast_to_extents(column, [number, 1], self.node.shapes.inputs)

    def elements(self) -> Node:
        """The elements of all parts, one part behind the other, each in its own order."""
        node, shape, axis = self.node, tensor_of(self.x).shape, self.axis
        flat = node.finish(reshape(self.x, (-1,)))
        if all(const_int(extent) == 1 for extent in shape[:axis]):
            return flat
        rows, behind = (simplify(math.prod(part, start=ONE)) for part in (shape[:axis], shape[axis + 1 :]))
        before, after, line = (node.shapes.stand_for([e]) for e in (rows, behind, simplify(shape[axis] * behind)))
        place = numbers_up_to(node, tensor_of(flat).shape[0])
        full = maximum(multiply(before, after), integers([1]))
        part = node.finish(self.part_of(divide(place, full)))
        begin, extent = (take(vector, part, 0) for vector in (self.begins, self.extents))
        width = maximum(multiply(extent, after), integers([1]))
        inside = subtract(place, multiply(begin, full))
        source = add(add(multiply(divide(inside, width), line), multiply(begin, after)), mod(inside, width))
        return node.finish(take(flat, source, 0))


@converter("Optional", 15, 28)
def _optional(node: OnnxNode) -> Value:
    """What is there is the value itself."""
    return Absent() if not node.inputs or node.inputs[0] is None else node.value(0)


@converter("OptionalHasElement", 15, 18, 28)
def _has_element(node: OnnxNode) -> Node:
    found = node.inputs[0] if node.inputs else None
    if isinstance(found, Possible):
        return found.present
    return Constant(np.array(found is not None and not isinstance(found, Absent)))


@converter("OptionalGetElement", 15, 18, 28)
def _get_element(node: OnnxNode) -> Value:
    found = node.value(0)
    if isinstance(found, Absent):
        raise ModelError(f"{node}: it takes the value of an optional that is empty")
    return found.value if isinstance(found, Possible) else found
