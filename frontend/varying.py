"""What a loop carries that changes its shape: a segment of memory that grows, and the extents that change.

An iteration reads its value from one segment, and writes what it hands on to another one; the next iteration takes them
the other way round. So memory grows as often as a value is larger than all before it, and nothing has to tell how large
that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set

from ..base.dataclass import dataclass
from ..graph.node import Node, Var, tensor_of
from ..graph.types import TensorType, tensor_type
from ..ir.constants import ONE
from ..ir.makers import as_index
from ..ir.simplify import simplify
from ..ops.families.binary import multiply
from ..ops.families.reshape import reshape
from ..ops.families.segments import HANDLE, append_to_segment, read_segment, segment
from .integers import integers
from .onnx_node import OnnxNode
from .refusal_causes import RanksDifferError
from .reshaping import reshape_to

MEANING = "an extent of what a loop carries"


@dataclass(frozen=True, slots=True, eq=False)
class VaryingValue:
    """A carried value, whose extents along ``axes`` change. Two segments hold it in turn."""

    name: str
    kind: TensorType
    axes: Sequence[int]
    segments: tuple[int, int]

    def variables(self) -> list[Var]:
        """What is carried in its place: the segment that has it, the other one, and a vector of one number for each
        extent."""
        numbers = (Var(f"{self.name}.extent{axis}", tensor_type((1,), "int64")) for axis in self.axes)
        return [Var(self.name, HANDLE), Var(f"{self.name}.other", HANDLE), *numbers]

    def first(self, node: OnnxNode, value: Node) -> list[Node]:
        """What holds a value before the loop."""
        own, other = map(segment, self.segments)
        return [*self._put(node, own, value), *self._rest(node, other, value)]

    def put(self, node: OnnxNode, parts: Sequence[Node], value: Node) -> list[Node]:
        """What holds the value that an iteration hands on which was given these parts."""
        own, other, *_ = parts
        empty = node.finish(multiply(other, integers([1, 0])))
        return [*self._put(node, empty, value), *self._rest(node, own, value)]

    def taken(self, node: OnnxNode, parts: Sequence[Node]) -> Node:
        """The value that these hold."""
        own, _, *numbers = parts
        shape = list(self.kind.shape)
        for axis, number in zip(self.axes, numbers, strict=True):
            (extent,) = node.extents_of(number, MEANING)
            if shape[axis] is ONE:
                node.shapes.first_one.add(as_index(extent))
            shape[axis] = as_index(extent)
        inputs = node.shapes.inputs
        flat = read_segment(own, simplify(math.prod(shape, start=ONE)), self.kind.dtype, inputs)
        return node.finish(reshape_to(node.finish(flat), shape, inputs))

    def _put(self, node: OnnxNode, empty: Node, value: Node) -> list[Node]:
        flat = node.finish(reshape(value, (-1,)))
        return [node.finish(append_to_segment(node.finish(empty), flat))]

    def _rest(self, node: OnnxNode, other: Node, value: Node) -> list[Node]:
        shape = tensor_of(value).shape
        numbers = (node.finish(node.shapes.stand_for([shape[axis]])) for axis in self.axes)
        return [node.finish(other), *numbers]


Types = Callable[[Mapping[int, VaryingValue]], Mapping[int, TensorType]]
"""The types that the body gives for what is carried, by number, where some of it is in this form."""


def find_varying(
    node: OnnxNode,
    carried: Mapping[int, Node],
    given: Mapping[int, TensorType],
    known: Mapping[int, Set[int]],
    types: Types,
) -> dict[int, VaryingValue]:
    """The carried values that change their shape. ``given`` are the types that the body gives for the first iteration,
    if what is ``known`` to change, axes by the number of the value, does. Raises ``ModelError`` for values that change
    their rank or dtype."""
    axes = {number: set(changed) for number, changed in known.items()}
    found = varying_along(node, carried, axes)
    while new := _changed(node, carried, given, axes):
        for number, axis in new:
            axes.setdefault(number, set()).add(axis)
        found = varying_along(node, carried, axes)
        given = types(found)
    return found


def varying_along(node: OnnxNode, carried: Mapping[int, Node], axes: Mapping[int, Set[int]]) -> dict[int, VaryingValue]:
    """The carried values of these numbers, which change along these axes."""
    return {k: _varying(node, k, tensor_of(carried[k]), changed) for k, changed in axes.items()}


def _varying(node: OnnxNode, number: int, kind: TensorType, axes: Set[int]) -> VaryingValue:
    segments = node.shapes.new_segment(), node.shapes.new_segment()
    return VaryingValue(f"carried{number}", kind, sorted(axes), segments)


def _changed(
    node: OnnxNode, carried: Mapping[int, Node], given: Mapping[int, TensorType], known: Mapping[int, set[int]]
) -> list[tuple[int, int]]:
    """Axes that turn out to change as well."""
    found = []
    for number, value in carried.items():
        before, after = tensor_of(value), given[number]
        if (before.ndim, before.dtype) != (after.ndim, after.dtype):
            name = node.proto.input[2 + number] if number >= 0 else "strings"
            differ = f"a carried value {number}, {name!r}, that is a {before}, and a {after} behind an iteration,"
            if before.dtype is after.dtype:
                raise RanksDifferError(f"{node}: {differ} is not supported")
            raise node.unsupported(differ)
        pairs = enumerate(zip(before.shape, after.shape, strict=True))
        found += [(number, axis) for axis, (a, b) in pairs if a is not b and axis not in known.get(number, ())]
    return found
