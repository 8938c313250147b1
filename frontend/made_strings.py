"""Strings that iterations of a loop make. Those that are carried have bytes of their own, which are carried beside the
spans; those of rows and sequences are appended to a segment, in which the spans of all iterations lie."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dataclass import dataclass
from ..base.dtype import UINT8
from ..base.spans import LENGTH_BITS
from ..graph.node import Node, Var, tensor_of
from ..ir.constants import ONE
from ..ops.families.binary import add, left_shift
from ..ops.families.open_extents import open_slice
from ..ops.families.reshape import reshape
from ..ops.families.segments import HANDLE, append_to_segment, read_segment, segment
from ..ops.families.strings.concat import string_concat
from .integers import integers
from .onnx_node import OnnxNode
from .stacking import elements_used
from .string_values import StringTensor, constant_strings


def with_own_bytes(node: OnnxNode, text: StringTensor) -> StringTensor:
    """The strings, as spans of bytes that have nothing else."""
    nothing = constant_strings([""], (1,) * tensor_of(text.spans).ndim)
    spans, utf8 = string_concat(text.spans, text.utf8, nothing.spans, nothing.utf8)
    return StringTensor(node.finish(spans), node.finish(utf8))


@dataclass(frozen=True, slots=True, eq=False)
class GrownBytes:
    """The bytes of all strings that iterations make for some rows or for a sequence."""

    number: int

    def variables(self, name: str) -> list[Var]:
        """What a loop carries: the segment."""
        return [Var(f"{name}.bytes", HANDLE)]

    def first(self, node: OnnxNode) -> list[Node]:
        """What is carried before the first iteration."""
        return [node.finish(segment(self.number))]

    def put(self, node: OnnxNode, handle: Node, texts: Sequence[StringTensor]) -> tuple[Node, list[Node]]:
        """What is carried on behind the bytes of strings, and their spans among the bytes of all iterations."""
        moved = []
        for text in texts:
            own = with_own_bytes(node, text)
            begin = node.finish(reshape(open_slice(handle, 0, ONE, ONE, ()), ()))
            moved.append(node.finish(add(own.spans, left_shift(begin, integers(LENGTH_BITS)))))
            handle = node.finish(append_to_segment(handle, own.utf8))
        return handle, moved

    def taken(self, node: OnnxNode, handle: Node) -> Node:
        """The bytes behind the loop."""
        count = elements_used(node, handle, UINT8)
        return node.finish(read_segment(handle, count, UINT8, node.shapes.inputs))
