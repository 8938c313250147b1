"""Copies of statements whose bound variables and allocations are fresh, so that several may stand in one function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

from ...ir.buffer import Buffer
from ...ir.contents import bound_vars, free_vars, substitute
from ...ir.expr import Binary, Const, Expr, Load, Var
from ...ir.linear import atoms_of, has_form, linear_of
from ...ir.linear_expr import expr_of, replace_atoms
from ...ir.simplify import simplify
from ...ir.stmt import Allocate, CallExtern, If, PrefetchStmt, Stmt, Store, seq
from ...ir.visit import Node, NodeParts, children, rewrite, with_children, with_views

_Get: TypeAlias = Callable[[Any], Any]
"""What becomes of a node in a copy; the node itself, where it is the same in all copies."""
_View: TypeAlias = Callable[[Buffer], Buffer]
"""What becomes of a buffer in a copy."""
_Make: TypeAlias = Callable[[_Get, _View], Node]
"""Makes of a node what it is in a copy."""


def fresh_copy(stmt: Stmt) -> Stmt:
    """The statement with new variables and memory for those it binds."""
    return CopyPlan(stmt).copy({})


class CopyPlan:
    """How copies of a statement are made that have other values for some free ``variables``, and new variables and
    memory for those it binds. Index arithmetic with values for variables comes in normal form, and of choices that
    these values tell only what is chosen.

    What is the same in all copies is found once, and is not looked at again.
    """

    def __init__(self, stmt: Stmt, variables: Iterable[Var] = ()) -> None:
        self._stmt = stmt
        replaced = frozenset(variables)
        order: list[Node] = []
        rewrite(stmt, order.append, _terms if replaced else None)
        self._bound = [var for node in order for var in bound_vars(node)]
        self._memory = dict.fromkeys(node.buffer.data for node in order if isinstance(node, Allocate))
        self._changing: set[Node] = {*replaced, *self._bound}
        self._buffers: dict[Buffer, bool] = {}
        self._steps: list[tuple[int, _Make]] = []
        for node in order:  # children first
            make = None if isinstance(node, Var) else self._make(node, bool(replaced))
            if make is not None:
                self._changing.add(node)
                self._steps.append((id(node), make))

    def copy(self, values: Mapping[Var, Expr]) -> Stmt:
        """A copy with ``values`` for the variables."""
        renamed = {**values, **{var: Var(var.name, var.dtype) for var in self._bound}}
        memory = {data: Var(data.name, data.dtype) for data in self._memory}
        done: dict[int, Any] = {id(var): value for var, value in renamed.items()}
        views: dict[Buffer, Buffer] = {}

        def get(node: Any) -> Any:
            return done.get(id(node), node)

        def view(buffer: Buffer) -> Buffer:
            if not self._buffers.get(buffer, False):
                return buffer
            if buffer not in views:
                views[buffer] = _moved(buffer, renamed, memory)
            return views[buffer]

        for key, make in self._steps:
            done[key] = make(get, view)
        return cast(Stmt, get(self._stmt))

    def _make(self, node: Node, in_normal_form: bool) -> _Make | None:
        """How a node is made anew; None for one that is the same in all copies."""
        match node:
            case Binary() if in_normal_form and (parts := _terms(node)) is not None:
                return _sum(node) if self._changes(parts.nodes) else None
            case Load(buffer) | Store(buffer) | PrefetchStmt(buffer) | Allocate(buffer) if self._moves(buffer):
                return _on_another_buffer(node)
            case If() if in_normal_form and self._changes([node.condition]):
                return _decided(node)
            case CallExtern() if any(self._moves(region.buffer) for region in node.regions):
                return lambda get, view: with_views(with_children(node, get), view)
            case _:
                return (lambda get, _: with_children(node, get)) if self._changes(children(node)) else None

    def _changes(self, parts: Iterable[Node]) -> bool:
        return not self._changing.isdisjoint(parts)

    def _moves(self, buffer: Buffer) -> bool:
        """Whether a buffer's memory is allocated in the statement, or what says where its elements lie changes."""
        if buffer not in self._buffers:
            variables = (var for e in buffer.layout if not isinstance(e, Const) for var in free_vars(e))
            self._buffers[buffer] = buffer.data in self._memory or self._changes(variables)
        return self._buffers[buffer]


def _terms(node: Node) -> NodeParts | None:
    """Index arithmetic as the terms of its normal form, which is kept: nothing in between need be made."""
    if not isinstance(node, Binary) or not node.dtype.is_index or not has_form(node):
        return None
    return NodeParts(atoms_of(linear_of(node)), lambda _: node)


def _sum(node: Binary) -> _Make:
    """Index arithmetic, with what becomes of its terms."""
    form, lanes = linear_of(node), node.dtype.lanes
    atoms = atoms_of(form)

    def make(get: _Get, _: _View) -> Node:
        pairs = ((atom, get(atom)) for atom in atoms)
        return expr_of(replace_atoms(form, {atom: new for atom, new in pairs if new is not atom}), lanes)

    return make


def _decided(node: If) -> _Make:
    """A choice; what is chosen, where the values for variables tell."""

    def make(get: _Get, _: _View) -> Node:
        made = with_children(node, get)
        condition = simplify(made.condition)
        if not isinstance(condition, Const):
            return made
        return made.then if condition.value else made.orelse or seq()

    return make


def _on_another_buffer(node: Load | Store | PrefetchStmt | Allocate) -> _Make:
    """An access or an allocation, with what becomes of its buffer and its parts."""
    kind: Any = type(node)
    parts = [getattr(node, name) for name in kind.__match_args__[1:]]

    def make(get: _Get, view: _View) -> Node:
        made = (tuple(map(get, part)) if type(part) is tuple else get(part) for part in parts)
        return cast(Node, kind(view(node.buffer), *made))

    return make


def _moved(buffer: Buffer, values: Mapping[Var, Expr], memory: Mapping[Var, Var]) -> Buffer:
    """The buffer with the variables that describe it replaced, and its memory."""

    def put(extents: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(substitute(extent, values) for extent in extents)

    return replace(
        buffer,
        shape=put(buffer.shape),
        strides=None if buffer.strides is None else put(buffer.strides),
        elem_offset=substitute(buffer.elem_offset, values),
        data=memory.get(buffer.data, buffer.data),
    )
