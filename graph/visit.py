"""Traversal and rewriting of graphs, with explicit stacks: models can be thousands of nodes deep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from .node import Bodies, Call, Constant, Function, Node, Tuple, TupleGet, Var


def inputs(node: Node) -> tuple[Node, ...]:
    """The nodes that a node uses. A function's body counts, its parameters do not."""
    match node:
        case Call(args=args):
            return args
        case Tuple(fields):
            return fields
        case TupleGet(value):
            return (value,)
        case Function(body=body):
            return (body,)
        case Var() | Constant():
            return ()


def bodies_of(node: Node) -> tuple[Function, ...]:
    """The functions that a call holds in its attributes; none of any other node."""
    return node.attrs.bodies if isinstance(node, Call) and isinstance(node.attrs, Bodies) else ()


def nested_order(root: Node) -> list[Node]:
    """Every node once, as ``post_order``, and before each call the nodes of its bodies, however deep they are nested;
    the functions themselves are left out."""
    order: list[Node] = []
    for node in post_order(root):
        for body in bodies_of(node):
            order += nested_order(body.body)
        order.append(node)
    return order


def post_order(root: Node, is_leaf: Callable[[Node], bool] = lambda _: False) -> list[Node]:
    """Every node once, after all that it uses; in order of first use. What only nodes use that ``is_leaf`` holds of is
    left out."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            used = () if is_leaf(node) else inputs(node)
            stack.extend((n, False) for n in reversed(used) if n not in seen)
    return order


def with_inputs(node: Node, new: tuple[Node, ...]) -> Node:
    """The node with other inputs; the same object if they are the same. A call keeps its type."""
    if all(a is b for a, b in zip(inputs(node), new, strict=True)):
        return node
    match node:
        case Call():
            return replace(node, args=new)
        case Tuple():
            return Tuple(new)
        case TupleGet(_, index):
            return TupleGet(new[0], index)
        case Function():
            return replace(node, body=new[0])
        case Var() | Constant():
            return node


def rewrite(root: Node, fn: Callable[[Node], Node | None]) -> Node:
    """Rebuild bottom-up: inputs first, then ``fn(node)``, whose None means "unchanged". Each node is seen once."""
    done: dict[Node, Node] = {}
    for node in post_order(root):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        result = fn(rebuilt)
        done[node] = rebuilt if result is None else result
    return done[root]


def rewrite_bodies(root: Node, fn: Callable[[Function], Function]) -> Node:
    """The graph with ``fn(body)`` in place of the bodies of its calls; of bodies in bodies, ``fn`` may see to itself.
    The types of the results must stay."""

    def rebuilt(node: Node) -> Node | None:
        old = bodies_of(node)
        new = tuple(map(fn, old))
        if not isinstance(node, Call) or all(a is b for a, b in zip(old, new, strict=True)):
            return None
        return replace(node, attrs=node.attrs.with_bodies(new))

    return rewrite(root, rebuilt)


def users(root: Node) -> Mapping[Node, tuple[Node, ...]]:
    """The nodes that use each node, in order; one that uses it twice stands twice."""
    found: dict[Node, list[Node]] = {}
    for node in post_order(root):
        found.setdefault(node, [])
        for used in inputs(node):
            found[used].append(node)
    return {node: tuple(by) for node, by in found.items()}
