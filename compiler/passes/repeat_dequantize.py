"""Bytes are dequantized for each reader: one that is fused with it then reads a quarter of the bytes."""

from __future__ import annotations

from dataclasses import replace

from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ops.families.quantize import DEQUANTIZE


def repeat_dequantize(function: Function) -> Function:
    """The function in which no bytes that are dequantized, but constants, have several readers."""
    used_by = users(function.body)
    done: dict[Node, Node] = {}

    def read(node: Node) -> Node:
        made = done[node]
        shared = len(used_by[node]) > 1 and isinstance(node, Call) and node.op is DEQUANTIZE
        if not shared or not isinstance(made, Call) or isinstance(made.args[0], Constant):
            return made
        return replace(made) if tensor_of(made.args[0]).dtype.storage_bits == 8 else made

    for node in post_order(function.body):
        done[node] = with_inputs(node, tuple(read(n) for n in inputs(node)))
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)
