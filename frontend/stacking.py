"""What iterations of a loop give that nobody knows the size of before: rows, and the tensors of a sequence, appended to
segments of memory that grow (``ops/families/segments.py``).

Each is a *collector*: what a loop carries for it, what an iteration hands on, and the value behind the loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

from ..base.dataclass import dataclass
from ..base.dtype import INT64, DType
from ..graph.node import Node, Var, tensor_of
from ..graph.types import TensorType, tensor_type
from ..ir.constants import ONE
from ..ir.contents import free_vars
from ..ir.expr import Expr
from ..ir.expr import Var as Symbol
from ..ir.makers import as_index
from ..ir.simplify import simplify
from ..ops.families.assume_extent import assume_extent
from ..ops.families.binary import divide, equal
from ..ops.families.open_extents import open_slice
from ..ops.families.reshape import reshape
from ..ops.families.segments import HANDLE, append_to_segment, read_segment, segment
from ..ops.families.select import where
from .integers import integers
from .onnx_node import OnnxNode
from .reshaping import reshape_to
from .values import Ragged


@dataclass(frozen=True, slots=True, eq=False)
class GrownRows:
    """Rows of one shape. Extents along ``axes`` are those of each iteration; each run checks that all are the same."""

    kind: TensorType
    axes: Sequence[int]
    number: int

    def variables(self, name: str) -> list[Var]:
        """What a loop carries: the segment, and the extents of the rows so far, if iterations compute them."""
        return [Var(name, HANDLE), *([Var(f"{name}.shape", self._extents)] if self.axes else ())]

    @property
    def _extents(self) -> TensorType:
        return tensor_type((len(self.axes),), "int64")

    def first(self, node: OnnxNode) -> list[Node]:
        """What is carried before the first iteration. Where there is none, extents of rows are 0."""
        return [node.finish(segment(self.number)), *([integers([0] * len(self.axes))] if self.axes else ())]

    def put(self, node: OnnxNode, iteration: Node, parts: Sequence[Node], row: Node) -> list[Node]:
        """What an iteration hands on that gives a row."""
        handle, *shapes = parts
        shape = tensor_of(row).shape
        own = [node.finish(node.shapes.stand_for([shape[axis] for axis in self.axes])) for _ in shapes]
        for before, now in zip(shapes, own, strict=True):
            is_first = node.finish(equal(iteration, integers(0)))
            all_rows = node.extents_of(where(is_first, now, before), "an extent of the rows that a loop stacks")
            for axis, extent in zip(self.axes, all_rows, strict=True):
                row = node.finish(assume_extent(row, axis, as_index(extent), node.shapes.inputs))
        flat = node.finish(reshape(row, (-1,)))
        return [node.finish(append_to_segment(handle, flat)), *own]

    def taken(self, node: OnnxNode, parts: Sequence[Node], count: Expr) -> Node:
        """The rows behind the loop, which had so many iterations."""
        handle, *shapes = parts
        shape = list(self.kind.shape)
        for extents in shapes:
            found = node.extents_of(extents, "an extent of the rows that a loop stacks")
            for axis, extent in zip(self.axes, found, strict=True):
                shape[axis] = as_index(extent)
        whole = [count, *shape]
        inputs = node.shapes.inputs
        flat = read_segment(handle, simplify(math.prod(whole, start=ONE)), self.kind.dtype, inputs)
        return node.finish(reshape_to(node.finish(flat), whole, inputs))


def has_born_extents(row: Node, inner: Set[Symbol]) -> bool:
    """Whether an iteration computes extents of what it gives; ``inner`` are those that it computes."""
    return any(inner & set(free_vars(extent)) for extent in tensor_of(row).shape)


def grown_rows(node: OnnxNode, row: Node, inner: Set[Symbol]) -> GrownRows:
    """The collector of rows such as this one; ``inner`` are the extents that an iteration computes."""
    kind = tensor_of(row)
    axes = [axis for axis, extent in enumerate(kind.shape) if inner & set(free_vars(extent))]
    return GrownRows(kind, axes, node.shapes.new_segment())


@dataclass(frozen=True, slots=True, eq=False)
class GrownElements:
    """Tensors of one rank, any number in each iteration: the elements of all in one segment, the extents in another."""

    dtype: DType
    rank: int
    segments: tuple[int, int]

    def variables(self, name: str) -> list[Var]:
        """What a loop carries: both segments."""
        return [Var(name, HANDLE), Var(f"{name}.extents", HANDLE)]

    def first(self, node: OnnxNode) -> list[Node]:
        """What is carried before the first iteration."""
        return [node.finish(segment(number)) for number in self.segments]

    def put(self, node: OnnxNode, parts: Sequence[Node], elements: Sequence[Node]) -> list[Node]:
        """What an iteration hands on that appends these tensors."""
        values, extents = parts
        for element in elements:
            values = node.finish(append_to_segment(values, node.finish(reshape(element, (-1,)))))
            shape = node.finish(node.shapes.stand_for(tensor_of(element).shape))
            extents = node.finish(append_to_segment(extents, shape))
        return [values, extents]

    def taken(self, node: OnnxNode, parts: Sequence[Node], count: Expr) -> Ragged:
        """The sequence of so many tensors behind the loop."""
        values, extents = parts
        inputs = node.shapes.inputs
        total = elements_used(node, values, self.dtype)
        rows = node.finish(read_segment(extents, simplify(count * self.rank), INT64, inputs))
        return Ragged(
            node.finish(read_segment(values, total, self.dtype, inputs)),
            node.finish(reshape_to(rows, (count, self.rank), inputs)),
        )


def elements_used(node: OnnxNode, handle: Node, dtype: DType) -> Expr:
    """How many elements of a dtype are used of a segment."""
    used = node.finish(open_slice(handle, 0, ONE, ONE, ()))
    count = node.finish(divide(used, integers([dtype.storage_bytes])))
    (elements,) = node.extents_of(count, "how many elements a loop has appended")
    return as_index(elements)
