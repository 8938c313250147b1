"""Loops whose body is imported once for each iteration: where the number of iterations is known and small, and what
they carry is a sequence, or changes its shape. Then each iteration has types of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.node import Constant, Node
from ..ops.families.concatenate import concatenate
from ..ops.families.reshape import expand_dims
from .onnx_loop import OnnxLoop
from .onnx_node import OnnxNode
from .subgraphs import is_true
from .values import Value


def unrolled(loop: OnnxLoop, trips: int) -> Sequence[Value] | None:
    """The results of a Loop of at most so many iterations, one after the other; None where a run decides when it
    ends."""
    node, carried = loop.node, len(loop.carried)
    rows: list[list[Value]] = [[] for _ in loop.graph.output[carried + 1 :]]
    for _ in range(trips):
        condition = loop.node.get(1)
        if condition is not None and not isinstance(condition, Constant):
            return None
        if not is_true(condition):
            break
        after, results = loop.iteration()
        loop = loop.others(None if condition is None else _tensor(node, after), results[:carried])
        for stack, row in zip(rows, results[carried:], strict=True):
            stack.append(row)
    if any(not stack for stack in rows):
        return None
    return [*loop.carried, *(_stacked(node, stack) for stack in rows)]


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
