"""What differs from lane to lane in the body of a loop to vectorize, and how memory private to a lane is to be laid
out.

Part of ``vectorize``: analysis only, nothing is rewritten here.
"""

from __future__ import annotations

from dataclasses import field

from ...base.dataclass import dataclass
from ...ir.contents import bindings_in, bound_vars, loads_of, reads_memory, statements_of, variables_of
from ...ir.expr import Expr, IfThenElse, Let, Load, Var
from ...ir.stmt import Allocate, For, If, LetStmt, Stmt, Store
from ...ir.visit import Node, children, walk

Guards = tuple[tuple[Expr, bool], ...]
"""Varying conditions under which something runs, and the value each must have."""


@dataclass(slots=True, eq=False)
class Varying:
    """Knows which variables and expressions may have a different value in each lane: call it with an expression.
    Mutable: remembers what it was asked, until another variable is added."""

    vars: set[Var]
    private: frozenset[Var]
    known: dict[Expr, bool] = field(default_factory=dict)

    def add(self, var: Var) -> None:
        """Note that a variable varies. What was found out of expressions before is forgotten, since it may not hold any
        more."""
        self.vars.add(var)
        self.known.clear()

    def __call__(self, value: Expr) -> bool:
        if value not in self.known:
            self.known[value] = not self.vars.isdisjoint(variables_of(value)) or any(
                load.buffer.data in self.private for load in loads_of(value)
            )
        return self.known[value]


def find_varying(body: Stmt, var: Var) -> Varying:
    """The analysis of a loop body: ``var`` varies, and so does what is computed from it or kept in private memory."""
    private = frozenset(stmt.buffer.data for stmt in statements_of(body) if isinstance(stmt, Allocate))
    varying = Varying({var}, private)
    count = 0
    while count != len(varying.vars):
        count = len(varying.vars)
        for node in walk(body):
            source = node.value if isinstance(node, (Let, LetStmt)) else node.min if isinstance(node, For) else None
            if source is not None and varying(source):
                for bound in bound_vars(node):
                    varying.add(bound)
    return varying


def vector_element_buffers(body: Stmt, varying: Varying) -> frozenset[Var]:
    """The private memory (by its ``data``) whose elements may become whole vectors, one lane for each iteration.

    That is so if every lane uses the same indices at the same time: the indices do not vary, and all accesses run under
    the same conditions. Then a lane that is switched off never sees what the others do to its share, and no access
    needs a mask.
    """
    uses = _Uses(varying)
    uses.visit(body, ())
    return frozenset(data for data in varying.private if data not in uses.scattered and _uniform(data, uses))


def _uniform(data: Var, uses: _Uses) -> bool:
    depth = len(uses.allocated[data][0])
    found = {guards[depth:] for guards in uses.guards.get(data, ())}
    inside = uses.allocated[data][1]
    return len(found) <= 1 and all(_stable(c, inside) for guards in found for c, _ in guards)


def _stable(condition: Expr, inside: frozenset[Var]) -> bool:
    """Whether the condition keeps its value where the variables ``inside`` run through theirs."""
    return not reads_memory(condition) and inside.isdisjoint(variables_of(condition))


@dataclass(slots=True, eq=False)
class _Uses:
    """Collects the guards of the accesses of private memory, and guards and inner variables of its allocation."""

    varying: Varying
    guards: dict[Var, set[Guards]] = field(default_factory=dict)
    allocated: dict[Var, tuple[Guards, frozenset[Var]]] = field(default_factory=dict)
    scattered: set[Var] = field(default_factory=set)
    seen: set[tuple[int, Guards]] = field(default_factory=set)

    def visit(self, node: Node, guards: Guards) -> None:
        if (id(node), guards) in self.seen:
            return
        self.seen.add((id(node), guards))
        match node:
            case If(condition=condition) | IfThenElse(condition=condition) if self.varying(condition):
                self.visit(condition, guards)
                for branch, holds in zip(children(node)[1:], (True, False), strict=False):
                    self.visit(branch, (*guards, (condition, holds)))
                return
            case Allocate(buffer, body):
                inside = frozenset(bindings_in(body))
                self.allocated[buffer.data] = guards, inside
            case Load(buffer, indices) | Store(buffer, indices) if buffer.data in self.varying.private:
                self.guards.setdefault(buffer.data, set()).add(guards)
                if buffer.dtype.lanes > 1 or node.mask is not None or any(self.varying(i) for i in indices):
                    self.scattered.add(buffer.data)
        for child in children(node):
            self.visit(child, guards)
