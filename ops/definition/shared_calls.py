"""Calls that were made twice of one, made one again.

What becomes an extent when a run has computed it is computed by calls of its own, in which numbers take the place of
what stands for them. Where it depends on most of a model, as the number of boxes that a detector finds, these would be
that part of the model once more; so would be what goes before loops that have such calls in their bodies.
"""

from __future__ import annotations

from ...graph.node import Call, Node, TupleGet
from ...graph.visit import inputs, post_order, with_inputs
from .registry import op_of

PACKED = "extern"
"""The operator of packed functions, which may give something else in each call."""
OF_NUMBERS = frozenset({"assume_extent", "cast", "extents", "reshape"})
"""Operators of the calls that take the place of what stands for numbers, or that state extents: each has attributes of
its own."""


def share_calls(body: Node) -> Node:
    """A graph in which calls with the same attributes and arguments are one, but for those of packed functions. Other
    calls than those that compute numbers have the same attributes only if these are one object."""
    done: dict[Node, Node] = {}
    first: dict[object, Node] = {}
    for node in post_order(body):
        made = with_inputs(node, tuple(done[used] for used in inputs(node)))
        if isinstance(made, Call) and made.op.name != PACKED:
            attrs = made.attrs if op_of(made).name in OF_NUMBERS else id(made.attrs)
            made = first.setdefault((made.op.name, attrs, id(made.type), made.args), made)
        elif isinstance(made, TupleGet):
            made = first.setdefault((made.tuple, made.index), made)
        done[node] = made
    return done[body]
