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

    def __init__(self, done: dict[Facts, dict[Node, Node]]) -> None:
        """``done`` has what is known of some facts, and is theirs."""
        self.values: dict[Var, Expr] = {}
        self.buffers: dict[Buffer, Buffer] = {}
        self._done = done
        self._shared = bool(done)
        self._given: dict[tuple[Facts, Expr, bool], Facts] = {}
        self._inside: dict[tuple[Facts, Var, Expr, Expr], Facts] = {}
        self._total: dict[Expr, bool] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        """The buffer to access instead of this one."""
        return self.buffers.get(buffer, buffer)

    def replace_var(self, var: Var, value: Expr) -> None:
        """Put a value in for a variable from here on. What facts remember is of parts without, and they do not remember
        what becomes of parts with it."""
        self.values[var] = value
        if self._shared:
            self._done, self._shared = {}, False

    def replace_buffer(self, buffer: Buffer, simpler: Buffer) -> None:
        """Access another buffer instead of one from here on."""
        self.buffers[buffer] = simpler
        if simpler is not buffer:
            self._done.clear()  # expressions may load from it

    def inside_loop(self, facts: Facts, var: Var, low: Expr, extent: Expr) -> Facts:
        """The facts in the body of a loop."""
        key = (facts, var, low, extent)
        found = self._inside.get(key)
        if found is None:
            found = self._inside[key] = facts.with_loop(var, low, extent)
        return found

    def known(self, node: Node, facts: Facts) -> Any:
        """What becomes of a node, if that is known, else None."""
        return node if type(node) is Const else self.memo(facts).get(node)

    def memo(self, facts: Facts) -> dict[Node, Node]:
        """Results of visits under these facts."""
        found = self._done.get(facts)
        if found is None:
            found = self._done[facts] = {}
        return found

    def given(self, facts: Facts, condition: Expr, truth: bool = True) -> Facts:
        """The facts with a condition that holds (or does not); unchanged if that would tell nothing about integers."""
        if condition.dtype.lanes != 1 or not _tells(condition):
            return facts
        key = (facts, condition, truth)
        if key not in self._given:
            self._given[key] = facts.with_condition(condition) if truth else facts.without(condition)
        return self._given[key]

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
