"""Loops whose body is imported once for each iteration: where the number of iterations is known and small, and what
they carry is a sequence, or changes its shape. Then each iteration has types of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto

from ..graph.node import Constant, Node
from ..ops.families.concatenate import concatenate
from ..ops.families.reshape import expand_dims
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs, as_declared, is_true
from .values import Value


def unrolled(
    node: OnnxNode, graph: GraphProto, carried: Sequence[Value], trips: int, subgraphs: Subgraphs
) -> Sequence[Value] | None:
    """The results of a Loop, iteration after iteration; None where a run decides when it ends."""
    values = list(carried)
    rows: list[list[Value]] = [[] for _ in graph.output[len(carried) + 1 :]]
    condition = node.get(1)
    for number in range(trips):
        if condition is not None and not isinstance(condition, Constant):
            return None
        if not is_true(condition):
            break
        count = as_declared(Constant(np.array(number, np.int64)), graph.input[0])
        holds = as_declared(Constant(np.array(True)), graph.input[1])
        names = [i.name for i in graph.input]
        given = dict(zip(names, [count, holds, *values], strict=True))
        after, *results = subgraphs.results(graph, given)
        condition = None if condition is None else _tensor(node, after)
        values = results[: len(carried)]
        for stack, row in zip(rows, results[len(carried) :], strict=True):
            stack.append(row)
    if any(not stack for stack in rows):
        return None
    return [*values, *(_stacked(node, stack) for stack in rows)]


def _stacked(node: OnnxNode, rows: Sequence[Value]) -> Node:
    """The rows on top of each other; strings among them come to be of the same bytes."""
    moved = node.forms.moved("Concat", str(node), rows)
    stacked = concatenate([expand_dims(_tensor(node, row), (0,)) for row in moved.values], 0)
    node.forms.hand_on_moved(moved, [stacked])
    return stacked


def _tensor(node: OnnxNode, value: Value | None) -> Node:
    if not isinstance(value, Node):
        raise node.unsupported("a body that stacks anything but tensors")
    return value
