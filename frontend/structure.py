"""The structure of an ONNX graph: every value is produced once, before it is used, and nothing goes in circles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from onnx import AttributeProto, GraphProto, NodeProto

from ..base.errors import ModelError
from .onnx_node import describe

TRAINING = "ai.onnx.preview.training"


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs among a node's attributes, as the branches of If and the body of Loop; not those nested in them."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def used_names(node: NodeProto) -> Iterator[str]:
    """The values that a node reads, those that its subgraphs take from outside included, and those it names."""
    yield from (name for name in node.input if name)
    if node.op_type == "Gradient" and node.domain == TRAINING:
        for attribute in node.attribute:
            yield from (name.decode() for name in (attribute.s, *attribute.strings) if name)
    for graph in subgraphs(node):
        inside = defined_names(graph)
        inner = (name for n in graph.node for name in used_names(n))
        yield from (name for name in (*inner, *(o.name for o in graph.output)) if name not in inside)


def defined_names(graph: GraphProto) -> set[str]:
    """The values that a graph defines itself: its inputs, initializers, and the outputs of its nodes; not those of
    subgraphs."""
    names = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    return names | {name for node in graph.node for name in node.output if name}


def check_graph(graph: GraphProto, outer: Set[str] = frozenset()) -> None:
    """Raise ``ModelError`` for a value that is produced twice or never, and for a cycle; in subgraphs as well."""
    if graph.sparse_initializer:
        raise ModelError("the model has sparse initializers, which are not supported")
    _check_unique("input", [i.name for i in graph.input])
    _check_unique("initializer", [i.name for i in graph.initializer])
    producers = _producers(graph)
    known = outer | defined_names(graph)
    for node in graph.node:
        for name in used_names(node):
            if name not in known:
                raise ModelError(f"{describe(node)} uses the value {name!r}, which nothing produces")
        for inner in subgraphs(node):
            check_graph(inner, known)
    for output in graph.output:
        if output.name not in known:
            raise ModelError(f"the output {output.name!r} of the graph is produced by nothing")
    order_nodes(graph.node, producers, producers)


def _check_unique(what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise ModelError(f"an {what} of the graph has no name")
        if name in seen:
            raise ModelError(f"there are two {what}s called {name!r}")
        seen.add(name)


def _producers(graph: GraphProto) -> dict[str, NodeProto]:
    given = {i.name: "an input of the graph" for i in graph.input}
    given |= {i.name: "an initializer" for i in graph.initializer}
    producers: dict[str, NodeProto] = {}
    for node in graph.node:
        for name in filter(None, node.output):
            other = given.get(name) or (describe(producers[name]) if name in producers else None)
            if other is not None:
                raise ModelError(f"the value {name!r} is produced twice: by {other} and by {describe(node)}")
            producers[name] = node
    return producers


def producers_of(nodes: Iterable[NodeProto]) -> dict[str, NodeProto]:
    """The node that produces each value, by the value's name; an output left out, which has no name, is none."""
    return {name: node for node in nodes for name in node.output if name}


def order_nodes(
    nodes: Sequence[NodeProto], producers: Mapping[str, NodeProto], wanted: Iterable[str]
) -> list[NodeProto]:
    """The nodes that the wanted values need, each after those that it needs. Raises ``ModelError`` for a cycle."""
    position = {id(node): k for k, node in enumerate(nodes)}
    state: dict[int, str] = {}
    order: list[NodeProto] = []
    for name in wanted:
        stack: list[tuple[NodeProto, Iterator[str]]] = []
        _enter(producers.get(name), state, stack)
        while stack:
            node, names = stack[-1]
            following = next((producers[n] for n in names if n in producers), None)
            if following is None:
                stack.pop()
                state[id(node)] = "done"
                order.append(node)
            elif state.get(id(following)) == "open":
                raise ModelError(f"the graph has a cycle: {_cycle([n for n, _ in stack], following)}")
            else:
                _enter(following, state, stack)
    return sorted(order, key=lambda n: position[id(n)]) if _is_sorted(nodes, producers) else order


def _enter(node: NodeProto | None, state: dict[int, str], stack: list[tuple[NodeProto, Iterator[str]]]) -> None:
    if node is not None and id(node) not in state:
        state[id(node)] = "open"
        stack.append((node, used_names(node)))


def _cycle(path: Sequence[NodeProto], start: NodeProto) -> str:
    first = next(k for k, node in enumerate(path) if node is start)
    return " → ".join(describe(node) for node in (*path[first:], start))


def _is_sorted(nodes: Sequence[NodeProto], producers: Mapping[str, NodeProto]) -> bool:
    """Whether the nodes stand in an order of computation already, as ONNX demands of files."""
    done: set[str] = set()
    for node in nodes:
        if any(name in producers and name not in done for name in used_names(node)):
            return False
        done.update(node.output)
    return True
