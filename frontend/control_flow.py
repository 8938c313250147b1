"""Converters of If, Loop, Scan and SequenceMap, whose attributes are graphs, and of Gradient, which names values of the
graph around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..base.errors import ModelError
from ..graph.node import Constant, Node, tensor_of
from ..ops.families.branch import if_call, results_of_call
from ..ops.families.unary import logical_not
from .assumed_extent import where_extent_is
from .branches import Both, both_results, unified
from .gradient import convert_gradient
from .loops import convert_loop
from .onnx_node import OnnxNode
from .scans import convert_scan, convert_scan_of_batch
from .sequence_map import convert_sequence_map
from .structure import TRAINING
from .subgraphs import Subgraphs, as_scalar, graph_attribute
from .values import Value, element_nodes, nodes_of, with_nodes

FlowConverter: TypeAlias = Callable[[OnnxNode, Subgraphs], Sequence[Value]]


def find_control_flow(domain: str, name: str, version: int) -> FlowConverter | None:
    """The converter of that version of an operator; None if it is none of control flow."""
    return _TABLE.get((domain, name, version))


def _convert_if(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Value]:
    """An If whose condition is known is the branch that it takes."""
    condition = node[0]
    node.forms.check_plain([condition], f"{node} takes, for a condition,")
    names = ("then_branch", "else_branch")
    if isinstance(condition, Constant):
        taken = names[0] if node.constant_int(0, "the condition") else names[1]
        return subgraphs.results(graph_attribute(node, taken), {})
    scalar = node.finish(as_scalar(condition))
    conditions = (scalar, node.finish(logical_not(scalar)))
    branches = [_branch(node, *each, subgraphs) for each in zip(names, conditions, strict=True)]
    if len(branches[0]) != len(branches[1]):
        raise ModelError(f"{node}: its branches give {len(branches[0])} and {len(branches[1])} values")
    if _ranks(branches[0]) != _ranks(branches[1]):
        assumed = where_extent_is(condition, _tensors(branches[0]), subgraphs)
        if assumed is not None:
            return assumed
    pairs = [_in_parts(node, subgraphs, *pair) for pair in zip(*branches, strict=True)]
    both = [unified(node, scalar, subgraphs, *part) for parts, _ in pairs for part in parts]
    graphs = (graph_attribute(node, name) for name in names)
    results = zip(graphs, both_results(both), strict=True)
    then, otherwise = (subgraphs.function(graph, (), found) for graph, found in results)
    found = iter(results_of_call(if_call(scalar, then, otherwise)))
    values = iter([with_nodes(value, [next(found) for _ in nodes_of(value)]) for value, _ in both])
    return [_joined(node, [next(values) for _ in parts], utf8) for parts, utf8 in pairs]


def _in_parts(node: OnnxNode, subgraphs: Subgraphs, then: Value, otherwise: Value) -> tuple[list[Both], Node | None]:
    """What both branches give for one result. Of strings these are spans, and their bytes, which are given beside that
    where they lie before the branches."""
    ((first,), a), ((second,), b) = map(node.forms.apart, (then, otherwise))
    if a is None and b is None:
        return [(then, otherwise)], None
    if (a is None and element_nodes(then)) or (b is None and element_nodes(otherwise)):
        raise ModelError(f"{node}: one branch gives strings for a result, and the other does not")
    known = [utf8 for utf8 in (a, b) if utf8 is not None]
    if not all(map(subgraphs.are_outside, known)):
        return [(first, second), (known[0], known[-1])], None
    (first, second), utf8 = node.forms.apart(then, otherwise)
    assert utf8 is not None
    utf8 = node.finish(utf8)
    subgraphs.keep_outside(utf8)
    return [(first, second)], utf8


def _joined(node: OnnxNode, parts: Sequence[Value], utf8: Node | None) -> Value:
    """The result whose parts these are."""
    if len(parts) == 2:
        _, made = parts
        assert isinstance(made, Node)
        utf8 = made
    return node.forms.joined(parts[0], utf8)


def _branch(node: OnnxNode, name: str, condition: Node, subgraphs: Subgraphs) -> list[Value]:
    """The results of a branch that is taken where a condition holds."""
    conditions = node.shapes.conditions
    conditions.append(condition)
    try:
        return subgraphs.invariant_results(graph_attribute(node, name), {}, ())
    finally:
        conditions.pop()


def _tensors(results: Sequence[Value]) -> list[Node]:
    return [result for result in results if isinstance(result, Node)]


def _ranks(results: Sequence[Value]) -> list[int]:
    return [tensor_of(result).ndim for result in _tensors(results)]


_VERSIONS = (11, 13, 16, 19, 21, 23, 24, 25)
_TABLE: dict[tuple[str, str, int], FlowConverter] = {
    **{("", "If", version): _convert_if for version in (1, *_VERSIONS)},
    **{("", "Loop", version): convert_loop for version in (1, *_VERSIONS)},
    **{("", "Scan", version): convert_scan for version in (9, *_VERSIONS) if version != 13},
    ("", "Scan", 8): convert_scan_of_batch,
    ("", "SequenceMap", 17): convert_sequence_map,
    (TRAINING, "Gradient", 1): convert_gradient,
}
