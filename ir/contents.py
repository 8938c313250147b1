"""What is in an expression, or a statement: its variables, its loads, whether it makes choices; and other expressions
in place of variables.

Expressions remember what is in them: they are asked often, and share most of their parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

from .expr import Binary, Call, Expr, IfThenElse, Let, Load, Reduce, Select, TensorRead, Var
from .expr_node import ExprNode
from .stmt import For, LetStmt, Stmt, StmtNode, Store
from .visit import N, Node, children, rewrite, walk

E = TypeVar("E", bound=ExprNode)
_MARKED: tuple[type[ExprNode], ...] = (Load, IfThenElse, Select, Let, Reduce, TensorRead, Call)
_MARK_OF: dict[type, int] = {kind: 1 << number for number, kind in enumerate(_MARKED)}
_DIVIDES = 1 << len(_MARKED)
_LOADS, _READS = _MARK_OF[Load], _MARK_OF[TensorRead]
_CHOOSES = _MARK_OF[IfThenElse] | _MARK_OF[Select]
_BINDS = _MARK_OF[Let] | _MARK_OF[Reduce]
_NO_VARIABLES: Mapping[Var, None] = MappingProxyType({})


def _marks_of(e: Any) -> int:
    """A bit for each kind of node that is in an expression."""
    try:
        marks: int = e.marks
    except AttributeError:
        return _remembered_marks(e)
    return marks


def _remembered_marks(e: Any) -> int:
    stack = [e]
    while stack:
        node = stack[-1]
        inside: tuple[Any, ...] = children(node)
        pending = [child for child in inside if not hasattr(child, "marks")]
        if pending:
            stack += pending
            continue
        kind: Any = type(node)
        marks = _DIVIDES if kind is Binary and node.op in ("//", "%") else _MARK_OF.get(kind, 0)
        for child in inside:
            marks |= child.marks
        object.__setattr__(node, "marks", marks)
        stack.pop()
    return e.marks  # type: ignore[no-any-return]


def reads_memory(e: Expr) -> bool:
    """Whether the value may change when something is stored."""
    return _marks_of(e) & _LOADS != 0


def reads_tensors(e: Expr) -> bool:
    """Whether there is a read of a te tensor in an expression."""
    return _marks_of(e) & _READS != 0


def chooses(e: Expr) -> bool:
    """Whether there is a choice between two values in an expression."""
    return _marks_of(e) & _CHOOSES != 0


def divides(e: Expr) -> bool:
    """Whether there is a ``//`` or ``%`` in an expression."""
    return _marks_of(e) & _DIVIDES != 0


def variables_of(e: Expr) -> Mapping[Var, None]:
    """The variables in an expression, bound ones too, in order of appearance."""
    if isinstance(e, Var):
        return {e: None}
    try:
        return e.variables
    except AttributeError:
        return _remembered_variables(e)


def _remembered_variables(e: Any) -> Mapping[Var, None]:
    """A variable does not remember itself, for it would keep itself alive."""
    stack = [e]
    while stack:
        node = stack[-1]
        inside: tuple[Any, ...] = children(node)
        pending = [child for child in inside if not isinstance(child, Var) and not hasattr(child, "variables")]
        if pending:
            stack += pending
            continue
        found = _NO_VARIABLES
        for child in inside:
            more = {child: None} if isinstance(child, Var) else child.variables
            if not found:
                found = more
            elif not found.keys() >= more.keys():
                found = {**found, **more}
        object.__setattr__(node, "variables", found)
        stack.pop()
    return e.variables  # type: ignore[no-any-return]


def loads_of(e: Expr) -> list[Load]:
    """The loads in an expression, each once, in order of appearance."""
    return nodes_of(e, Load)


def bindings_of(e: Expr) -> list[Var]:
    """The variables that are bound in an expression."""
    if not _marks_of(e) & _BINDS:
        return []
    return [var for node in (*nodes_of(e, Let), *nodes_of(e, Reduce)) for var in bound_vars(cast(Node, node))]


def divisions_of(e: Expr) -> list[Binary]:
    """Each ``//`` and ``%`` in an expression once, parents before children, left to right."""
    return [node for node in _nodes_with(e, _DIVIDES) if isinstance(node, Binary) and node.op in ("//", "%")]


def nodes_of(e: Expr, kind: type[E]) -> list[E]:
    """The nodes of a kind in an expression, each once, parents before children, left to right. The kind is one of
    loads, choices, bindings, reductions, reads of tensors, and calls."""
    return [node for node in _nodes_with(e, _MARK_OF[kind]) if type(node) is kind]


def _nodes_with(e: Expr, mark: int) -> Iterator[Any]:
    """The nodes that have a mark, or have one in them that has."""
    seen: set[int] = set()
    stack: list[Any] = [e] if _marks_of(e) & mark else []
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack += [child for child in children(node)[::-1] if _marks_of(child) & mark]


def free_vars(root: Node) -> tuple[Var, ...]:
    """Variables that the node uses but does not bind, in order of appearance; ``buffer.data`` does not count."""
    if isinstance(root, ExprNode) and not _marks_of(root) & _BINDS:
        return tuple(variables_of(root))
    used: dict[Var, None] = {}
    bound: set[Var] = set()
    for node in walk(root):
        if isinstance(node, Var):
            used[node] = None
        bound.update(bound_vars(node))
    return tuple(v for v in used if v not in bound)


def bound_vars(node: Node) -> tuple[Var, ...]:
    """The variables that this node (not what is inside it) binds."""
    match node:
        case For(var) | Let(var) | LetStmt(var):
            return (var,)
        case Reduce():
            return tuple(axis.var for axis in node.axes)
        case _:
            return ()


def substitute(root: N, values: Mapping[Var, Expr]) -> N:
    """Replace variables by expressions. Bound variables are unique by creation, so nothing can be captured."""
    if not values:
        return root
    replaced = values.keys()

    def without_any(node: Node) -> bool:
        return isinstance(node, ExprNode) and replaced.isdisjoint(variables_of(node))

    return rewrite(root, lambda node: values.get(node) if isinstance(node, Var) else None, stays=without_any)


def statements_of(root: Stmt) -> Iterator[Stmt]:
    """The statements in a statement, itself first: each once, parents before children, left to right. What is in their
    expressions is not looked at."""
    seen: set[int] = set()
    stack: list[Any] = [root]
    while stack:
        stmt = stack.pop()
        if id(stmt) not in seen:
            seen.add(id(stmt))
            yield stmt
            stack += [child for child in children(stmt)[::-1] if isinstance(child, StmtNode)]


def accesses_in(root: Stmt) -> Iterator[Load | Store]:
    """The stores and the loads in a statement, a load once for each of the expressions directly in a statement that it
    is in."""
    for stmt in statements_of(root):
        if isinstance(stmt, Store):
            yield stmt
        for e in expressions_of(stmt):
            yield from loads_of(e)


def expressions_of(stmt: Stmt) -> list[Expr]:
    """The expressions directly in a statement, the variable of a loop among them."""
    return [child for child in children(stmt) if isinstance(child, ExprNode)]


def bindings_in(root: Stmt) -> set[Var]:
    """The variables that are bound in a statement: by loops, definitions, and in expressions."""
    bound: set[Var] = set()
    for stmt in statements_of(root):
        bound.update(bound_vars(stmt), *map(bindings_of, expressions_of(stmt)))
    return bound
