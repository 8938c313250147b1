"""Extents that are stated in another way, each of which a run checks: at a call, or where a branch of an If begins.

What one branch asks of dimensions is no concern of a run that takes the other. So the branch states it of its operands,
and is computed with the extents that are stated; the results are those of the call again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...base.errors import ModelError
from ...graph.node import Call, Function, Node, Tuple, tensor_of
from ...graph.types import TensorType
from ...graph.visit import bodies_of, inputs, nested_order, post_order, rewrite, with_inputs
from ...ir.expr import Expr
from ...ops.definition.bodies import BodyAttrs
from ...ops.definition.registry import op_of
from ...ops.definition.retyping import Inferences, inferred_anew
from ...ops.families.assume_extent import ASSUME_EXTENT, assume_extent
from ...ops.families.branch import IF
from .told_dimensions import tellers_of, with_told_bodies


def with_assumption(function: Function, call: Call, assumed: Expr, stated: Expr, types: Inferences) -> Function:
    """The function with an extent of a call's arguments stated in another way, which each run checks; of a call in a
    body also."""
    if call not in post_order(function.body):
        told_all = _with_told_bodies_around(function, call, stated)
        return _with_bodies_of_calls(told_all, lambda body: with_assumption(body, call, assumed, stated, types))
    told = tellers_of(function)
    stating = with_inputs(call, tuple(_stating(a, assumed, stated, told) for a in call.args))
    if stating is call:
        raise ModelError(f"{call_text(call)} does not hold for all values of {assumed}: it should be {stated}")
    return replace(function, body=inferred_anew(function.body, {call: stating}, types))


def is_in_branch(function: Function, call: Call) -> bool:
    """Whether a call stands in a branch of an If, which a run may leave out."""
    return any(call in nested_order(body.body) for body in _branches_of(function))


def with_assumption_at_branch(function: Function, call: Call, assumed: Expr, stated: Expr) -> Function | None:
    """The function, in which the innermost branch of an If that a call stands in states an extent of its operands in
    another way; None where no operand has it by itself."""
    if not is_in_branch(function, call):
        return _stating_branch(function, assumed, stated)
    told_all = _with_told_bodies_around(function, call, stated)
    states = []

    def changed(body: Function) -> Function:
        if call not in nested_order(body.body):
            return body
        made = with_assumption_at_branch(body, call, assumed, stated)
        states.append(made)
        return body if made is None else made

    result = _with_bodies_of_calls(told_all, changed)
    return None if None in states else result


def _branches_of(function: Function) -> Iterable[Function]:
    calls = (node for node in nested_order(function.body) if isinstance(node, Call) and node.op is IF)
    return (body for call in calls for body in bodies_of(call))


def _stating_branch(branch: Function, assumed: Expr, stated: Expr) -> Function | None:
    """A branch whose parameters have the stated extent; its results have the types that they had."""
    told = tellers_of(branch)
    entries: dict[Node, Node] = {}
    for param in branch.params:
        if isinstance(param.type, TensorType) and (made := _stating(param, assumed, stated, told)) is not param:
            entries[param] = made
    if not entries:
        return None
    changed = inferred_anew(branch.body, entries)
    results = zip(inputs(changed), inputs(branch.body), strict=True)
    return replace(branch, body=Tuple(tuple(_as_before(new, old, branch.params) for new, old in results)))


def _as_before(new: Node, old: Node, told: Iterable[Node]) -> Node:
    """A result whose extents are said as they were."""
    for axis, extent in enumerate(tensor_of(old).shape):
        if tensor_of(new).shape[axis] is not extent:
            new = assume_extent(new, axis, extent, told)
    return new


def _stating(x: Node, assumed: Expr, stated: Expr, told: Iterable[Node]) -> Node:
    """x, where each extent that is ``assumed`` is stated in another way; itself if it has none."""
    for axis, extent in enumerate(tensor_of(x).shape):
        if extent is assumed:
            x = assume_extent(x, axis, stated, told)
    return x


def _with_told_bodies_around(function: Function, call: Call, stated: Expr) -> Function:
    """The function, in which the bodies that a call stands in are told the dimensions of an extent."""

    def telling(node: Node) -> Node | None:
        stands_in = isinstance(node, Call) and any(call in nested_order(body.body) for body in bodies_of(node))
        return with_told_bodies(node, stated, tellers_of(function)) if stands_in and isinstance(node, Call) else None

    body = rewrite(function.body, telling)
    return function if body is function.body else replace(function, body=body)


def _with_bodies_of_calls(function: Function, change: Callable[[Function], Function]) -> Function:
    """The function with what ``change`` makes of the bodies of its calls, and types that follow from these."""
    changed: dict[Node, Node] = {}
    for node in post_order(function.body):
        bodies = bodies_of(node)
        if isinstance(node, Call) and isinstance(node.attrs, BodyAttrs):
            new = tuple(map(change, bodies))
            if new != bodies:
                attrs = node.attrs.with_bodies(new)
                changed[node] = replace(node, attrs=attrs, result=op_of(node).infer([a.type for a in node.args], attrs))
    return replace(function, body=inferred_anew(function.body, changed)) if changed else function


def without_trivial_assumptions(function: Function) -> Function:
    """The function without those that have come true."""

    def argument(node: Node) -> Node | None:
        if isinstance(node, Call) and node.op is ASSUME_EXTENT and node.type is node.args[0].type:
            return node.args[0]
        return None

    body = rewrite(function.body, argument)
    return function if body is function.body else replace(function, body=body)


def call_text(call: Call) -> str:
    """A call as messages name it: its operator, and the types of its arguments."""
    return f"{call.op.name}({', '.join(str(a.type) for a in call.args)})"
