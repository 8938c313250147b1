"""Constant weights that a product reads transposed are turned over, once for all calls: products of rows by them are
packed, and read in order.
"""

from __future__ import annotations

from dataclasses import replace

from ...graph.node import Call, Constant, Function, Node
from ...graph.visit import rewrite
from ...ops.families.matmul.matmul import DENSE, DenseAttrs


def turn_weights(function: Function) -> Function:
    """The function with products by constants that are not transposed."""
    turned: dict[Constant, Constant] = {}

    def with_turned(call: Node) -> Node | None:
        if not isinstance(call, Call) or call.op is not DENSE or not call.attrs.transposed:
            return None
        x, weight = call.args
        if not isinstance(weight, Constant):
            return None
        if weight not in turned:
            turned[weight] = Constant(weight.value.T, weight.name)
        return replace(call, args=(x, turned[weight]), attrs=DenseAttrs(False, call.attrs.out_dtype))

    body = rewrite(function.body, with_turned)
    return function if body is function.body else replace(function, body=body)
