"""Attention is written out as products and a softmax where tuning records say that this is faster."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from ...graph.node import Call, Function, Node
from ...graph.visit import rewrite
from ...ops.families.attention.attention import ATTENTION, MASKED_ATTENTION
from ...ops.families.attention.written_out import written_out
from ..layout.recorded_rewrite import recorded_rewrite
from ..settings import CompileSettings

FUSED, WRITTEN_OUT = "fused", "written out"
"""The names of the two rewrites in records."""


def write_out_attention(function: Function, settings: CompileSettings) -> Function:
    """The function with calls of attention as what they are made of, where records name that; strict precision leaves
    all as it is."""
    if settings.options.is_strict or not len(settings.records):
        return function

    def visit(node: Node) -> Node | None:
        if not is_attention(node) or recorded_rewrite(node, settings) != WRITTEN_OUT:
            return None
        made = written_out(node)
        return made if made is None else replace(made, value=node.value)

    body = rewrite(function.body, visit)
    return function if body is function.body else replace(function, body=body)


def is_attention(node: Node) -> TypeGuard[Call]:
    """Whether a node is a call of attention, masked or not."""
    return isinstance(node, Call) and node.op in (ATTENTION, MASKED_ATTENTION)
