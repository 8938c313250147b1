"""Fusion: which calls of a graph become one function. By operator pattern, over the post-dominator tree.

A call joins its immediate post-dominator (the first call that every path from it to the results passes) if the
patterns of all calls between allow it, as in Relay's fusion pass (Roesch et al., "Relay: A High-Level Compiler for Deep
Learning", 2019, section 4.2):

  - a complex operator (``OUT_ELEMENTWISE_FUSABLE``) takes elementwise and broadcast operators that follow;
  - elementwise and broadcast operators join what follows them, up to and including a reduction or a complex operator's
    epilogue;
  - injective operators join injective and elementwise ones that follow, and reductions.

Two complex operators never share a function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..graph.node import Call, Constant, Function, Node, Tuple, TupleGet, Var
from ..graph.visit import inputs, post_order, users
from ..ops.registry import Op, OpPattern

MAX_CALLS = 48
"""Most calls in one function: bounds the depth of expressions and the time to compile them."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Calls that become one function. ``inputs`` come from outside, ``outputs`` are used outside, each in order."""

    calls: tuple[Call, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def pattern_of(call: Call) -> OpPattern:
    assert isinstance(call.op, Op)
    return call.op.pattern


def partition(function: Function) -> tuple[Group, ...]:
    """The groups of a function's body, in order of computation."""
    order = post_order(function.body)
    used_by = users(function.body)
    dominator = _post_dominators(order, used_by, function.body)
    sets = _Sets([node for node in order if isinstance(node, Call)])
    for phase in (OpPattern.OUT_ELEMENTWISE_FUSABLE, OpPattern.BROADCAST, OpPattern.INJECTIVE):
        for node in order:
            if not isinstance(node, Call) or not _takes_part(sets.pattern(node), phase):
                continue
            sink = dominator.get(node)
            if isinstance(sink, Call) and not sets.together(node, sink):
                between = list(_between(node, sink, used_by))
                if _may_join(sets, node, sink, between):
                    sets.join([node, *between, sink])
    return _groups(order, sets, used_by, function.body)


def _takes_part(pattern: OpPattern, phase: OpPattern) -> bool:
    if phase is OpPattern.BROADCAST:
        return pattern <= OpPattern.BROADCAST
    return pattern is phase


def _may_join(sets: _Sets, node: Call, sink: Call, between: list[Node]) -> bool:
    calls = [n for n in between if isinstance(n, Call)]
    if len(calls) != len(between) or sets.size([node, *calls, sink]) > MAX_CALLS:
        return False
    own, last = sets.pattern(node), sets.pattern(sink)
    inner = max((sets.pattern(c) for c in calls), default=OpPattern.ELEMENTWISE)
    if own is OpPattern.OUT_ELEMENTWISE_FUSABLE:
        # The epilogue must have the shape of the complex operator's output, which its schedule tiles.
        same_shape = all(c.type is node.type for c in [*calls, sink])
        return inner <= OpPattern.BROADCAST and last <= OpPattern.BROADCAST and same_shape
    if last in (OpPattern.OUT_ELEMENTWISE_FUSABLE, OpPattern.OPAQUE, OpPattern.TUPLE):
        return False
    return inner <= OpPattern.INJECTIVE and last <= OpPattern.COMM_REDUCE


class _Sets:
    """Disjoint sets of calls (union by pointer). Mutable."""

    def __init__(self, calls: list[Call]) -> None:
        self._parent: dict[Call, Call] = {call: call for call in calls}
        self._pattern: dict[Call, OpPattern] = {call: pattern_of(call) for call in calls}
        self._size: dict[Call, int] = dict.fromkeys(calls, 1)

    def root(self, call: Call) -> Call:
        while self._parent[call] is not call:
            self._parent[call] = self._parent[self._parent[call]]
            call = self._parent[call]
        return call

    def pattern(self, call: Call) -> OpPattern:
        return self._pattern[self.root(call)]

    def together(self, a: Call, b: Call) -> bool:
        return self.root(a) is self.root(b)

    def size(self, calls: list[Call]) -> int:
        return sum(self._size[root] for root in {self.root(c) for c in calls})

    def join(self, nodes: list[Node]) -> None:
        calls = [n for n in nodes if isinstance(n, Call)]
        into = self.root(calls[-1])
        for call in calls[:-1]:
            root = self.root(call)
            if root is not into:
                self._parent[root] = into
                self._pattern[into] = max(self._pattern[into], self._pattern[root])
                self._size[into] += self._size[root]


def _post_dominators(
    order: list[Node], used_by: Mapping[Node, tuple[Node, ...]], result: Node
) -> dict[Node, Node | None]:
    """The immediate post-dominator of each node; None where paths meet at the end of the function only."""
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


def _between(node: Node, sink: Node, used_by: Mapping[Node, tuple[Node, ...]]) -> Iterator[Node]:
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


def _groups(
    order: list[Node], sets: _Sets, used_by: Mapping[Node, tuple[Node, ...]], result: Node
) -> tuple[Group, ...]:
    """Collect the sets as groups; a group stands where its last call does, so all its inputs come before it."""
    members: dict[Call, list[Call]] = {}
    for node in order:
        if isinstance(node, Call):
            members.setdefault(sets.root(node), []).append(node)
    groups = [_group(tuple(calls), used_by, result) for calls in members.values()]
    return tuple(_in_order(groups))


def _group(calls: tuple[Call, ...], used_by: Mapping[Node, tuple[Node, ...]], result: Node) -> Group:
    own: set[Node] = set(calls)
    outside: dict[Node, None] = {}
    for call in calls:
        for value in call.args:
            if value not in own:
                outside[value] = None
    outputs = tuple(c for c in calls if c is result or any(u not in own for u in used_by[c]))
    return Group(calls, tuple(outside), outputs)


def _in_order(groups: list[Group]) -> Iterator[Group]:
    """Order groups so that each comes after those it reads from."""
    group_of: dict[Node, Group] = {call: group for group in groups for call in group.calls}
    done: set[Group] = set()
    for start in groups:
        stack: list[tuple[Group, bool]] = [(start, False)]
        while stack:
            group, ready = stack.pop()
            if group in done:
                continue
            if ready:
                done.add(group)
                yield group
                continue
            stack.append((group, True))
            for value in group.inputs:
                for source in _calls_behind(value):
                    other = group_of[source]
                    if other is not group and other not in done:
                        stack.append((other, False))


def _calls_behind(value: Node) -> Iterator[Call]:
    """The calls that a value comes from, through tuples."""
    match value:
        case Call():
            yield value
        case Tuple() | TupleGet():
            for inner in inputs(value):
                yield from _calls_behind(inner)
        case Var() | Constant() | Function():
            pass
