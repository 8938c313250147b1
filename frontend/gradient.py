"""The converter of Gradient: the derivatives of a value of the graph, ``y``, by other ones, ``xs``, at given values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.node import Constant, Node
from ..graph.visit import inputs, post_order, with_inputs
from ..ops.gradients.backward import gradients
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs


def convert_gradient(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Node]:
    """The inputs are what ``xs`` and ``zs`` are at the point where the derivative is wanted."""
    xs, zs = node.strings("xs"), node.strings("zs") if node.has("zs") else ()
    given = node.all
    if len(given) != len(xs) + len(zs):
        raise node.unsupported(f"{len(given)} inputs, where xs and zs name {len(xs)} and {len(zs)} values,")
    values: dict[Node, Node] = {}
    for name, point in zip((*xs, *zs), given, strict=True):
        value = _tensor(node, subgraphs, name)
        if isinstance(value, Constant):  # what was computed of it was folded
            raise node.unsupported(f"the derivative by {name!r}, which the file stores: make it an input; that")
        values[value] = point
    result = _at(_tensor(node, subgraphs, node.string("y")), values)
    return gradients(result, given[: len(xs)])


def _tensor(node: OnnxNode, subgraphs: Subgraphs, name: str) -> Node:
    value = subgraphs.named(name)
    if not isinstance(value, Node):
        raise node.unsupported(f"{name!r}, which is no tensor,")
    return value


def _at(result: Node, values: Mapping[Node, Node]) -> Node:
    """The result computed anew where these nodes have other values."""
    if all(node is value for node, value in values.items()):
        return result
    done = dict(values)
    for node in post_order(result, values.__contains__):
        if node not in done:
            done[node] = with_inputs(node, tuple(done[used] for used in inputs(node)))
    return done[result]
