"""Equality and hashes of programs up to the names and identities of what they bind (alpha-equivalence).

A program is written down as a list of rows, one per distinct node, children before parents; a row names other rows by
number. Bound variables, parameters and buffers are numbered in order of appearance, so two programs are equal if and
only if their rows are. Sharing keeps the list short, and an explicit stack spares Python's.

Names do not count, but those of functions do, and messages of asserts. A variable that a program binds twice (which the
verifier rules out) may make it unequal to a copy with two variables.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Hashable
from dataclasses import fields
from functools import cache
from typing import Any, TypeAlias, cast

from ..base.dtype import DType
from .buffer import Buffer
from .contents import bound_vars
from .expr import Axis, Combiner, Const, Expr, TensorBase, Var
from .expr_node import ExprNode
from .extern import ExternFunction, Region
from .stmt import Allocate, IRModule, PrimFunc, Stmt, StmtNode

Program: TypeAlias = Expr | Stmt | PrimFunc | IRModule
Row: TypeAlias = tuple[Hashable, ...]
FreeKey: TypeAlias = Callable[[object], Hashable]
"""What stands for a free variable or tensor: its identity (equality), or its number (hash)."""


def structural_equal(a: Program, b: Program) -> bool:
    """Whether the programs are the same but for bound names. Free variables and tensors must be the same objects."""
    return a is b or _program_rows(a, id) == _program_rows(b, id)


def structural_hash(program: Program) -> str:
    """A digest that equal programs share, in every process. Free variables count by position and dtype only."""
    numbers: dict[int, int] = {}
    rows = _program_rows(program, lambda thing: numbers.setdefault(id(thing), len(numbers)))
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def structural_key(piece: Expr | Stmt, free: FreeKey) -> Hashable:
    """A value that two pieces of program share if they are equal; ``free`` says what stands for a free variable."""
    return tuple(_Rows(free).node(piece))


def _program_rows(program: Program, free: FreeKey) -> list[list[Row]]:
    """The rows of each function (their variables have nothing to do with each other), or those of one piece."""
    match program:
        case IRModule(functions):
            return [_Rows(free).func(f) for f in functions]
        case PrimFunc():
            return [_Rows(free).func(program)]
        case _:
            return [_Rows(free).node(program)]


@cache
def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.init and f.name != "origin")


class _Rows:
    """Collects the rows of one function or piece of program."""

    def __init__(self, free: FreeKey) -> None:
        self._free = free
        self.rows: dict[Row, int] = {}
        self._row_of: dict[int, int] = {}  # by identity of the node
        self._bound: dict[Var, int] = {}

    def node(self, root: Expr | Stmt) -> list[Row]:
        self.visit(root)
        return list(self.rows)

    def func(self, func: PrimFunc) -> list[Row]:
        for param in func.params:
            self.bind(param.data if isinstance(param, Buffer) else param)
        for buffer in func.buffers:
            for part in buffer.layout:
                self._bind_all(part)
        params = tuple(self._reference(p) for p in func.params)
        outputs = tuple(self._reference(p) for p in func.outputs)
        self._row(("PrimFunc", func.name, params, outputs, self.visit(func.body)))
        return list(self.rows)

    def bind(self, var: Var) -> None:
        self._bound.setdefault(var, len(self._bound))

    def _bind_all(self, root: Expr) -> None:
        stack: list[object] = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, Var):
                self.bind(node)
            stack.extend(reversed(_parts(node)))

    def _row(self, row: Row) -> int:
        return self.rows.setdefault(row, len(self.rows))

    def visit(self, root: object) -> int:
        """The number of a node's row; what it is made of has been visited then."""
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in self._row_of:
                continue
            if ready:
                self._row_of[id(node)] = self._row(self._describe(node))
                continue
            for var in _binds(node):
                self.bind(var)
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(_parts(node)) if id(part) not in self._row_of)
        return self._row_of[id(root)]

    def _reference(self, node: object) -> int:
        return self._row_of[id(node)] if id(node) in self._row_of else self.visit(node)

    def _describe(self, node: object) -> Row:
        match node:
            case Var():
                number = self._bound.get(node)
                return ("bound", number) if number is not None else ("free", self._free(node), str(node.dtype))
            case Const():
                bits = struct.pack("<d", node.value) if isinstance(node.value, float) else int(node.value)
                return ("Const", str(node.dtype), bits)
            case Region():
                parts = tuple(self._reference(p) for p in node.parts)
                return ("Region", self._reference(node.buffer), parts, node.strides is None)
            case Buffer():
                where = tuple(self._reference(p) for p in _parts(node))
                return ("Buffer", str(node.dtype), where, node.strides is None, node.alignment, node.scope)
            case _:
                values = (getattr(node, name) for name in _field_names(cast(Any, type(node))))
                return (type(node).__name__, *(self._value(v) for v in values))

    def _value(self, value: object) -> Hashable:
        match value:
            case ExprNode() | StmtNode() | Buffer() | Axis() | Region():
                return ("row", self._reference(value))
            case tuple():
                return tuple(self._value(v) for v in value)
            case Combiner():
                return ("combiner", self._combiner(value))
            case TensorBase():
                return ("tensor", self._free(value), str(value.dtype))
            case DType() | ExternFunction():
                return str(value)
            case None | str() | int():
                return value
            case _:
                raise AssertionError(f"no rule to compare a {type(value).__name__}")

    def _combiner(self, value: Combiner) -> Hashable:
        """Written down by itself, so that it does not matter which reductions share a combiner."""
        inner = _Rows(self._free)
        for var in (*value.lhs, *value.rhs):
            inner.bind(var)
        parts = [inner.visit(part) for part in (*value.lhs, *value.rhs, *value.results, *value.identity)]
        return (tuple(parts), tuple(inner.rows))


def _binds(node: object) -> tuple[Var, ...]:
    if isinstance(node, Allocate):
        return (node.buffer.data,)
    return bound_vars(node) if isinstance(node, (ExprNode, StmtNode)) else ()  # type: ignore[arg-type]


def _parts(node: object) -> list[object]:
    """What a node is made of, buffers and axes among it."""
    match node:
        case Buffer():
            return [node.data, *node.layout]
        case Axis():
            return [node.var, node.min, node.extent]
        case Region():
            return [node.buffer, *node.parts]
        case Var() | Const():
            return []
        case _:
            found: list[object] = []
            for name in _field_names(cast(Any, type(node))):
                value = getattr(node, name)
                values = value if type(value) is tuple else (value,)
                found.extend(v for v in values if isinstance(v, (ExprNode, StmtNode, Buffer, Axis, Region)))
            return found
