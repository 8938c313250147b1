"""Sequences that a Loop does nothing to but append: what each iteration appends is a row of what the loop stacks, or
stands in segments, and the sequence is made of that behind it."""

from __future__ import annotations

from collections.abc import Sequence, Set

from ..base.dataclass import dataclass
from ..graph.node import Node, tensor_of
from ..graph.types import TensorType
from ..ir.constants import ZERO
from ..ir.expr import Var
from ..ops.families.concatenate import concatenate
from ..ops.families.reshape import expand_dims
from . import ragged
from .onnx_node import OnnxNode
from .reshaping import reshape_to
from .stacking import GrownElements, has_born_extents
from .string_values import StringTensor, merged
from .values import Listed, Ragged, SequenceValue


@dataclass(frozen=True, slots=True, eq=False)
class Appended:
    """What an iteration appends to a sequence: ``elements`` of one type, which become ``rows`` of what the loop stacks;
    or, where their shapes differ, what has them ``grown``."""

    elements: Sequence[Node]
    grown: GrownElements | None

    @property
    def rows(self) -> Sequence[Node]:
        """What of them the loop stacks."""
        return self.elements if self.grown is None else ()


def appended_of(node: OnnxNode, elements: Sequence[Node], inner: Set[Var]) -> Appended:
    """How what a body appends is collected; ``inner`` are the extents that an iteration computes. Raises ``ModelError``
    for tensors of different ranks or dtypes."""
    kinds = [tensor_of(element) for element in elements]
    if len({(kind.ndim, kind.dtype) for kind in kinds}) > 1:
        raise node.unsupported("a loop that appends tensors of different ranks or dtypes to a sequence")
    alike = not any(has_born_extents(element, inner) for element in elements)
    if alike and all(kind is kinds[0] for kind in kinds):
        return Appended(elements, None)
    segments = node.shapes.new_segment(), node.shapes.new_segment()
    return Appended(elements, GrownElements(kinds[0].dtype, kinds[0].ndim, segments))


def with_appended(node: OnnxNode, before: SequenceValue, added: Ragged, utf8: Node | None) -> SequenceValue:
    """A sequence behind a loop that has appended others to it, of strings spans of ``utf8``."""
    dtype = tensor_of(added.values).dtype
    element = TensorType((ZERO,) * added.rank if added.shape is None else added.shape, dtype)
    is_empty = isinstance(before, Listed) and not before.elements
    (spans,), old_utf8 = node.forms.apart(before)
    if not is_empty and (utf8 is None) != (old_utf8 is None):
        raise node.unsupported("a loop that appends strings to a sequence of numbers, or numbers to one of strings,")
    old = ragged.as_ragged(node, spans, element if is_empty else None)
    if tensor_of(old.values).dtype is not dtype:
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


def of_stacks(node: OnnxNode, stacks: Sequence[Node]) -> Ragged:
    """The sequence of the rows of several stacks, in turn."""
    if len(stacks) == 1:
        return ragged.of_rows(node, stacks[0])
    trips, *shape = tensor_of(stacks[0]).shape
    together = concatenate([expand_dims(stack, (1,)) for stack in stacks], 1)
    rows = reshape_to(together, (trips * len(stacks), *shape), node.shapes.inputs)
    return ragged.of_rows(node, node.finish(rows))
