"""Copies of statements whose bound variables and allocations are fresh, so that several may stand in one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from ...ir.buffer import Buffer
from ...ir.expr import Binary, Expr, Load, Var
from ...ir.linear import atoms_of, expr_of, has_form, linear_of, replace_atoms
from ...ir.stmt import Allocate, CallExtern, PrefetchStmt, Stmt, Store
from ...ir.visit import Node, NodeParts, bound_vars, rewrite, walk, with_views


def fresh_copy(stmt: Stmt, values: Mapping[Var, Expr]) -> Stmt:
    """The statement with ``values`` for free variables, and with new variables and memory for those it binds. Index
    arithmetic with values for variables comes in normal form."""
    renamed: dict[Var, Expr] = dict(values)
    memory: dict[Var, Var] = {}
    for node in walk(stmt):
        for var in bound_vars(node):
            renamed[var] = Var(var.name, var.dtype)
        if isinstance(node, Allocate):
            memory[node.buffer.data] = Var(node.buffer.data.name, node.buffer.data.dtype)
    views: dict[Buffer, Buffer] = {}

    def view(buffer: Buffer) -> Buffer:
        if buffer not in views:
            views[buffer] = replace_in_buffer(buffer, renamed, memory)
        return views[buffer]

    def visit(node: Node) -> Node | None:
        match node:
            case Var():
                return renamed.get(node)
            case Load(buffer, indices, mask) if (new := view(buffer)) is not buffer:
                return Load(new, indices, mask)
            case Store(buffer) if (new := view(buffer)) is not buffer:
                return replace(node, buffer=new)
            case PrefetchStmt(buffer, indices, to_write) if (new := view(buffer)) is not buffer:
                return PrefetchStmt(new, indices, to_write)
            case CallExtern():
                return with_views(node, view)
            case Allocate(buffer, body) if (new := view(buffer)) is not buffer:
                return Allocate(new, body)
            case _:
                return None

    return rewrite(stmt, visit, _terms if values else None)


def _terms(node: Node) -> NodeParts | None:
    """Index arithmetic as the terms of its normal form, which is kept: nothing in between need be made."""
    if not isinstance(node, Binary) or not node.dtype.is_index or not has_form(node):
        return None
    form, lanes = linear_of(node), node.dtype.lanes
    atoms = atoms_of(form)

    def rebuild(rewritten: Callable[[Node], Node]) -> Node:
        pairs = ((atom, cast(Expr, rewritten(atom))) for atom in atoms)
        return expr_of(replace_atoms(form, {atom: new for atom, new in pairs if new is not atom}), lanes)

    return NodeParts(atoms, rebuild)


def replace_in_buffer(buffer: Buffer, values: Mapping[Var, Expr], memory: Mapping[Var, Var]) -> Buffer:
    """The buffer with the variables that describe it replaced, and its memory; the same object if nothing changes."""
    if not values and buffer.data not in memory:
        return buffer

    def put(value: Expr) -> Expr:
        return rewrite(value, lambda node: values.get(node) if isinstance(node, Var) else None)

    shape = tuple(put(s) for s in buffer.shape)
    strides = None if buffer.strides is None else tuple(put(s) for s in buffer.strides)
    offset = put(buffer.elem_offset)
    data = memory.get(buffer.data, buffer.data)
    same = (
        data is buffer.data
        and offset is buffer.elem_offset
        and all(a is b for a, b in zip(shape, buffer.shape, strict=True))
        and all(a is b for a, b in zip(strides or (), buffer.strides or (), strict=True))
    )
    return buffer if same else replace(buffer, shape=shape, strides=strides, elem_offset=offset, data=data)
