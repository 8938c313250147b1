"""What follows an If whose branches give tensors of different ranks: it is converted once a branch, within it. So is
what follows a Loop whose iterations change the rank of what it carries: whether there are any decides between branches.

A value has one rank in the graph, so the nodes that need such a result become part of the branches, and the If gives
what is wanted of them. Where they fit the shapes of one branch only, each run checks that it takes this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from ..graph.node import Constant, Node, tensor_of
from ..ir.makers import as_index
from ..ops.families.assume_extent import assume_extent
from ..ops.families.binary import subtract
from ..ops.families.cast import cast
from ..ops.families.reshape import reshape
from ..ops.families.unary import negative
from .first_iteration import HAS_ITERATIONS
from .onnx_node import OnnxNode
from .structure import used_names
from .values import Value

MOST_TAILS = 2
"""How many of such branches may lie within each other: what follows is converted at most four times."""


def parted(node: NodeProto, following: Iterable[NodeProto]) -> tuple[list[NodeProto], list[NodeProto]]:
    """The nodes, in an order of computation, that need no result of the first one, and those that do."""
    made, others, tail = set(filter(None, node.output)), [], []
    for other in following:
        if made.isdisjoint(used_names(other)):
            others.append(other)
        else:
            tail.append(other)
            made.update(filter(None, other.output))
    return others, tail


def deciding(node: NodeProto) -> tuple[list[NodeProto], str]:
    """What tells which branch is taken, and the nodes that compute it."""
    if node.op_type == "If":
        return [], node.input[0]
    name, given = node.name or node.output[0], [*node.input[:2]]
    some, none, whether = f"{name}/some", f"{name}/0", f"{name}/has_iterations"
    asked, nodes = [name for name in given[1:] if name], []
    if given[0]:
        nodes += [_constant(none, 7, [0]), helper.make_node("Greater", [given[0], none], [some])]
        asked.append(some)
    if not asked:
        nodes.append(_constant(whether, 9, [True]))
    elif len(asked) == 1:
        nodes.append(helper.make_node("Identity", asked, [whether]))
    else:
        nodes.append(helper.make_node("And", asked, [whether]))
    return nodes, whether


def _constant(name: str, kind: int, values: Sequence[int]) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=helper.make_tensor("", kind, (), values))


def taken_with_tail(node: NodeProto, holds: bool, tail: Sequence[NodeProto]) -> list[NodeProto]:
    """The nodes of one branch, and what follows: the If with a known condition, or the Loop with what is known of its
    iterations."""
    if node.op_type == "Loop":
        return [_with_attribute(node, HAS_ITERATIONS, holds), *tail]
    condition = f"{node.name or node.output[0]}/taken"
    taken = NodeProto()
    taken.CopyFrom(node)
    taken.input[0] = condition
    return [_constant(condition, 9, [holds]), taken, *tail]


def _with_attribute(node: NodeProto, name: str, value: int) -> NodeProto:
    made = NodeProto()
    made.CopyFrom(node)
    made.attribute.append(helper.make_attribute(name, value))
    return made


def with_tail(node: NodeProto, condition: str, tail: Sequence[NodeProto], wanted: Sequence[str]) -> NodeProto:
    """An If whose branches have a node and what follows in them, and give the wanted values."""
    outputs = [ValueInfoProto(name=name) for name in wanted]
    branches = {
        name: GraphProto(name=f"{name} and what follows", node=taken_with_tail(node, holds, tail), output=outputs)
        for name, holds in (("then_branch", True), ("else_branch", False))
    }
    return helper.make_node("If", [condition], wanted, name=node.name or node.output[0], **branches)


def of_fitting_branch(
    node: OnnxNode, tail: Sequence[NodeProto], attempt: Callable[[Sequence[NodeProto]], list[Value] | None]
) -> list[Value] | None:
    """What is wanted of a node and what follows, where this fits the shapes that one branch gives, and not those of the
    other: each run checks that it takes the one. None where that is not so. Of a Loop each run checks that it has
    iterations, whatever fits the shapes before it.

    ``attempt`` converts nodes; it gives None if their shapes do not fit, and nothing if they are refused otherwise.
    """
    found = {holds: attempt(taken_with_tail(node.proto, holds, tail)) for holds in (True, False)}
    fitting = [(holds, values) for holds, values in found.items() if values is not None]
    if node.proto.op_type == "Loop":
        fitting = [(holds, values) for holds, values in fitting if holds]
    if len(fitting) != 1:
        return None
    ((holds, values),) = fitting
    tensors = [value for value in values if isinstance(value, Node)]
    if not values or len(tensors) < len(values):
        return None
    return [_where_holds(node, holds, x) for x in tensors]


def _where_holds(node: OnnxNode, holds: bool, x: Node) -> Node:
    """x, a result that only one branch can give: each run checks that it takes this one."""
    condition = cast(reshape(node[0], (1,)), "int64")
    other = subtract(condition, Constant(np.ones(1, np.int64))) if holds else negative(condition)
    branch = "no iteration" if node.proto.op_type == "Loop" else "the else branch" if holds else "the then branch"
    (none,) = node.extents_of(other, f"-1 for {branch}, whose shapes do not fit what follows,")
    row = x if tensor_of(x).ndim else reshape(x, (1,))
    extent = tensor_of(row).shape[0]
    checked = assume_extent(row, 0, extent + as_index(none), node.shapes.inputs)
    kept = assume_extent(checked, 0, extent, node.shapes.inputs)
    return node.finish(kept if tensor_of(x).ndim else reshape(kept, ()))
