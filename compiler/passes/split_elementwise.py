"""Elementwise calls on a concatenation that needs no code are made on its parts, so that they join what computes these.

relu(concatenate(conv2d(…), avg_pool(…))) → concatenate(relu(conv2d(…)), relu(avg_pool(…)))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...graph.node import Call, Function, Node
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ops.definition.registry import OpPattern, op_of
from ..fusion.fusion_rules import is_assembled


def split_elementwise(function: Function) -> Function:
    """The function with elementwise calls made on the parts of what nothing else reads."""
    used_by = users(function.body)
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        if isinstance(rebuilt, Call) and _is_only_reader(node, used_by):
            rebuilt = _on_parts(rebuilt)
        done[node] = rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _is_only_reader(node: Node, used_by: Mapping[Node, tuple[Node, ...]]) -> bool:
    """Whether a node reads one call, and it alone that and its parts."""
    if not isinstance(node, Call) or len(node.args) != 1 or not isinstance(node.args[0], Call):
        return False
    (whole,) = node.args
    return all(len(used_by[value]) == 1 for value in (whole, *inputs(whole)))


def _on_parts(call: Call) -> Call:
    (whole,) = call.args
    if op_of(call).pattern is not OpPattern.ELEMENTWISE or not isinstance(whole, Call) or not is_assembled(whole):
        return call
    parts = (op_of(call)(part, attrs=call.attrs, origin=call.origin) for part in whole.args)
    return replace(op_of(whole)(*parts, attrs=whole.attrs, origin=whole.origin), value=call.value)
