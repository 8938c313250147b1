"""What two branches of an If give, as values that one call can give: of the same types.

Extents that differ become dimensions that the run computes, and sequences of different lengths those whose length only
the run knows. Where one branch gives an empty optional, a bool says whether it is there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.errors import ModelError
from ..graph.node import Constant, Node, tensor_of
from ..graph.types import TensorType
from ..ir.constants import ONE, ZERO
from ..ir.makers import as_index
from ..ops.families.open_extents import open_slice
from ..ops.families.repeat import broadcast_to_extents
from ..ops.families.reshape import reshape
from ..ops.families.select import where
from .onnx_node import OnnxNode
from .ragged import as_ragged, shape_of_both
from .refusal_causes import RanksDifferError
from .subgraphs import Subgraphs
from .values import Absent, Entries, Growing, Listed, Possible, Ragged, SequenceValue, Value, nodes_of, value_text

Both = tuple[Value, Value]
"""What the branches give for one result: made of nodes of the same types."""
Present = Node | SequenceValue
"""What an optional may hold."""


def unified(node: OnnxNode, condition: Node, subgraphs: Subgraphs, then: Value, otherwise: Value) -> Both:
    """Both results of an If in one form. Raises ``ModelError`` where there is none."""
    return _Branches(node, condition, subgraphs).unified(then, otherwise)


class _Branches:
    """The branches of a node, whose condition is a scalar."""

    def __init__(self, node: OnnxNode, condition: Node, subgraphs: Subgraphs) -> None:
        self._node, self._condition, self._subgraphs = node, condition, subgraphs

    def unified(self, then: Value, otherwise: Value) -> Both:
        if isinstance(then, (Entries, Growing)) or isinstance(otherwise, (Entries, Growing)):
            raise self._differ(then, otherwise)
        if isinstance(then, (Absent, Possible)) or isinstance(otherwise, (Absent, Possible)):
            return self._optional(then, otherwise)
        return self._present(then, otherwise)

    def _present(self, then: Present, otherwise: Present) -> tuple[Present, Present]:
        if isinstance(then, (Listed, Ragged)) and isinstance(otherwise, (Listed, Ragged)):
            return self._sequences(then, otherwise)
        if isinstance(then, Node) and isinstance(otherwise, Node):
            return self._tensors(then, otherwise)
        raise self._differ(then, otherwise)

    def _single_elements(self, then: Node, otherwise: Node) -> tuple[Node, Node] | None:
        """Two tensors of one element each in the shape of that of lower rank, which what follows can take for either,
        as exporters write ``[1]`` for some scalars; None for others."""
        kinds = [tensor_of(then), tensor_of(otherwise)]
        if kinds[0].dtype != kinds[1].dtype or any(set(kind.shape) - {ONE} for kind in kinds):
            return None
        shape = (1,) * min(kind.ndim for kind in kinds)
        a, b = (self._node.finish(reshape(x, shape)) for x in (then, otherwise))
        return a, b

    def _differ(self, then: Value, otherwise: Value) -> Exception:
        ranks = {(tensor_of(x).ndim, tensor_of(x).dtype) for x in (then, otherwise) if isinstance(x, Node)}
        of_ranks = len(ranks) == 2 and len({dtype for _, dtype in ranks}) == 1
        return (RanksDifferError if of_ranks else ModelError)(
            f"{self._node}: a result is {value_text(then)} in one branch and {value_text(otherwise)} in the other; "
            "both branches have to give one type, up to the extents"
        )

    def _optional(self, then: Absent | Possible | Present, otherwise: Absent | Possible | Present) -> Both:
        if isinstance(then, Absent) and isinstance(otherwise, Absent):
            return then, otherwise
        (has_then, first), (has_otherwise, second) = _presence(then), _presence(otherwise)
        known = second if first is None else first
        assert known is not None  # both absent is above
        first = self._instead(known) if first is None else first
        second = self._instead(known) if second is None else second
        a, b = self._present(first, second)
        return Possible(has_then, a), Possible(has_otherwise, b)

    def _instead(self, value: Present) -> Present:
        """What stands for a value in the branch where it is absent."""
        if isinstance(value, (Listed, Ragged)):
            return Listed(())
        (tensor,) = nodes_of(value)
        kind = tensor_of(tensor)
        zero = Constant(np.zeros((), kind.dtype.to_numpy()))
        return self._node.finish(broadcast_to_extents(zero, kind.shape, self._node.shapes.inputs))

    def _sequences(self, then: SequenceValue, otherwise: SequenceValue) -> tuple[Present, Present]:
        if isinstance(then, Listed) and isinstance(otherwise, Listed) and len(then.elements) == len(otherwise.elements):
            pairs = list(zip(then.elements, otherwise.elements, strict=True))
            if all(_alike(a, b) for a, b in pairs):
                fitted = [self._tensors(*pair) for pair in pairs]
                return Listed(tuple(a for a, _ in fitted), then.dtype), Listed(tuple(b for _, b in fitted), then.dtype)
        like = _element_type(then) or _element_type(otherwise)
        if like is None:
            raise self._differ(then, otherwise)
        a, b = (as_ragged(self._node, sequence, like) for sequence in (then, otherwise))
        if a.rank != b.rank:
            raise self._differ(then, otherwise)
        values, extents = (self._tensors(*pair) for pair in ((a.values, b.values), (a.extents, b.extents)))
        shape = shape_of_both(a, b)
        mixed = a.mixed or b.mixed
        return Ragged(values[0], extents[0], shape, mixed), Ragged(values[1], extents[1], shape, mixed)

    def _tensors(self, then: Node, otherwise: Node) -> tuple[Node, Node]:
        """Two tensors of one rank and dtype. Where their extents differ, that of the result is computed before, from
        the condition."""
        if then.type is otherwise.type:
            return then, otherwise
        if (elements := self._single_elements(then, otherwise)) is not None:
            return elements
        if not _alike(then, otherwise):
            raise self._differ(then, otherwise)
        node, shapes = self._node, [tensor_of(then).shape, tensor_of(otherwise).shape]
        axes = [axis for axis, (a, b) in enumerate(zip(*shapes, strict=True)) if a is not b]
        first, second = (node.shapes.stand_for([shape[axis] for axis in axes]) for shape in shapes)
        before = len(node.shapes.inputs)
        extents = node.extents_of(where(self._condition, first, second), "an extent of what a branch gives")
        self._subgraphs.move_out(before)
        for axis, extent in zip(axes, extents, strict=True):
            then, otherwise = (
                node.finish(open_slice(x, axis, ZERO, as_index(extent), node.shapes.inputs)) for x in (then, otherwise)
            )
        return then, otherwise


def _alike(a: Node, b: Node) -> bool:
    """Whether two tensors are of one rank and dtype."""
    first, second = tensor_of(a), tensor_of(b)
    return (first.ndim, first.dtype) == (second.ndim, second.dtype)


def _element_type(sequence: SequenceValue) -> TensorType | None:
    """The type of a tensor of a sequence, as far as its rank and dtype go."""
    if isinstance(sequence, Listed):
        return tensor_of(sequence.elements[0]) if sequence.elements else None
    return TensorType((ZERO,) * sequence.rank, tensor_of(sequence.values).dtype)


def _presence(value: Absent | Possible | Present) -> tuple[Node, Present | None]:
    """Whether a value is there, and it."""
    match value:
        case Absent():
            return Constant(np.array(False)), None
        case Possible(present, inner):
            return present, inner
        case _:
            return Constant(np.array(True)), value


def both_results(pairs: Sequence[Both]) -> tuple[list[Node], list[Node]]:
    """The nodes that the first and the second branch give."""
    first = [part for then, _ in pairs for part in nodes_of(then)]
    return first, [part for _, otherwise in pairs for part in nodes_of(otherwise)]
