"""Graphs whose types are inferred anew, where what they are computed from has other types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ...graph.node import Call, Function, Node, Var
from ...graph.types import Type
from ...graph.visit import inputs, post_order, with_inputs
from .registry import op_of

Inferences: TypeAlias = dict[tuple[object, ...], Type]
"""The types of calls by operator, attributes and types of arguments: blocks of a model are alike."""


def inferred_anew(root: Node, changed: Mapping[Any, Node], known: Inferences | None = None) -> Node:
    """What is computed from others in place of some nodes, with types that follow from theirs. What is ``known`` is not
    inferred again, and grows."""
    known = {} if known is None else known
    done: dict[Node, Node] = {}
    for node in post_order(root):
        made = changed[node] if node in changed else with_inputs(node, tuple(done[n] for n in inputs(node)))
        done[node] = _typed_anew(made, known) if isinstance(made, Call) and made is not node else made
    return done[root]


def _typed_anew(call: Call, known: Inferences) -> Call:
    kinds = [a.type for a in call.args]
    attrs = None if call.attrs is None else call.attrs.fitted(kinds)
    key = (call.op, attrs, *kinds)
    if key not in known:
        known[key] = op_of(call)(*call.args, attrs=attrs).type
    return replace(call, attrs=attrs, result=known[key])


def with_params(function: Function, params: Mapping[Var, Var], known: Inferences | None = None) -> Function:
    """The function with other parameters in place of some, its types inferred anew but for what is ``known``; itself if
    there are none."""
    if not params:
        return function
    body = inferred_anew(function.body, params, known)
    return replace(function, params=tuple(params.get(p, p) for p in function.params), body=body)


def with_param_types(function: Function, types: Sequence[Type]) -> Function:
    """The function for parameters of these types; itself if they are those that it has."""
    typed = zip(function.params, types, strict=True)
    return with_params(function, {p: Var(p.name, kind) for p, kind in typed if kind is not p.type})
