"""Post-dominators of a graph: the first node that every path from a node to the results passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .node import Node


def post_dominators(
    order: Sequence[Node], used_by: Mapping[Node, tuple[Node, ...]], result: Node
) -> dict[Node, Node | None]:
    """The immediate post-dominator of each node; None where paths meet at the end of the function only.

    ``order`` has inputs before users. After Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001: a
    graph without cycles takes one pass.
    """
    dominator: dict[Node, Node | None] = {}
    depth: dict[Node, int] = {}
    for node in reversed(order):
        common: Node | None = None
        if node is not result:
            by = used_by[node]
            common = by[0]
            for other in by[1:]:
                common = _meet(common, other, dominator, depth)
        dominator[node] = common
        depth[node] = 0 if common is None else depth[common] + 1
    return dominator


def _meet(a: Node | None, b: Node | None, dominator: dict[Node, Node | None], depth: dict[Node, int]) -> Node | None:
    while a is not b:
        if a is None or b is None:
            return None
        if depth[a] >= depth[b]:
            a = dominator[a]
        else:
            b = dominator[b]
    return a


def nodes_between(node: Node, sink: Node, used_by: Mapping[Node, tuple[Node, ...]]) -> Iterator[Node]:
    """The nodes on the paths from a node to its post-dominator, both left out."""
    seen: set[Node] = set()
    stack = list(used_by[node])
    while stack:
        current = stack.pop()
        if current is sink or current in seen:
            continue
        seen.add(current)
        yield current
        stack.extend(used_by[current])
