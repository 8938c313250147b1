"""What the visitors of expressions and of statements share: what is known so far, and facts under conditions."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, TypeAlias

from ..buffer import Buffer
from ..constants import const_int
from ..expr import Binary, Compare, Const, Expr, Load, Logical, Reduce, TensorRead, Unary, Var
from ..facts import Facts
from ..visit import Node, walk

Request: TypeAlias = tuple[Node, Facts]
Visit: TypeAlias = Generator[Request, Any, Any]
"""Yields nodes with the facts that hold there, and is sent what becomes of each: an expression of an expression. It
returns what becomes of its own node."""


class VisitorState:
    """Mutable: filled in the course of one run."""

    def __init__(self) -> None:
        self.values: dict[Var, Expr] = {}
        self.buffers: dict[Buffer, Buffer] = {}
        self._own: dict[Facts, dict[Node, Node]] | None = None
        self._total: dict[Expr, bool] = {}
        self._visited: set[Expr] = set()
        """Expressions that take visits."""
        self.visits = 0
        """How many expressions and statements were looked at."""

    def buffer(self, buffer: Buffer) -> Buffer:
        """The buffer to access instead of this one."""
        return self.buffers.get(buffer, buffer)

    def replace_buffer(self, buffer: Buffer, simpler: Buffer) -> None:
        """Access another buffer instead of one from here on. What becomes of expressions that load from it is no matter
        of facts then."""
        self.buffers[buffer] = simpler
        if simpler is not buffer:
            self._own = {}

    def replace_var(self, var: Var, value: Expr) -> None:
        """Put a value in for the variable of an expression, which may be free elsewhere: facts do not remember what
        becomes of parts with it. What a statement binds is replaced in its body alone, which has facts of its own."""
        self.values[var] = value
        if self._own is None:
            self._own = {}

    def known(self, node: Node, facts: Facts) -> Any:
        """What becomes of a node, if that is known, else None."""
        return node if type(node) is Const else self.memo(facts).get(node)

    def remember(self, e: Expr, facts: Facts, simpler: Node) -> None:
        """Note what becomes of an expression."""
        memo = self.memo(facts)
        memo[e] = memo[simpler] = simpler

    def memo(self, facts: Facts) -> dict[Any, Any]:
        """Results of visits under these facts, which remember them."""
        return facts.simplified if self._own is None else self._own.setdefault(facts, {})

    def given(self, facts: Facts, condition: Expr, truth: bool = True) -> Facts:
        """The facts with a condition that holds (or does not); unchanged if that would tell nothing about integers."""
        if condition.dtype.lanes != 1 or not _tells(condition):
            return facts
        return facts.with_condition(condition) if truth else facts.without(condition)

    def is_total(self, e: Expr) -> bool:
        """Whether the expression cannot fault, whatever its variables are.

        What is evaluated on both sides of a condition may only be simplified by the condition if it is total: under
        ``i < n`` the index of ``a[min(i, n - 1)]`` is i, but the load may happen for other i as well.
        """
        if e not in self._total:
            self._total[e] = not any(_may_fault(x) for x in walk(e))
        return self._total[e]

    def visit_all(self, parts: Iterable[Expr], facts: Facts) -> Generator[Request, Any, tuple[Expr, ...]]:
        """The parts, each simplified."""
        done: list[Expr] = []
        for part in parts:
            simpler = self.known(part, facts)
            if simpler is None:
                simpler = yield part, facts
            done.append(simpler)
        return tuple(done)


def _may_fault(node: Node) -> bool:
    match node:
        case Load() | TensorRead() | Reduce():
            return True
        case Binary("//" | "%", a, b):
            return a.dtype.is_index and const_int(b) is None
        case _:
            return False


def _tells(condition: Expr) -> bool:
    """Whether some part of a condition is not just a comparison of floats."""
    stack = [condition]
    while stack:
        match stack.pop():
            case Logical(_, a, b):
                stack += (a, b)
            case Unary("not", a):
                stack.append(a)
            case Const():
                pass
            case Compare(_, a, _) if a.dtype.is_float:
                pass
            case _:
                return True
    return False
