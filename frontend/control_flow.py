"""Converters of If, Loop, Scan and SequenceMap, whose attributes are graphs, and of Gradient, which names values of the
graph around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from ..base.errors import ModelError
from ..graph.node import Constant, Node, tensor_of
from .assumed_extent import where_extent_is
from .gradient import convert_gradient
from .loops import convert_loop
from .onnx_node import OnnxNode
from .scans import convert_scan, convert_scan_of_batch
from .sequence_map import convert_sequence_map
from .structure import TRAINING
from .subgraphs import Subgraphs, as_scalar, graph_attribute
from .two_branches import Branch, chosen, results_of_branches
from .values import Value

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
    graphs = [graph_attribute(node, name) for name in names]
    branches = [Branch(graph.name, partial(subgraphs.results, graph, {})) for graph in graphs]
    given = results_of_branches(node, scalar, branches, subgraphs)
    if len(given[0]) != len(given[1]):
        raise ModelError(f"{node}: its branches give {len(given[0])} and {len(given[1])} values")
    if _ranks(given[0]) != _ranks(given[1]):
        assumed = where_extent_is(condition, _tensors(given[0]), subgraphs)
        if assumed is not None:
            return assumed
    return chosen(node, scalar, branches, given, subgraphs)


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
