"""What a loop would compute again and again goes before it.

    loop(a, w): a ← a @ exp(w)              →   v = exp(w); loop(a, v): a ← a @ v
    loop(a, x): a ← a * x, x ← x            →   x is captured, not carried
    loop(h, x of xs): h ← h + x @ w         →   ys = xs @ w; loop(h, y of ys): h ← h + y

A value that depends on nothing that changes is computed once, but for those that only take more memory than what they
are made of. The products of rows are in ``hoist_rows.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from ...graph.node import Bodies, Call, Constant, Function, Node, Tuple, TupleGet, Var
from ...graph.types import TensorType, leaf_types
from ...graph.visit import bodies_of, inputs, post_order, rewrite, with_inputs
from ...ops.definition.registry import OpPattern, op_of
from ...ops.definition.shared_calls import share_calls
from ...ops.families.loop import LOOP
from ...ops.families.repeat import BroadcastToAttrs
from .effects import has_effect
from .hoist_rows import hoist_rows
from .loop_parts import LoopParts


def hoist_invariants(function: Function) -> Function:
    """The function with loops, those in bodies too, that compute only what changes; of tuples that are written out."""
    done: dict[Node, Node] = {}
    results: dict[Node, tuple[Node, ...]] = {}
    for node in post_order(function.body):
        if isinstance(node, TupleGet) and node.tuple in results:
            done[node] = results[node.tuple][node.index]
            continue
        made = _with_bodies_hoisted(with_inputs(node, tuple(done[used] for used in inputs(node))))
        if isinstance(made, Call) and made.op is LOOP:
            made, results[node] = _hoisted(made)
        done[node] = made
    body = done[function.body]
    return function if body is function.body else replace(function, body=share_calls(body))


def _with_bodies_hoisted(node: Node) -> Node:
    old = bodies_of(node)
    new = tuple(map(hoist_invariants, old))
    if not isinstance(node, Call) or not isinstance(node.attrs, Bodies) or new == old:
        return node
    return replace(node, attrs=node.attrs.with_bodies(new))


def _hoisted(call: Call) -> tuple[Call, tuple[Node, ...]]:
    """The loop that is left of one, and what each of its results is now."""
    parts, kept = _without_unchanged(LoopParts.of(call))
    parts = hoist_rows(_without_invariants(parts))
    made = parts.call(call)
    count = len(leaf_types(call.type))
    own = iter(range(count))
    return made, tuple(kept[k] if k in kept else TupleGet(made, next(own)) for k in range(count))


def _without_unchanged(parts: LoopParts) -> tuple[LoopParts, dict[int, Node]]:
    """The loop with values that each iteration hands on as they are captured, and what these are, by their numbers
    among the results."""
    first = int(parts.attrs.conditional)
    unchanged = {k for k, (_, param) in enumerate(parts.carried) if parts.results[first + k] is param}
    if not unchanged:
        return parts, {}
    made = replace(
        parts,
        carried=tuple(pair for k, pair in enumerate(parts.carried) if k not in unchanged),
        captured=(*parts.captured, *(parts.carried[k] for k in sorted(unchanged))),
        results=tuple(result for k, result in enumerate(parts.results) if k - first not in unchanged),
    )
    return made, {k: parts.carried[k][0] for k in unchanged}


def _without_invariants(parts: LoopParts) -> LoopParts:
    """The loop that captures what it would compute of captured values alone."""
    fixed = _fixed(parts)
    pending = [used for node in post_order(Tuple(parts.results)) if node not in fixed for used in inputs(node)]
    pending = [node for node in pending[::-1] if node in fixed]
    found: dict[Node, Var] = {}
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node.type, TensorType) and isinstance(node, (Call, TupleGet)) and not _grows(node):
            found[node] = Var(f"invariant{len(found)}", node.type)
        else:
            pending += inputs(node)[::-1]
    if not found:
        return parts
    outside = _outside_of(tuple(found), parts)
    return parts.with_captured(zip(outside, found.values(), strict=True)).with_values(found)


def _fixed(parts: LoopParts) -> set[Node]:
    """The nodes of a body that captured values have a part in, and nothing that changes."""
    fixed: set[Node] = {param for _, param in parts.captured}
    for node in post_order(Tuple(parts.results)):
        if has_effect(node):
            continue
        used = inputs(node)
        if any(n in fixed for n in used) and all(n in fixed or isinstance(n, Constant) for n in used):
            fixed.add(node)
    return fixed


def _grows(node: Call | TupleGet) -> bool:
    """Whether a call only takes more memory than its arguments, as what is broadcast does; of open shapes any call that
    moves elements, or computes them one by one, may. What is broadcast where a run finds 1 does not count: each of its
    indices depends on the run, so that its elements can't be read as vectors."""
    if not isinstance(node, Call) or op_of(node).pattern > OpPattern.INJECTIVE:
        return False
    if isinstance(node.attrs, BroadcastToAttrs) and node.attrs.open_ones:
        return False
    before, after = (_bytes(leaf for n in nodes for leaf in leaf_types(n.type)) for nodes in (node.args, (node,)))
    return before is None or after is None or after > before


def _bytes(kinds: Iterable[TensorType]) -> int | None:
    sizes = [None if k.static_shape is None else prod(k.static_shape) * k.dtype.storage_bytes for k in kinds]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _outside_of(nodes: tuple[Node, ...], parts: LoopParts) -> tuple[Node, ...]:
    """Nodes of a body in terms of what the loop captures; what several are computed of is one node for all."""
    outside: Mapping[Node, Node] = {param: arg for arg, param in parts.captured}
    return inputs(rewrite(Tuple(nodes), outside.get))
