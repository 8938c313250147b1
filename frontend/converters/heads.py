"""What operators for attention have in common, whoever they come from: heads, and caches of keys and values."""

from __future__ import annotations

from ...graph.node import Node, tensor_of
from ...ir.constants import ZERO, const_int
from ...ir.expr import Expr
from ...ir.simplify import simplify
from ...ops.families.assume_extent import assume_extent
from ...ops.families.concatenate import concatenate
from ...ops.families.transpose import transpose
from ..onnx_node import OnnxNode
from ..reshaping import reshape_to

BY_HEADS = (0, 2, 1, 3)
"""The axes of [batch, sequence, heads, size] in the order [batch, heads, sequence, size], and of that the other way."""


def count_of_heads(node: OnnxNode, name: str = "num_heads") -> int:
    """An attribute that says how many heads there are. Raises ``ModelError`` for none."""
    heads = node.integer(name)
    if heads < 1:
        raise node.unsupported(f"attention of {heads} heads")
    return heads


def known(node: OnnxNode, extent: Expr) -> int:
    """An extent that has to be a number. Raises ``ModelError`` where it is open."""
    return node.numbers((extent,))[0]


def in_heads(node: OnnxNode, x: Node, heads: int) -> Node:
    """[batch, sequence, heads · size] as [batch, sequence, heads, size]. Raises ``ModelError`` for a width that heads
    do not divide; each run checks an open one."""
    batch, length, width = tensor_of(x).shape
    size = simplify(width // heads)
    whole = simplify(size * heads)
    if const_int(width) not in (None, const_int(whole)):
        raise node.unsupported(f"a width of {width}, which {heads} heads do not divide,")
    x = x if whole is width else assume_extent(x, 2, whole, node.shapes.inputs)
    return reshape_to(x, (batch, length, heads, size), node.shapes.inputs)


def by_heads(x: Node) -> Node:
    """[batch, sequence, heads, size] as [batch, heads, sequence, size], or the other way."""
    return transpose(x, BY_HEADS)


def joined(node: OnnxNode, x: Node) -> Node:
    """[batch, sequence, heads, size] as [batch, sequence, heads · size]."""
    batch, length, heads, size = tensor_of(x).shape
    return reshape_to(x, (batch, length, simplify(heads * size)), node.shapes.inputs)


def with_past(past: Node | None, x: Node) -> Node:
    """What a cache has of earlier positions, and those of x behind, both [batch, heads, sequence, size]."""
    return x if past is None else concatenate([past, x], 2)


def past_length(past: Node | None) -> Expr:
    """How many positions a cache, [batch, heads, sequence, size], has; none where there is no cache."""
    return ZERO if past is None else tensor_of(past).shape[2]
