"""Converters of If, Loop and Scan, whose attributes are graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..graph.node import Constant, Node, tensor_of
from ..ops.families.branch import if_call, results_of_call
from .assumed_extent import where_extent_is
from .loops import convert_loop, convert_scan, convert_scan_of_batch
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs, as_scalar, graph_attribute

FlowConverter: TypeAlias = Callable[[OnnxNode, Subgraphs], Sequence[Node]]


def find_control_flow(domain: str, name: str, version: int) -> FlowConverter | None:
    """The converter of that version of an operator; None if it is none of control flow."""
    return _TABLE.get((domain, name, version))


def _convert_if(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Node]:
    """An If whose condition is known is the branch that it takes."""
    condition = node[0]
    if isinstance(condition, Constant):
        taken = "then_branch" if node.constant_int(0, "the condition") else "else_branch"
        return subgraphs.results(graph_attribute(node, taken), {})
    graphs = [graph_attribute(node, name) for name in ("then_branch", "else_branch")]
    branches = [subgraphs.results(graph, {}) for graph in graphs]
    if _ranks(branches[0]) != _ranks(branches[1]):
        assumed = where_extent_is(condition, branches[0], subgraphs)
        if assumed is not None:
            return assumed
    then, otherwise = (subgraphs.function(*both) for both in zip(graphs, ((), ()), branches, strict=True))
    return results_of_call(if_call(as_scalar(condition), then, otherwise))


def _ranks(results: Sequence[Node]) -> list[int]:
    return [tensor_of(result).ndim for result in results]


_VERSIONS = (11, 13, 16, 19, 21, 23, 24, 25)
_TABLE: dict[tuple[str, str, int], FlowConverter] = {
    **{("", "If", version): _convert_if for version in (1, *_VERSIONS)},
    **{("", "Loop", version): convert_loop for version in (1, *_VERSIONS)},
    **{("", "Scan", version): convert_scan for version in (9, *_VERSIONS) if version != 13},
    ("", "Scan", 8): convert_scan_of_batch,
}
