"""Traversal and rewriting of expressions, statements and functions.

One loop with an explicit stack serves both, so deep programs do not meet Python's recursion limit. Shared nodes are
visited once, and a rewrite that changes nothing gives back the same object.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from operator import attrgetter, is_
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from .buffer import Buffer
from .expr import Axis, Expr, Load, TensorRead, Var
from .expr_node import ExprNode
from .extern import Region
from .stmt import CallExtern, Launch, PrefetchStmt, PrimFunc, Stmt, StmtNode, Store

Node: TypeAlias = Expr | Stmt
N = TypeVar("N", bound=Node)


_HOLDS_NODES = re.compile(r"\b(Expr|Stmt|Var|Axis|Region)\b")
_ONE_NODE = ("Expr", "Stmt", "Var")
_PERHAPS_A_NODE = ("Expr | None", "Stmt | None")
_NODES = ("tuple[Expr, ...]", "tuple[Stmt, ...]")


@cache
def _fields(cls: Any) -> tuple[tuple[str, bool], ...]:
    """The fields that a node is made of, and of each whether it may hold nodes, as its declared type tells."""
    made_of = [f for f in dataclasses.fields(cls) if f.init]
    return tuple((f.name, _HOLDS_NODES.search(str(f.type)) is not None) for f in made_of)


@cache
def _children_of(cls: Any) -> Callable[[Any], tuple[Node, ...]] | None:
    """``children`` for the nodes of one class, by how its fields are declared: most hold one node each. None for a
    class whose nodes have none."""
    own = [f for f in dataclasses.fields(cls) if f.init and _HOLDS_NODES.search(str(f.type))]
    names = tuple(f.name for f in own)
    if not names:
        return None
    if all(f.type in _ONE_NODE for f in own):
        get: Callable[[Any], Any] = attrgetter(*names)
        return get if len(names) > 1 else lambda node: (get(node),)
    if all(f.type in (*_ONE_NODE, *_PERHAPS_A_NODE, *_NODES) for f in own):
        fields = tuple((f.name, f.type in _NODES) for f in own)
        return lambda node: _gathered(node, fields)
    return lambda node: _collected(node, names)


def _gathered(node: Any, fields: tuple[tuple[str, bool], ...]) -> tuple[Node, ...]:
    """What the fields hold: a tuple of nodes, where it is said that they are several; else a node, or None."""
    found: list[Node] = []
    for name, several in fields:
        value = getattr(node, name)
        if several:
            found += value
        elif value is not None:
            found.append(value)
    return tuple(found)


def _collected(node: Node, names: tuple[str, ...]) -> tuple[Node, ...]:
    found: list[Node] = []
    for name in names:
        value = getattr(node, name)
        if type(value) is tuple:
            for v in value:
                if isinstance(v, (ExprNode, StmtNode)):
                    found.append(cast(Node, v))
                elif isinstance(v, Axis):
                    found += (v.min, v.extent)
                elif isinstance(v, Region):
                    found += v.parts
        elif isinstance(value, (ExprNode, StmtNode)):
            found.append(cast(Node, value))
    return tuple(found)


def children(node: Node) -> tuple[Node, ...]:
    """The expressions and statements directly inside a node, in order of evaluation where there is one.

    The bounds of a reduction's axes and of regions are children; the shapes of buffers are not.
    """
    kind: Any = type(node)
    inside = _children_of(kind)
    return () if inside is None else inside(node)


def walk(root: Node) -> Iterator[Node]:
    """Every node once, parents before children, left to right."""
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        key = id(node)
        if key in seen:
            continue
        seen.add(key)
        yield node
        kind: Any = type(node)
        inside = _children_of(kind)
        if inside is not None:
            stack += inside(node)[::-1]


def with_children(node: N, replace: Callable[[Node], Node]) -> N:
    """The node with ``replace`` applied to its children; the same object if none changed."""
    changed = False
    values: list[Any] = []
    kind: Any = type(node)
    for name, holds_nodes in _fields(kind):
        value = getattr(node, name)
        new: Any = value
        if holds_nodes and value is not None:
            if type(value) is tuple:
                new = tuple([_replaced(part, replace) for part in value])
                if all(map(is_, value, new)):
                    new = value
            else:
                new = _replaced(value, replace)
            changed = changed or new is not value
        values.append(new)
    return type(node)(*values) if changed else node


def _replaced(part: Any, replace: Callable[[Node], Node]) -> Any:
    """A node replaced; of an axis or a region, the expressions in it."""
    if isinstance(part, Region):
        return part.with_parts(part.buffer, [cast(Expr, replace(p)) for p in part.parts])
    if isinstance(part, Axis):
        low, extent = replace(part.min), replace(part.extent)
        same = low is part.min and extent is part.extent
        return part if same else Axis(part.var, cast(Expr, low), cast(Expr, extent), part.kind)
    if isinstance(part, (ExprNode, StmtNode)):
        node: Any = part
        return replace(node)
    return part


class NodeParts(NamedTuple):
    """What a node is made of, if not of its children, and how it is made of other parts: ``rebuild`` is given what
    becomes of each."""

    nodes: Sequence[Node]
    rebuild: Callable[[Callable[[Node], Node]], Node]


def rewrite(
    root: N,
    fn: Callable[[Node], Node | None],
    parts_of: Callable[[Node], NodeParts | None] | None = None,
    stays: Callable[[Node], bool] | None = None,
) -> N:
    """Rebuild bottom-up: children first, then ``fn(node)``, whose None means "unchanged".

    ``fn`` sees each distinct node once, with its children already rewritten. The result of ``fn`` is not visited again.
    ``parts_of`` tells of what else than their children some nodes are to be made, None of others. What ``stays`` says
    of is left as it is, and not looked into.
    """
    done: dict[int, Node] = {}

    def rewritten(child: Node) -> Node:
        return done[id(child)]

    keep: list[Node] = []  # nodes made on the way stay alive, so that ids in `done` stay theirs
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        key = id(node)
        if key in done:
            continue
        if stays is not None and stays(node):
            done[key] = node
            continue
        kind: Any = type(node)
        children_of = _children_of(kind)
        rebuilt = node
        if children_of is not None:
            parts = None if parts_of is None else parts_of(node)
            inside = children_of(node) if parts is None else parts.nodes
            missing = [] if ready else [(child, False) for child in inside[::-1] if id(child) not in done]
            if missing:
                stack.append((node, True))
                stack += missing
                continue
            for child in inside:
                if done[id(child)] is not child:
                    rebuilt = with_children(node, rewritten) if parts is None else cast(N, parts.rebuild(rewritten))
                    break
        result = fn(rebuilt)
        done[key] = rebuilt if result is None else result
        keep.append(node)
    return cast(N, done[id(root)])


def buffers_accessed(root: Node) -> tuple[Buffer, ...]:
    """Buffers loaded from, stored to, prefetched or passed on, in order of appearance."""
    found: dict[Buffer, None] = {}
    for node in walk(root):
        if isinstance(node, (Load, Store, PrefetchStmt)):
            found[node.buffer] = None
        elif isinstance(node, Launch):
            found.update((a, None) for a in node.args if isinstance(a, Buffer))
        elif isinstance(node, CallExtern):
            found.update((region.buffer, None) for region in node.regions)
    return tuple(found)


def memory_written(root: Node) -> frozenset[Var]:
    """The memory (``buffer.data``) that is stored to, by the node's own stores and by the functions of C it calls."""
    found: set[Var] = set()
    for node in walk(root):
        if isinstance(node, Store):
            found.add(node.buffer.data)
        elif isinstance(node, CallExtern):
            found.update(region.buffer.data for region in node.written)
    return frozenset(found)


def with_views(call: CallExtern, view: Callable[[Buffer], Buffer]) -> CallExtern:
    """The call with its regions' buffers replaced; the same object if none changes."""
    args = tuple(a.with_parts(view(a.buffer), a.parts) if isinstance(a, Region) else a for a in call.args)
    same = all(a is b for a, b in zip(args, call.args, strict=True))
    return call if same else CallExtern(call.function, args)


def with_body(func: PrimFunc, body: Stmt) -> PrimFunc:
    """The function with another body; the same object if it is the same body."""
    return func if body is func.body else dataclasses.replace(func, body=body)


@lru_cache(maxsize=512)
def tensor_reads(root: Expr) -> tuple[TensorRead, ...]:
    """The reads of tensors in a te expression, in order of appearance."""
    return tuple(node for node in walk(root) if isinstance(node, TensorRead))
