"""Hashes of graphs up to names: those of values, of symbolic dimensions, of functions, and of the imported nodes.

A graph is written down as rows, one a node, inputs before users; a row names other rows by number, and symbolic
dimensions are numbered in order of appearance. Functions that share a hash compute the same, in the same order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from typing import TypeAlias

from ..ir.expr import Dimension
from ..ir.expr_node import ExprNode
from ..ir.structural import structural_key
from .node import Call, Constant, Function, Node, NodeBase, Tuple, TupleGet, Var
from .types import Type, leaf_types
from .visit import post_order

Row: TypeAlias = tuple[Hashable, ...]


def graph_hash(root: Node) -> str:
    """A digest that equal graphs share, in every process."""
    return _digest(root, _Rows())


def structure_hash(root: Node) -> str:
    """A digest that graphs share which are equal but for the extents in the types of their values."""
    return _digest(root, _Rows(extents=False))


def _digest(root: Node, rows: _Rows) -> str:
    rows.visit(root)
    return hashlib.sha256(repr(rows.rows).encode()).hexdigest()


class _Rows:
    """Collects the rows of a graph, whose types have their ``extents`` or only the number of them. Mutable."""

    def __init__(self, extents: bool = True) -> None:
        self._has_extents = extents
        self.rows: list[Row] = []
        self._row_of: dict[Node, int] = {}
        self._free: dict[object, int] = {}  # symbolic dimensions, by order of appearance

    def visit(self, root: Node) -> int:
        """The number of a node's row, which is made if need be."""
        if isinstance(root, Function):
            for param in root.params:
                self._add(param)
        for node in post_order(root):
            self._add(node)
        return self._row_of[root]

    def _add(self, node: Node) -> None:
        if node not in self._row_of:
            row = self._describe(node)
            self._row_of[node] = len(self.rows)
            self.rows.append(row)

    def _describe(self, node: Node) -> Row:
        match node:
            case Var():
                return "var", self._kind(node.type)
            case Constant(value):
                return "const", self._kind(node.type), hashlib.sha256(value.tobytes()).hexdigest()
            case Call(op, args, attrs):
                return "call", op.name, self._numbers(args), self._value(attrs), self._kind(node.type)
            case Tuple(parts):
                return "tuple", self._numbers(parts)
            case TupleGet(value, index):
                return "get", self._row_of[value], index
            case Function(params, body, batch=batch, batch_size=size):
                samples = tuple(sorted(self._dimension(dim) for dim in batch))
                return "function", tuple(self.visit(p) for p in params), self._row_of[body], samples, size

    def _kind(self, kind: Type) -> Hashable:
        """A value's type."""
        if self._has_extents:
            return self._value(kind)
        return tuple((tensor.ndim, self._value(tensor.dtype)) for tensor in leaf_types(kind))

    def _numbers(self, nodes: tuple[Node, ...]) -> tuple[int, ...]:
        return tuple(self._row_of[node] for node in nodes)

    def _dimension(self, var: object) -> int:
        """The number of a symbolic dimension."""
        return self._free.setdefault(var, len(self._free))

    def _extent(self, var: object) -> Hashable:
        """What stands for a symbolic dimension in an extent: its number, and the bounds that it may have."""
        number = self._dimension(var)
        return (number, var.low, var.high, var.unit) if isinstance(var, Dimension) else number

    def _value(self, value: object) -> Hashable:
        """An attribute, a type, or what they are made of. Floats by their text: -0.0 is not 0.0, and 1 not 1.0."""
        match value:
            case ExprNode():
                return structural_key(value, self._extent)  # type: ignore[arg-type]
            case NodeBase():
                return "node", self.visit(value)  # type: ignore[arg-type]
            case tuple():
                return tuple(self._value(v) for v in value)
            case _ if is_dataclass(value):
                return type(value).__name__, tuple(
                    self._value(getattr(value, f.name)) for f in fields(value) if f.compare
                )
            case _:
                return type(value).__name__, repr(value)
