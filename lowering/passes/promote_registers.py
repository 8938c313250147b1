"""Keep in registers what a serial loop loads and stores at the same address again and again.

``for k: C[i] = C[i] + A[k]`` becomes ``r = C[i]``, ``for k: r = r + A[k]``, ``C[i] = r``: the register tile of a matrix
multiplication, after vectorization and unrolling. The registers are a small buffer of scope "register" with constant
indices. ``elements.py`` finds what can be promoted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...ir.buffer import Buffer
from ...ir.build import make_buffer
from ...ir.constants import ZERO, const
from ...ir.contents import loads_of, reads_memory
from ...ir.expr import Compare, Expr, Load, Select, Var
from ...ir.facts import Facts, entry_facts, negate
from ...ir.linear import linear_of
from ...ir.makers import broadcast_to
from ...ir.stmt import Allocate, For, If, LetStmt, PrimFunc, Seq, Stmt, Store, While, seq
from ...ir.visit import Node, rewrite, with_body, with_children
from .context import inside_loop
from .elements import Element, ElementGroup, element_of, find_groups
from .nest_conditions import nest_conditions


def promote_registers(func: PrimFunc, facts: Facts | None = None, *, max_registers: int = 64) -> PrimFunc:
    """The function with accumulators in registers: at most ``max_registers`` values or vectors at any place. ``facts``
    are those at its entry."""
    return with_body(func, _Promoter(max_registers).stmt(func.body, facts or entry_facts(func)))


@dataclass(frozen=True, slots=True)
class _Promoter:
    """``budget`` is the number of registers still to be had here."""

    budget: int

    def stmt(self, stmt: Stmt, facts: Facts) -> Stmt:
        match stmt:
            case Seq(stmts):
                return self._seq(stmt, stmts, facts)
            case For(kind=kind, body=body):
                if kind == "serial":
                    return self._loop(stmt, facts, [])[-1]
                return self._with_body(stmt, self.stmt(body, inside_loop(facts, stmt)))
            case If(condition, then, orelse):
                new_then = self.stmt(then, facts.with_lasting(condition))
                new_else = None if orelse is None else self.stmt(orelse, facts.with_lasting(negate(condition)))
                return stmt if new_then is then and new_else is orelse else If(condition, new_then, new_else)
            case Allocate(_, body):
                return self._allocate(stmt, facts)
            case While(_, body) | LetStmt(_, _, body):
                return self._with_body(stmt, self.stmt(body, facts))
            case _:
                return stmt

    def _with_body(self, stmt: For | While | LetStmt | Allocate, body: Stmt) -> Stmt:
        return stmt if body is stmt.body else dataclasses.replace(stmt, body=body)

    def _seq(self, whole: Seq, stmts: tuple[Stmt, ...], facts: Facts) -> Stmt:
        done: list[Stmt] = []
        for stmt in _flat(stmts):
            if isinstance(stmt, For) and stmt.kind == "serial":
                done = self._loop(stmt, facts, done)
            else:
                done.append(self.stmt(stmt, facts))
        done = [kept for is_run, run in groupby(done, _is_store) for kept in self._run(is_run, list(run), facts)]
        unchanged = len(done) == len(stmts) and all(a is b for a, b in zip(done, stmts, strict=True))
        return whole if unchanged else seq(*done)

    def _run(self, is_run: bool, stmts: list[Stmt], facts: Facts) -> list[Stmt]:
        """Stores that follow each other, with what they store to under masks again and again in registers: LLVM
        forwards what was stored to loads, but not through masks."""
        if not is_run or len(stmts) == 1:
            return stmts
        chosen: list[_Registers] = []
        budget = self.budget
        for group in find_groups(seq(*stmts), facts, self.budget).values():
            is_again = sum(stmt.buffer is group.buffer for stmt in stmts if isinstance(stmt, Store))
            masked = any(element.mask is not None for element in group.elements)
            if not masked or not group.is_always_stored or is_again == len(group.elements):
                continue
            registers = _Registers.of(group) if len(group.elements) <= budget else None
            if registers is not None:
                budget -= len(group.elements)
                chosen.append(registers)
        if not chosen:
            return stmts
        loads = [r.initialize(e) for r in chosen for e in r.group.elements if e in r.group.needed]
        stores = [r.write_back(e) for r in chosen for e in r.group.elements]
        whole = seq(*loads, _replace_accesses(seq(*stmts), chosen), *stores)
        for registers in reversed(chosen):
            whole = registers.allocate(whole)
        return [whole]

    def _allocate(self, stmt: Allocate, facts: Facts) -> Stmt:
        """Memory that is only used at fixed addresses needs no memory at all."""
        group = find_groups(stmt.body, facts, self.budget).get(stmt.buffer.data)
        if group is None or stmt.buffer.scope == "register":
            return self._with_body(stmt, self.stmt(stmt.body, facts))
        registers = _Registers.of(group)
        if registers is None:
            return self._with_body(stmt, self.stmt(stmt.body, facts))
        body = _replace_accesses(stmt.body, [registers])
        return registers.allocate(self._spend([registers]).stmt(body, facts))

    def _spend(self, used: list[_Registers]) -> _Promoter:
        return _Promoter(self.budget - sum(len(r.group.elements) for r in used))

    def _loop(self, loop: For, facts: Facts, before: list[Stmt]) -> list[Stmt]:
        """The statements before a loop, and the loop with what can be promoted over all its iterations."""
        inside = inside_loop(facts, loop)
        runs = facts.nonnegative(linear_of(loop.extent).shifted(-1))
        promoted, starts = self._choose(loop, facts, before, runs)
        if not promoted:
            return [*before, self._with_body(loop, self.stmt(loop.body, inside))]
        body = _replace_accesses(loop.body, promoted)
        if any(isinstance(start.stmt, If) for start in starts):
            body = nest_conditions(body)
        body = self._spend(promoted).stmt(body, inside)
        started = {key for start in starts for key in start.elements}
        others = [(r, e) for r in promoted for e in r.group.elements if (r.data, e) not in started]
        first = [r.initialize(e) for r, e in others if e in r.group.needed]
        first += [_replace_accesses(start.stmt, promoted) for start in starts]
        last = [r.write_back(e) for r, e in others] + [_write_back(start.stmt, promoted) for start in starts]
        whole = seq(*first, dataclasses.replace(loop, body=body), *last)
        for registers in reversed(promoted):
            whole = registers.allocate(whole)
        gone = {start.stmt for start in starts}
        kept = [stmt for stmt in before if stmt not in gone]
        if runs or starts:
            return [*kept, whole]
        return [*kept, If(Compare(">", loop.extent, ZERO), whole)]

    def _choose(self, loop: For, facts: Facts, before: list[Stmt], runs: bool) -> tuple[list[_Registers], list[_Start]]:
        """What to promote, and the statements directly before the loop that give registers their first values.

        A group must be stored to at each iteration, or just before the loop: then its memory is there and is this
        iteration's own, also where the loop stores under a condition. What is stored just before the loop under a
        condition, as the sums of the last tile of a row are, the loop must access under it alone. A loop that may not
        run at all is promoted for groups of the second kind, if there are any.
        """
        groups = {d: g for d, g in find_groups(loop, facts, self.budget).items() if g.stores}
        starts = _starts(before, groups)
        started = {key for start in starts for key in start.elements}
        covered = {d for d, g in groups.items() if all((d, e) in started for e in g.elements)}
        chosen: list[_Registers] = []
        budget = self.budget
        for data, group in groups.items():
            eligible = data in covered or (group.is_always_stored and (runs or not covered))
            registers = _Registers.of(group) if eligible and len(group.elements) <= budget else None
            if registers is not None:
                budget -= len(group.elements)
                chosen.append(registers)
        begun = covered & {registers.data for registers in chosen}
        return chosen, [start for start in starts if start.data in begun]


def _is_store(stmt: Stmt) -> bool:
    return isinstance(stmt, Store)


def _flat(stmts: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for stmt in stmts:
        if isinstance(stmt, Seq):
            yield from _flat(stmt.stmts)
        else:
            yield stmt


class _Start(NamedTuple):
    """A statement that gives ``elements`` of one group their values: a store, or stores under conditions."""

    stmt: Stmt
    data: Var
    elements: frozenset[tuple[Var, Element]]


def _starts(before: list[Stmt], groups: dict[Var, ElementGroup]) -> list[_Start]:
    """The run of statements at the end of ``before`` that give elements of the groups their values, each once. What is
    stored under conditions, the loop accesses under them alone, and stores to once."""
    found: list[_Start] = []
    started: set[tuple[Var, Element]] = set()
    for stmt in reversed(before):
        stores = list(_stores_in(stmt))
        keys = {(store.buffer.data, element_of(store)) for store, _ in stores}
        values = all(_gives_value(store, conditions, groups) for store, conditions in stores)
        buffers = {data for data, _ in keys}
        if not values or len(buffers) != 1 or len(keys) < len(stores) or not keys.isdisjoint(started):
            break
        started |= keys
        found.append(_Start(stmt, buffers.pop(), frozenset(keys)))
    return found[::-1]


def _stores_in(stmt: Stmt, conditions: tuple[Expr, ...] = ()) -> Iterator[tuple[Store, tuple[Expr, ...]]]:
    """The stores of a statement that only stores, with the conditions around each; nothing of another one."""
    match stmt:
        case Store():
            yield stmt, conditions
        case If(condition, then, None):
            yield from _stores_in(then, (*conditions, condition))
        case Seq(stmts):
            parts = [list(_stores_in(part, conditions)) for part in stmts]
            yield from (each for part in parts if all(parts) for each in part)
        case _:
            pass


def _gives_value(store: Store, conditions: tuple[Expr, ...], groups: dict[Var, ElementGroup]) -> bool:
    """Whether a store is to an element of a group, of a value that reads none, under conditions of the loop's own
    accesses to it."""
    group, element = groups.get(store.buffer.data), element_of(store)
    return (
        group is not None
        and element in group.elements
        and not any(load.buffer.data in groups for load in loads_of(store.value))
        and all(group.is_added_to_only_if(element, c) and not reads_memory(c) for c in conditions)
    )


@dataclass(frozen=True, slots=True)
class _Registers:
    """The registers of a group: a buffer with an element for each."""

    group: ElementGroup
    buffer: Buffer

    @property
    def data(self) -> Var:
        """The memory of the group."""
        return self.group.buffer.data

    @staticmethod
    def of(group: ElementGroup) -> _Registers | None:
        """Registers for a group; None if its elements differ in dtype."""
        kinds = {e.dtype for e in group.elements}
        if len(kinds) != 1:
            return None
        name = f"{group.buffer.name}_reg"
        return _Registers(group, make_buffer(name, (len(group.elements),), kinds.pop(), scope="register"))

    def place(self, element: Element) -> tuple[Expr, ...]:
        return (const(self.group.elements[element], "index"),)

    def load(self, element: Element) -> Expr:
        return Load(self.buffer, self.place(element))

    def initialize(self, element: Element) -> Stmt:
        value = Load(self.group.buffer, element.indices, element.mask)
        return Store(self.buffer, self.place(element), value, origin=self.group.origin)

    def write_back(self, element: Element) -> Stmt:
        return Store(self.group.buffer, element.indices, self.load(element), element.mask, self.group.origin)

    def allocate(self, body: Stmt) -> Stmt:
        return Allocate(self.buffer, body)


def _write_back(start: Stmt, promoted: list[_Registers]) -> Stmt:
    """Stores of registers to the memory that a statement stores to, under the same conditions."""
    by_data = {r.data: r for r in promoted}

    def visit(node: Node) -> Node | None:
        return by_data[node.buffer.data].write_back(element_of(node)) if isinstance(node, Store) else None

    return rewrite(start, visit)


def _replace_accesses(body: Stmt, promoted: list[_Registers]) -> Stmt:
    by_data = {r.data: r for r in promoted}
    masked: dict[Expr, tuple[Expr, Expr]] = {}

    def visit(node: Node) -> Node | None:
        if isinstance(node, Load) and (registers := by_data.get(node.buffer.data)):
            element = element_of(node)
            value = registers.load(element)
            if element.mask is None:
                return value
            # A masked load gives 0 where the mask is off, the register has anything there.
            choice = Select(element.mask, value, broadcast_to(const(0, element.dtype.element), element.dtype.lanes))
            masked[choice] = (element.mask, value)
            return choice
        if isinstance(node, Store):
            value = node.value if node.mask is None else _without_choices(node.value, node.mask, masked)
            if registers := by_data.get(node.buffer.data):
                return Store(registers.buffer, registers.place(element_of(node)), value, origin=node.origin)
            return None if value is node.value else dataclasses.replace(node, value=value)
        return None

    return rewrite(body, visit)


def _without_choices(value: Expr, mask: Expr, masked: dict[Expr, tuple[Expr, Expr]]) -> Expr:
    """The value of a store under ``mask``, where no lane that is off matters: plain registers will do.

    Not so inside of addresses, which must stay within bounds in all lanes.
    """
    if value in masked:
        own, plain = masked[value]
        return plain if own is mask else value
    if isinstance(value, Load) or value.dtype.is_index:
        return value
    return with_children(value, lambda child: _without_choices(child, mask, masked))  # type: ignore[arg-type]
