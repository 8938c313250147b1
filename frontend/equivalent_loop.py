"""Operators of control flow that are imported as the Loop that does the same: its body is a function in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from onnx import AttributeProto, GraphProto, ValueInfoProto, helper

from ..graph.node import Constant, Node
from .loops import convert_loop
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs
from .values import Value

ITERATION, CONDITION = "iteration", "condition"


def as_loop(
    node: OnnxNode,
    trips: Node,
    carried: Sequence[Value],
    outputs: Sequence[ValueInfoProto],
    body: Callable[[Node, Sequence[Value]], Sequence[Value]],
    subgraphs: Subgraphs,
) -> Sequence[Value]:
    """The results of so many iterations, as those of Loop: what is ``carried``, and then rows. The ``body`` gives both
    for the number of an iteration and what is carried; ``outputs`` declares what it gives."""
    names = [f"carried{k}" for k in range(len(carried))]

    def results(graph: GraphProto, bound: Mapping[str, Value]) -> list[Value]:
        number = bound[ITERATION]
        assert isinstance(number, Node)
        return [Constant(np.array(True)), *body(number, [bound[name] for name in names])]

    graph = GraphProto(
        name=node.name,
        input=[ValueInfoProto(name=name) for name in (ITERATION, CONDITION, *names)],
        output=[ValueInfoProto(name=CONDITION), *outputs],
    )
    attributes: Mapping[str, AttributeProto] = {"body": helper.make_attribute("body", graph)}
    loop = replace(node, inputs=[node.finish(trips), None, *carried], attributes=attributes)
    return convert_loop(loop, replace(subgraphs, results=results))
