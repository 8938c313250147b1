"""Two branches, one of which a run takes: the call of both, and what is given behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..graph.node import Node
from ..ops.families.branch import if_call, results_of_call
from ..ops.families.unary import logical_not
from .branches import Both, both_results, unified
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs
from .values import Value, element_nodes, nodes_of, with_nodes


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """What is imported of one branch: ``results`` gives its values."""

    name: str
    results: Callable[[], list[Value]]


def results_of_branches(
    node: OnnxNode, scalar: Node, branches: Sequence[Branch], subgraphs: Subgraphs
) -> list[list[Value]]:
    """The results of two branches, of which the first is taken where a condition holds."""
    conditions = (scalar, node.finish(logical_not(scalar)))
    return [_results(node, *each, subgraphs) for each in zip(branches, conditions, strict=True)]


def _results(node: OnnxNode, branch: Branch, condition: Node, subgraphs: Subgraphs) -> list[Value]:
    conditions = node.shapes.conditions
    conditions.append(condition)
    try:
        return subgraphs.invariant(branch.name, branch.results)
    finally:
        conditions.pop()


def chosen(
    node: OnnxNode,
    scalar: Node,
    branches: Sequence[Branch],
    given: Sequence[Sequence[Value]],
    subgraphs: Subgraphs,
) -> list[Value]:
    """The values of that branch which a run takes, where the branches have given these. Raises ``ModelError`` where
    both have no type in common."""
    pairs = [_in_parts(node, subgraphs, *pair) for pair in zip(*given, strict=True)]
    both = [unified(node, scalar, subgraphs, *part) for parts, _ in pairs for part in parts]
    results = zip(branches, both_results(both), strict=True)
    then, otherwise = (subgraphs.function(branch.name, (), found) for branch, found in results)
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
