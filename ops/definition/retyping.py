"""Graphs whose types are inferred anew, where what they are computed from has other types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...graph.node import Call, Function, Node, Var
from ...graph.types import Type
from ...graph.visit import inputs, post_order, with_inputs
from .registry import op_of


def inferred_anew(root: Node, changed: Mapping[Any, Node]) -> Node:
    """What is computed from others in place of some nodes, with types that follow from theirs."""
    done: dict[Node, Node] = {}
    for node in post_order(root):
        made = changed[node] if node in changed else with_inputs(node, tuple(done[n] for n in inputs(node)))
        if isinstance(made, Call) and made is not node:
            made = replace(op_of(made)(*made.args, attrs=made.attrs, origin=made.origin), value=made.value)
        done[node] = made
    return done[root]


def with_params(function: Function, params: Mapping[Var, Var]) -> Function:
    """The function with other parameters in place of some, its types inferred anew; itself if there are none."""
    if not params:
        return function
    body = inferred_anew(function.body, params)
    return replace(function, params=tuple(params.get(p, p) for p in function.params), body=body)


def with_param_types(function: Function, types: Sequence[Type]) -> Function:
    """The function for parameters of these types; itself if they are those that it has."""
    typed = zip(function.params, types, strict=True)
    return with_params(function, {p: Var(p.name, kind) for p, kind in typed if kind is not p.type})
