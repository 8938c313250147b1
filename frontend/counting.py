"""The body of a loop as far as it decides how often the loop goes round: what a loop without most iterations gives row
by row needs memory for as many, so that its iterations are counted before it is run."""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from .structure import subgraphs, used_names

NUMBER, HOLDS, CARRIED = 0, 1, 2
DRAWING = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators that may give something else each time."""
COUNT, ONE = "number of iterations", "one more iteration"


def counting_body(graph: GraphProto) -> tuple[GraphProto, list[int]]:
    """A body that carries only what its condition depends on, and behind that how many iterations there were, from 0
    on; and the numbers of the values that it carries of those of ``graph``."""
    needed: set[str] = set()
    nodes: list[NodeProto] = []
    kept: set[int] = set()
    carried = {value.name: k for k, value in enumerate(graph.input[CARRIED:])}
    wanted = [graph.output[0].name]
    while wanted:
        needed.update(wanted)
        nodes = _needed_nodes(graph, needed)
        new = {carried[name] for name in needed if name in carried} - kept
        kept |= new
        wanted = [graph.output[1 + k].name for k in new if graph.output[1 + k].name not in needed]
    numbers = sorted(kept)
    add = helper.make_node("Add", [graph.input[NUMBER].name, ONE], [f"next {COUNT}"])
    body = helper.make_graph(
        [*nodes, add],
        graph.name,
        [*graph.input[:CARRIED], *(graph.input[CARRIED + k] for k in numbers), _count(COUNT)],
        [graph.output[0], *(graph.output[1 + k] for k in numbers), _count(f"next {COUNT}")],
        [*graph.initializer, helper.make_tensor(ONE, TensorProto.INT64, (), [1])],
    )
    body.sparse_initializer.extend(graph.sparse_initializer)
    body.value_info.extend(graph.value_info)
    return body, numbers


def is_repeatable(graph: GraphProto) -> bool:
    """Whether a body gives the same each time that it is given the same."""
    return not any(node.op_type in DRAWING or not all(map(is_repeatable, subgraphs(node))) for node in graph.node)


def _needed_nodes(graph: GraphProto, needed: set[str]) -> list[NodeProto]:
    """The nodes that values are made by, in order; what these use becomes needed."""
    found = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            found.append(node)
            needed.update(used_names(node))
    return found[::-1]


def _count(name: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, ())
