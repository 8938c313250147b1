"""Subgraphs of nodes as closed functions: values that they read of the graphs around become operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from onnx import GraphProto

from ..base.errors import ModelError
from ..graph.closure import closed
from ..graph.node import Constant, Function, Node, Var, tensor_of
from ..ops.families.reshape import reshape
from .onnx_node import OnnxNode
from .shape_values import ShapeValues

Closed: TypeAlias = tuple[Function, tuple[Node, ...]]
"""A function, and the values that it captures, which are its last parameters."""


@dataclass(frozen=True, slots=True)
class Subgraphs:
    """How the subgraphs of a node are imported. ``results`` gives the outputs of one where values are bound to names;
    ``is_outside`` holds of the nodes of the graphs around."""

    results: Callable[[GraphProto, Mapping[str, Node]], list[Node]]
    is_outside: Callable[[Node], bool]
    shapes: ShapeValues

    def function(self, graph: GraphProto, params: Sequence[Var], results: Sequence[Node]) -> Closed:
        """The function of a subgraph that gives these results."""
        computed = [self.shapes.as_data(result, self.is_outside) for result in results]
        return closed(graph.name or "body", params, computed, self.is_outside)


def graph_attribute(node: OnnxNode, name: str) -> GraphProto:
    """A subgraph. Raises ``ModelError`` if it is missing."""
    if not node.has(name):
        raise ModelError(f"{node}: attribute {name} is missing")
    return node.attributes[name].g


def as_scalar(value: Node) -> Node:
    """One element as a scalar: exporters write ``[1]`` for some of them."""
    return reshape(value, ()) if tensor_of(value).ndim else value


def is_true(value: Node | None) -> bool:
    """Whether a condition is left out, or known to hold."""
    return value is None or (isinstance(value, Constant) and bool(value.value.all()))
