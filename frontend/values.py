"""What the values of an ONNX model are in a graph: a tensor is a node, sequences and optionals are made of nodes.

Most sequences have a length that is known when the model is imported: they are the list of their elements, and take
nothing at run time. Of others two tensors hold all elements.

    value    ::= tensor | sequence | Entries(keys, values) | Growing(tensor*) | Absent | Possible(present, …)
    sequence ::= Listed(tensor*) | Ragged(values, extents)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from ..base.dataclass import dataclass
from ..base.dtype import DType
from ..base.quantities import count_text
from ..base.value_form import ValueForm
from ..graph.node import Node, tensor_of
from ..ir.constants import const_int
from ..ir.expr import Expr


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A sequence of known length. ``dtype`` is that of its elements, where the model says so of an empty one."""

    elements: tuple[Node, ...]
    dtype: DType | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """A sequence whose length only a run knows, of tensors of one rank: ``values`` is a vector of the elements of all,
    one tensor behind the other; ``extents`` has a row of int64 for each. ``shape`` is the one that all have, if they
    certainly do. Of tensors of several ranks, which are ``mixed``, rows begin with -1 for each axis that a tensor has
    not: such a sequence can be appended to, and be an output."""

    values: Node
    extents: Node
    shape: tuple[Expr, ...] | None = None
    mixed: bool = False

    @property
    def length(self) -> Expr:
        """How many tensors there are."""
        return tensor_of(self.extents).shape[0]

    @property
    def rank(self) -> int:
        """The rank of each tensor, which all of them share."""
        rank = const_int(tensor_of(self.extents).shape[1])
        assert rank is not None
        return rank


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A map, which is an input: ``keys`` in ascending order, int64 or strings, and the value of each."""

    keys: Node
    values: Node


@dataclass(frozen=True, slots=True, eq=False)
class Growing:
    """A sequence that a loop carries, in its body: ``added`` is what this iteration has appended."""

    added: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Absent:
    """An optional that is empty."""


@dataclass(frozen=True, slots=True, eq=False)
class Possible:
    """An optional of which a run knows whether it is empty: ``present`` is one bool. Where it is, what ``value`` holds
    has no meaning."""

    present: Node
    value: Node | SequenceValue


SequenceValue: TypeAlias = Listed | Ragged
Value: TypeAlias = Node | SequenceValue | Entries | Growing | Absent | Possible


def nodes_of(value: Value) -> tuple[Node, ...]:
    """The nodes that a value is made of, in order."""
    match value:
        case Listed(elements) | Growing(elements):
            return elements
        case Ragged(values, extents):
            return values, extents
        case Entries(keys, values):
            return keys, values
        case Absent():
            return ()
        case Possible(present, inner):
            return present, *nodes_of(inner)
        case _:
            return (value,)


def element_nodes(value: Value) -> tuple[Node, ...]:
    """The nodes that hold elements of a value, not extents or whether it is there."""
    match value:
        case Ragged(values):
            return (values,)
        case Possible(value=inner):
            return element_nodes(inner)
        case _:
            return nodes_of(value)


def with_nodes(value: Value, nodes: Sequence[Node]) -> Value:
    """The value made of other nodes of the same types."""
    match value:
        case Listed(dtype=dtype):
            return Listed(tuple(nodes), dtype)
        case Ragged(shape=shape, mixed=mixed):
            values, extents = nodes
            return Ragged(values, extents, shape, mixed)
        case Entries():
            keys, values = nodes
            return Entries(keys, values)
        case Growing():
            return Growing(tuple(nodes))
        case Absent():
            return value
        case Possible(value=inner):
            made = with_nodes(inner, nodes[1:])
            assert not isinstance(made, (Entries, Growing, Absent, Possible))
            return Possible(nodes[0], made)
        case _:
            (node,) = nodes
            return node


def mapped(value: Value, fn: Callable[[Node], Node]) -> Value:
    """The value made of ``fn(node)`` in place of its nodes."""
    return with_nodes(value, [fn(node) for node in nodes_of(value)])


def form_of(name: str, value: Value) -> ValueForm:
    """How callers see a value of that name."""
    match value:
        case Listed(elements) | Growing(elements):
            return ValueForm(name, "list", len(elements))
        case Ragged(shape=shape):
            known = (None,) * value.rank if shape is None else tuple(map(const_int, shape))
            return ValueForm(name, "ragged", shape=known)
        case Entries():
            return ValueForm(name, "map")
        case Absent():
            return ValueForm(name, "absent")
        case Possible(value=inner):
            form = form_of(name, inner)
            return replace(form, optional=True)
        case _:
            return ValueForm(name)


def value_text(value: Value) -> str:
    """What a value is, for errors."""
    match value:
        case Growing():
            return "a sequence that a loop carries"
        case Listed(elements):
            return f"a sequence of {count_text(len(elements), 'tensor')}"
        case Ragged(values, shape=shape):
            of = (
                tensor_of(values).dtype if shape is None else f"{tensor_of(values).dtype}[{', '.join(map(str, shape))}]"
            )
            return f"a sequence of {of} whose length only the run knows"
        case Entries():
            return "a map"
        case Absent():
            return "an optional that is empty"
        case Possible(value=inner):
            return f"an optional: {value_text(inner)}"
        case _:
            return f"a {value.type}"
