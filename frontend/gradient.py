"""The converter of Gradient: the derivatives of a value of the graph, ``y``, by other ones, ``xs``, at given values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.node import Constant, Node, Var, tensor_of
from ..graph.visit import inputs, post_order, with_inputs
from ..ops.gradients.backward import gradients
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs


def convert_gradient(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Node]:
    """The inputs are what ``xs`` and ``zs`` are at the point where the derivative is wanted."""
    xs, zs = node.strings("xs"), node.strings("zs") if node.has("zs") else ()
    given = node.all
    node.forms.check_plain(given, f"{node} takes")
    if len(given) != len(xs) + len(zs):
        raise node.unsupported(f"{len(given)} inputs, where xs and zs name {len(xs)} and {len(zs)} values,")
    variables = [_tensor(node, subgraphs, name) for name in (*xs, *zs)]
    for name, variable in zip((*xs, *zs), variables, strict=True):
        if isinstance(variable, Constant):  # what was computed of it was folded
            raise node.unsupported(f"the derivative by {name!r}, which the file stores: make it an input; that")
    result = _tensor(node, subgraphs, node.string("y"))
    if all(variable is point for variable, point in zip(variables, given, strict=True)):
        return gradients(result, given[: len(xs)])
    # One value may be the point of two variables, and be in the result itself, so that none can stand for another.
    stands = [Var(name, tensor_of(point)) for name, point in zip((*xs, *zs), given, strict=True)]
    moved = _with(dict(zip(variables, stands, strict=True)), result)
    points: dict[Node, Node] = dict(zip(stands, given, strict=True))
    return [_with(points, slope) for slope in gradients(moved, stands[: len(xs)])]


def _tensor(node: OnnxNode, subgraphs: Subgraphs, name: str) -> Node:
    value = subgraphs.named(name)
    if not isinstance(value, Node):
        raise node.unsupported(f"{name!r}, which is no tensor,")
    return value


def _with(values: Mapping[Node, Node], root: Node) -> Node:
    """A node computed anew with other values for some of those that it is computed from."""
    done = dict(values)
    for node in post_order(root, values.__contains__):
        if node not in done:
            done[node] = with_inputs(node, tuple(done[used] for used in inputs(node)))
    return done[root]
