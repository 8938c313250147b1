"""Halves that are widened for one reader are stored widened, and rounded again, to what they were, by all others.

h → cast(h, float32), and h read by elementwise operators = w = cast(h, float32), and these read cast(w, half)

So what computes h gives w in its epilogue, rounded as h is, and nothing passes through memory twice. It takes effect
where all others are elementwise; a pool, say, would have to be given halves of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...base.dtype import BFLOAT16, FLOAT16, FLOAT32
from ...graph.node import Call, Function, Node
from ...graph.types import TensorType
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ops.definition.registry import Op, OpPattern
from ...ops.families.cast import CAST, cast


def share_widened(function: Function) -> Function:
    """The function in which a half that is computed, and widened for some readers, is read widened by all."""
    used_by = users(function.body)
    done: dict[Node, Node] = {}
    again: dict[Node, Node] = {}
    for node in post_order(function.body):
        wide = _widened(node, used_by)
        if wide is not None:
            done[node] = with_inputs(node, tuple(again.get(n, done[n]) for n in inputs(node)))
            made = replace(wide, args=(done[node],))
            done[wide] = made
            again[node] = cast(made, str(node.type.dtype) if isinstance(node.type, TensorType) else "")
        elif node not in done:
            done[node] = with_inputs(node, tuple(again.get(n, done[n]) for n in inputs(node)))
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _widened(node: Node, used_by: Mapping[Node, tuple[Node, ...]]) -> Call | None:
    """What widens a computed half, where others read it too, and all of them are elementwise."""
    if not isinstance(node, Call) or not isinstance(node.type, TensorType):
        return None
    readers = used_by[node]
    wide = [reader for reader in readers if _widens(reader)]
    others = [reader for reader in readers if not _widens(reader)]
    if node.type.dtype not in (FLOAT16, BFLOAT16) or len(wide) != 1 or not others:
        return None
    (found,) = wide
    return found if isinstance(found, Call) and all(_is_elementwise(reader) for reader in others) else None


def _widens(reader: Node) -> bool:
    return isinstance(reader, Call) and reader.op is CAST and reader.attrs.to == str(FLOAT32)


def _is_elementwise(reader: Node) -> bool:
    return isinstance(reader, Call) and isinstance(reader.op, Op) and reader.op.pattern <= OpPattern.BROADCAST
