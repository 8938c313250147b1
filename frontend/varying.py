"""What a loop carries that changes its shape: a vector with room for the largest shape, and the extents that change.

An iteration takes its value from the beginning of the vector, and puts what it hands on there. How large that can get
is found out by importing the body once for extents up to a symbol: where each iteration adds so many to an extent, or
leaves it below another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..graph.node import Node, Var, tensor_of
from ..graph.types import TensorType, tensor_type
from ..ir.build import index_var
from ..ir.constants import ONE, ZERO
from ..ir.contents import free_vars, substitute
from ..ir.expr import Expr
from ..ir.expr import Var as Symbol
from ..ir.extent_bounds import bounds_of
from ..ir.facts import nonnegative, prove
from ..ir.makers import as_index, maximum
from ..ir.simplify import simplify
from ..ops.families.open_extents import open_slice
from ..ops.families.pad import pad_by_extents
from ..ops.families.reshape import reshape
from .onnx_node import OnnxNode
from .reshaping import reshape_to

MEANING = "an extent of what a loop carries"


@dataclass(frozen=True, slots=True, eq=False)
class VaryingValue:
    """A carried value, whose extents along the axes of ``most`` change, up to what that says."""

    name: str
    kind: TensorType
    most: Mapping[int, Expr]

    @property
    def room(self) -> Expr:
        """The elements of the vector."""
        extents = (self.most.get(axis, extent) for axis, extent in enumerate(self.kind.shape))
        return simplify(math.prod(extents, start=ONE))

    def variables(self) -> list[Var]:
        """What is carried in its place: the vector, and a vector of one number for each extent."""
        numbers = (Var(f"{self.name}.extent{axis}", tensor_type((1,), "int64")) for axis in self.most)
        return [Var(self.name, TensorType((self.room,), self.kind.dtype)), *numbers]

    def taken(self, node: OnnxNode, parts: Sequence[Node]) -> Node:
        """The value that these hold."""
        room, *numbers = parts
        shape = list(self.kind.shape)
        for (axis, most), number in zip(self.most.items(), numbers, strict=True):
            node.shapes.bounds.numbers[number] = ZERO, most
            (extent,) = node.extents_of(number, MEANING)
            shape[axis] = as_index(extent)
        count = simplify(math.prod(shape, start=ONE))
        inputs = node.shapes.inputs
        return node.finish(reshape_to(node.finish(open_slice(room, 0, ZERO, count, inputs)), shape, inputs))

    def put(self, node: OnnxNode, value: Node) -> list[Node]:
        """What holds a value."""
        shape = tensor_of(value).shape
        numbers = (node.finish(node.shapes.stand_for([shape[axis]])) for axis in self.most)
        return [padded(node, value, self.room), *numbers]


def padded(node: OnnxNode, value: Node, room: Expr) -> Node:
    """The elements of a tensor at the beginning of a vector."""
    flat = node.finish(reshape(value, (-1,)))
    left = simplify(room - tensor_of(flat).shape[0])
    return node.finish(pad_by_extents(flat, [0], [left], node.shapes.inputs))


Types = Callable[[Mapping[int, VaryingValue]], Mapping[int, TensorType]]
"""The types that the body gives for what is carried, by number, where some of it is in this form."""


def find_varying(
    node: OnnxNode, carried: Mapping[int, Node], given: Mapping[int, TensorType], types: Types, trips: Expr
) -> dict[int, VaryingValue]:
    """The carried values that change their shape, and how large they get in so many iterations. ``given`` are the types
    that the body gives for the first iteration. Raises ``ModelError`` where nothing tells how large."""
    axes: dict[int, set[int]] = {}
    inputs = node.shapes.inputs
    while new := _changed(node, carried, given, axes):
        for number, axis in new:
            axes.setdefault(number, set()).add(axis)
        rooms = {(k, axis): index_var("room") for k, found in axes.items() for axis in sorted(found)}
        witness = Var("room", tensor_type(tuple(rooms.values()), "bool"))
        inputs.append(witness)
        given = types(_with_most(carried, rooms))
        inputs.remove(witness)
    return _with_most(carried, _solved(node, carried, given, rooms, trips)) if axes else {}


def _changed(
    node: OnnxNode, carried: Mapping[int, Node], given: Mapping[int, TensorType], known: Mapping[int, set[int]]
) -> list[tuple[int, int]]:
    """Axes that turn out to change as well."""
    found = []
    for number, value in carried.items():
        before, after = tensor_of(value), given[number]
        if (before.ndim, before.dtype) != (after.ndim, after.dtype):
            raise node.unsupported(f"a carried value {number} that is a {before}, and a {after} behind an iteration,")
        pairs = enumerate(zip(before.shape, after.shape, strict=True))
        found += [(number, axis) for axis, (a, b) in pairs if a is not b and axis not in known.get(number, ())]
    return found


def _with_most(carried: Mapping[int, Node], most: Mapping[tuple[int, int], Expr]) -> dict[int, VaryingValue]:
    found: dict[int, dict[int, Expr]] = {}
    for (number, axis), extent in most.items():
        found.setdefault(number, {})[axis] = extent
    return {k: VaryingValue(f"carried{k}", tensor_of(carried[k]), extents) for k, extents in found.items()}


def _solved(
    node: OnnxNode,
    carried: Mapping[int, Node],
    given: Mapping[int, TensorType],
    rooms: Mapping[tuple[int, int], Symbol],
    trips: Expr,
) -> dict[tuple[int, int], Expr]:
    """The most that each extent can be, of what an iteration makes of extents up to the symbols."""
    bounds = node.shapes.bounds
    made = {(k, axis): bounds_of(given[k].shape[axis], bounds.most)[1] for k, axis in rooms}
    solved: dict[tuple[int, int], Expr] = {}
    while len(solved) < len(rooms):
        before = len(solved)
        known = {rooms[at]: extent for at, extent in solved.items()}
        for at, room in rooms.items():
            after = made[at]
            first = tensor_of(carried[at[0]]).shape[at[1]]
            if at in solved or after is None:
                continue
            after = simplify(substitute(after, known))
            added = simplify(after - room)
            open_rooms = set(rooms.values()) - known.keys()
            if not open_rooms & set(free_vars(added)):
                grows = prove(added >= 0, nonnegative(free_vars(added)))
                solved[at] = simplify(first + trips * (added if grows else maximum(added, ZERO)))
            elif not open_rooms & set(free_vars(after)):
                solved[at] = simplify(maximum(first, after))
        if len(solved) == before:
            raise node.unsupported(
                "a loop that carries a value of changing shape, of which nothing tells how large it gets,"
            )
    return solved
