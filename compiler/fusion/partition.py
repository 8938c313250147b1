"""Fusion: which calls of a graph become one function, by the rules of ``fusion_rules.py`` over the post-dominator tree.

A call joins the first call that every path from it to the results passes, as in Relay's fusion pass (Roesch et al.,
"Relay: A High-Level Compiler for Deep Learning", 2019, section 4.2). So only one call of a group is read outside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from ...base.dataclass import dataclass
from ...base.errors import RuntimeArgumentError
from ...base.op_names import check_op_name
from ...graph.dominators import nodes_between, post_dominators
from ...graph.node import Call, Function, Node, Tuple, TupleGet
from ...graph.visit import inputs, post_order, users
from ...ops.definition.registry import OpPattern
from .fusion_rules import MAX_CALLS, alone, asked_alone, obstacle, pattern_of
from .prologue import may_precede

_PHASES = (
    (OpPattern.OUT_ELEMENTWISE_FUSABLE,),
    (OpPattern.COMM_REDUCE,),
    (OpPattern.ELEMENTWISE, OpPattern.BROADCAST),
    (OpPattern.INJECTIVE,),
)
"""Whose calls look for a function to join, in order: epilogues are found before their calls join what follows them."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Calls that become one function, inputs before users. ``inputs`` come from outside, ``outputs`` are calls whose
    results are used outside, each in order."""

    calls: tuple[Call, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Call, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fusion:
    """Groups in order of computation; and, for each call that did not join what reads it, the rule that stopped it."""

    groups: tuple[Group, ...]
    stopped: Mapping[Call, str]


def check_unfused(unfused: object) -> None:
    """Raise ``RuntimeArgumentError`` for what is no list of names, ``LoopwrightError`` for a name no operator has."""
    if isinstance(unfused, str) or not isinstance(unfused, Collection):
        raise RuntimeArgumentError(f"unfused should be a list of names of operators, found {unfused!r}")
    for name in unfused:
        check_op_name(name)


def partition(function: Function, unfused: Collection[str] = ()) -> tuple[Group, ...]:
    """The groups of a function's body, in order of computation."""
    return fuse(function, unfused).groups


def fuse(function: Function, unfused: Collection[str] = ()) -> Fusion:
    """Fuse the calls of a function's body, but for those of the operators whose names are ``unfused``."""
    result = function.body
    order = post_order(result)
    used_by = users(result)
    dominator = post_dominators(order, used_by, result)
    calls = [node for node in order if isinstance(node, Call)]
    sets = _Sets(calls)
    stopped = {call: alone(call) for call in calls}
    _join_prologues(calls, dominator, used_by, sets, unfused)
    for phase in _PHASES:
        for node in calls:
            sink = _sink(node, dominator)
            if pattern_of(sets.anchor(node)) not in phase or (sink is not None and sets.together(node, sink)):
                continue
            if sink is None:
                stopped[node] = _why_no_sink(node, used_by, result)
                continue
            calls_between = (n for n in nodes_between(node, sink, used_by) if isinstance(n, Call))
            between = list(islice(calls_between, MAX_CALLS))  # with more of them, they are too many anyway
            together = [node, *between, sink]
            why = asked_alone(together, unfused) or obstacle(node, between, sink, sets.anchor, sets.size(together))
            if why is None:
                sets.join(together)
            else:
                stopped[node] = why
    return Fusion(_groups(order, sets, used_by, result), stopped)


def _join_prologues(
    calls: list[Call],
    dominator: Mapping[Node, Node | None],
    used_by: Mapping[Node, tuple[Node, ...]],
    sets: _Sets,
    unfused: Collection[str],
) -> None:
    """Join calls that only move rows with what reads them. This comes before all else, so that nothing that costs more
    is computed as rows are read."""
    for node in reversed(calls):
        sink = _sink(node, dominator)
        if sink is None or used_by[node] != (sink,) or asked_alone((node, sink), unfused):
            continue
        if may_precede(node, sink, sets.anchor(sink)):
            sets.join([node, sink])


def _sink(node: Call, dominator: Mapping[Node, Node | None]) -> Call | None:
    """The first call among the post-dominators: tuples are looked through."""
    found = dominator[node]
    while isinstance(found, (Tuple, TupleGet)):
        found = dominator[found]
    return found if isinstance(found, Call) else None


def _why_no_sink(node: Call, used_by: Mapping[Node, tuple[Node, ...]], result: Node) -> str:
    readers = readers_of(node, used_by)
    if node is result or result in readers:
        return f"{node.op.name} is a result of the whole function too"
    names = ", ".join(dict.fromkeys(r.op.name for r in readers if isinstance(r, Call)))
    return f"what reads {node.op.name} ({names}) meets in the results of the whole function only"


def readers_of(node: Node, used_by: Mapping[Node, tuple[Node, ...]]) -> list[Node]:
    """The calls that read a value, through tuples too, and the function's result where that is a tuple of it."""
    found: dict[Node, None] = {}
    for reader in used_by[node]:
        inner = [] if isinstance(reader, Call) else readers_of(reader, used_by)
        found.update(dict.fromkeys(inner or [reader]))
    return list(found)


class _Sets:
    """Disjoint sets of calls (union by pointer). Mutable."""

    def __init__(self, calls: list[Call]) -> None:
        self._parent: dict[Call, Call] = {call: call for call in calls}
        self._anchor: dict[Call, Call] = {call: call for call in calls}
        self._size: dict[Call, int] = dict.fromkeys(calls, 1)

    def root(self, call: Call) -> Call:
        while self._parent[call] is not call:
            self._parent[call] = self._parent[self._parent[call]]
            call = self._parent[call]
        return call

    def anchor(self, call: Call) -> Call:
        """A call of the highest pattern in the set of a call."""
        return self._anchor[self.root(call)]

    def together(self, a: Call, b: Call) -> bool:
        return self.root(a) is self.root(b)

    def size(self, calls: list[Call]) -> int:
        return sum(self._size[root] for root in {self.root(c) for c in calls})

    def join(self, calls: list[Call]) -> None:
        into = self.root(calls[-1])
        for call in calls[:-1]:
            root = self.root(call)
            if root is not into:
                self._parent[root] = into
                self._anchor[into] = max(self._anchor[into], self._anchor[root], key=pattern_of)
                self._size[into] += self._size[root]


def _groups(
    order: list[Node], sets: _Sets, used_by: Mapping[Node, tuple[Node, ...]], result: Node
) -> tuple[Group, ...]:
    members: dict[Call, list[Call]] = {}
    for node in order:
        if isinstance(node, Call):
            members.setdefault(sets.root(node), []).append(node)
    groups = [_group(dict.fromkeys(calls), used_by, result) for calls in members.values()]
    return tuple(_in_order(groups))


def _group(own: Mapping[Call, None], used_by: Mapping[Node, tuple[Node, ...]], result: Node) -> Group:
    outputs = tuple(c for c in own if c is result or any(r not in own for r in readers_of(c, used_by)))
    calls = _from_outputs(outputs, own)
    outside: dict[Node, None] = {}
    for call in calls:
        for argument in call.args:
            outside.update(dict.fromkeys(_taken_from_outside(argument, own)))
    return Group(calls, tuple(outside), outputs)


def _from_outputs(outputs: tuple[Call, ...], own: Mapping[Call, None]) -> tuple[Call, ...]:
    """The calls of a group in post-order from its outputs: the same for equal groups, whatever is around them."""
    found: dict[Call, None] = {}

    def visit(node: Node) -> None:
        if isinstance(node, Call) and (node not in own or node in found):
            return
        if isinstance(node, (Call, Tuple, TupleGet)):
            for used in inputs(node):
                visit(used)
        if isinstance(node, Call):
            found[node] = None

    for output in outputs:
        visit(output)
    return tuple(found)


def _taken_from_outside(value: Node, own: Mapping[Call, None]) -> Iterator[Node]:
    """The tensors of an argument that other functions compute."""
    if isinstance(value, Tuple):
        for field in value.fields:
            yield from _taken_from_outside(field, own)
    elif not any(call in own for call in _calls_behind(value)):
        yield value


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
    if isinstance(value, Call):
        yield value
    elif isinstance(value, (Tuple, TupleGet)):
        for inner in inputs(value):
            yield from _calls_behind(inner)
