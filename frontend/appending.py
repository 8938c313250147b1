"""Sequences that a Loop does nothing to but append: what each iteration appends is a row of what the loop stacks, of
which the sequence is made behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..graph.node import Node, tensor_of
from ..graph.types import TensorType
from ..ir.constants import ONE, ZERO
from ..ir.contents import free_vars
from ..ir.expr import Expr, Var
from ..ir.extent_bounds import bounds_of
from ..ir.makers import maximum
from ..ir.simplify import simplify
from ..ops.families.binary import less
from ..ops.families.concatenate import concatenate
from ..ops.families.gather import take
from ..ops.families.nonzero import nonzero
from ..ops.families.reduce import prod as product_of
from ..ops.families.reshape import expand_dims, reshape
from . import ragged
from .onnx_node import OnnxNode
from .reshaping import reshape_to
from .string_values import StringTensor, merged
from .values import Listed, Ragged, SequenceValue
from .varying import padded


@dataclass(frozen=True, slots=True, eq=False)
class Appended:
    """How what an iteration appends to a sequence is stacked: ``count`` tensors of one type, a row each; or, where they
    change their shape, each at the beginning of a longer vector, with a row of its extents behind."""

    count: int
    alike: bool


def appended_rows(node: OnnxNode, elements: Sequence[Node], born: frozenset[Var]) -> tuple[Appended, list[Node]]:
    """The rows that a body gives for what it appends; ``born`` are the extents that an iteration computes. Raises
    ``ModelError`` for tensors of different ranks or dtypes, and where nothing tells how large they get."""
    kinds = [tensor_of(element) for element in elements]
    inner = {v for kind in kinds for extent in kind.shape for v in free_vars(extent)} & born
    if not inner and all(kind is kinds[0] for kind in kinds):
        return Appended(len(elements), alike=True), list(elements)
    if len({(kind.ndim, kind.dtype) for kind in kinds}) > 1:
        raise node.unsupported("a loop that appends tensors of different ranks or dtypes to a sequence")
    rooms = [bounds_of(math.prod(kind.shape, start=ONE), node.shapes.bounds.most)[1] for kind in kinds]
    room: Expr = ZERO
    for most in rooms:
        if most is None or born & set(free_vars(most)):
            raise node.unsupported("a loop that appends tensors of which nothing tells how large they get")
        room = simplify(maximum(room, most))
    rows = []
    for element, kind in zip(elements, kinds, strict=True):
        rows += [padded(node, element, room), node.finish(node.shapes.stand_for(kind.shape))]
    return Appended(len(elements), alike=False), rows


def with_appended(
    node: OnnxNode, before: SequenceValue, appended: Appended, stacks: Iterator[Node], utf8: Node | None
) -> SequenceValue:
    """A sequence behind a loop that has appended to it; ``stacks`` gives what the loop has stacked, of strings spans of
    ``utf8``."""
    if not appended.count:
        return before
    if appended.alike:
        rows = _side_by_side(node, [next(stacks) for _ in range(appended.count)])
        added = ragged.of_rows(node, node.finish(rows))
        kind = tensor_of(rows)
        element = TensorType(kind.shape[1:], kind.dtype)
    else:
        pairs = [(next(stacks), next(stacks)) for _ in range(appended.count)]
        rooms, extents = (_side_by_side(node, list(column)) for column in zip(*pairs, strict=True))
        added = _compacted(node, rooms, node.finish(extents))
        element = TensorType((ZERO,) * added.rank, tensor_of(rooms).dtype)
    is_empty = isinstance(before, Listed) and not before.elements
    (spans,), old_utf8 = node.forms.apart(before)
    if not is_empty and (utf8 is None) != (old_utf8 is None):
        raise node.unsupported("a loop that appends strings to a sequence of numbers, or numbers to one of strings,")
    old = ragged.as_ragged(node, spans, element if is_empty else None)
    if tensor_of(old.values).dtype is not element.dtype:
        raise node.unsupported("a loop that appends tensors of another dtype than a sequence has")
    rank = max(old.rank, added.rank)
    old, added = (ragged.with_rank(node, each, rank) for each in (old, added))
    parts = [old.values, added.values]
    if utf8 is not None:
        parts, utf8 = merged(
            [StringTensor(old.values, utf8 if old_utf8 is None else old_utf8), StringTensor(added.values, utf8)]
        )
    values, extents = (node.finish(concatenate(pair, 0)) for pair in (parts, (old.extents, added.extents)))
    both = Ragged(values, extents, ragged.shape_of_both(old, added), old.mixed or added.mixed)
    return node.forms.joined(both, None if utf8 is None else node.finish(utf8))


def _side_by_side(node: OnnxNode, stacks: Sequence[Node]) -> Node:
    """The rows of several stacks, in turn."""
    if len(stacks) == 1:
        return stacks[0]
    trips, *shape = tensor_of(stacks[0]).shape
    together = concatenate([expand_dims(stack, (1,)) for stack in stacks], 1)
    return reshape_to(together, (trips * len(stacks), *shape), node.shapes.inputs)


def _compacted(node: OnnxNode, rooms: Node, extents: Node) -> Ragged:
    """The sequence of what stands at the beginning of rows, whose extents are the rows of another tensor."""
    (room,) = tensor_of(rooms).shape[1:]
    positions = ragged.numbers_below(node, room)
    used = less(expand_dims(positions, (0,)), expand_dims(product_of(extents, (1,)), (1,)))
    chosen = node.finish(reshape(nonzero(node.finish(reshape(used, (-1,)))), (-1,)))
    return Ragged(node.finish(take(node.finish(reshape(rooms, (-1,))), chosen, 0)), extents)
