"""The memory that a piece of program uses at fixed addresses: elements that could live in registers meanwhile.

Part of ``promote_registers``: analysis only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import NamedTuple

from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...base.intern import Interned
from ...ir.buffer import Buffer
from ...ir.constants import const_int
from ...ir.contents import bindings_of, bound_vars, expressions_of, loads_of, reads_memory, variables_of
from ...ir.expr import Broadcast, Compare, Expr, Load, Logical, Ramp, Var
from ...ir.facts import Facts, negate
from ...ir.linear import Linear, linear_of
from ...ir.stmt import Allocate, CallExtern, For, If, Launch, PrefetchStmt, Seq, Stmt, StmtNode, Store, While
from ...ir.visit import buffers_accessed, children
from .context import inside_loop


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Element(metaclass=Interned):
    """One address in memory: a value, or a vector of values, that is always accessed as a whole. Equal ones are one."""

    indices: tuple[Expr, ...]
    dtype: DType
    mask: Expr | None


@dataclass(slots=True, eq=False)
class ElementGroup:
    """All that a piece of program accesses of one buffer: disjoint elements, numbered.

    ``always_stored`` are those stored to whenever the piece of program runs, ``stored_first`` those that the first
    iteration of a loop stores to under the condition that it is the first; ``needed`` those that may be loaded before
    either. ``conditions`` are those under which an element is accessed, wherever it is, and ``stores`` is how often the
    program stores to it. ``origin`` is that of a store, for what the registers' own loads and stores come from.
    """

    buffer: Buffer
    elements: dict[Element, int] = field(default_factory=dict)
    always_stored: set[Element] = field(default_factory=set)
    stored_first: set[Element] = field(default_factory=set)
    needed: set[Element] = field(default_factory=set)
    conditions: dict[Element, tuple[Expr, ...]] = field(default_factory=dict)
    stores: Counter[Element] = field(default_factory=Counter)
    origin: int = 0

    @property
    def is_always_stored(self) -> bool:
        """Whether all of the elements are stored to whenever the piece of program runs."""
        return len(self.always_stored) == len(self.elements)

    def is_added_to_only_if(self, element: Element, condition: Expr) -> bool:
        """Whether all accesses of an element are under a condition, and there is one store among them."""
        return self.stores[element] == 1 and any(each is condition for each in self.conditions[element])


def element_of(access: Load | Store) -> Element:
    """The element that an access goes to: its subscripts, with the dtype of what is read or written, and the mask."""
    kind = access.dtype if isinstance(access, Load) else access.value.dtype
    return Element(access.indices, kind, access.mask)


def find_groups(program: Stmt, facts: Facts, limit: int) -> dict[Var, ElementGroup]:
    """The groups of a piece of program, by ``buffer.data``, of the memory that it uses at fixed addresses only.

    Of a loop, the piece is one iteration, but fixed is what is the same in all. Left out is what is allocated inside,
    what a parallel loop inside uses, what is in registers already, and groups of more than ``limit`` elements.
    """
    search = _Search(program if isinstance(program, For) else None)
    if isinstance(program, For):
        search.bound.add(program.var)
        search.visit(program.body, inside_loop(facts, program), True)
    else:
        search.visit(program, facts, True)
    return {
        data: group
        for data, group in search.groups.items()
        if data not in search.excluded
        and len(group.elements) <= limit
        and all(map(search.is_fixed, group.elements))
        and _all_disjoint(list(group.elements), facts)
    }


@dataclass(slots=True, eq=False)
class _Search:
    """``loop`` is the program, if that is a loop. ``bound`` are the variables that the program binds: complete when all
    of it has been visited. ``conditions`` are those around what is visited."""

    loop: For | None
    conditions: tuple[Expr, ...] = ()
    bound: set[Var] = field(default_factory=set)
    groups: dict[Var, ElementGroup] = field(default_factory=dict)
    excluded: set[Var] = field(default_factory=set)

    def visit(self, stmt: Stmt, facts: Facts, always: bool) -> None:
        """Record the accesses of a statement; ``always`` says that it runs whenever the whole does."""
        self.bound.update(bound_vars(stmt))
        match stmt:
            case Seq(stmts):
                for s in stmts:
                    self.visit(s, facts, always)
            case For(min=low, extent=extent, kind=kind, body=body):
                self._expressions(low, extent)
                if kind == "parallel":
                    self.excluded.update(buffer.data for buffer in buffers_accessed(body))
                runs = always and facts.nonnegative(linear_of(extent).shifted(-1))
                self.visit(body, inside_loop(facts, stmt), runs)
            case If(condition, then, orelse):
                self._expressions(condition)
                outside, self.conditions = self.conditions, (*self.conditions, condition)
                self.visit(then, facts.with_lasting(condition), False)
                self.conditions = outside
                if always and self._is_first(condition):
                    self._stored_first(then)
                if orelse is not None:
                    self.visit(orelse, facts.with_lasting(negate(condition)), False)
            case While(condition, body):
                self._expressions(condition)
                self.visit(body, facts, False)
            case Store(_, indices, value, mask):
                self._expressions(*indices, value, *(() if mask is None else (mask,)))
                self._access(stmt, always)
            case PrefetchStmt(buffer, indices):
                self._expressions(*indices)
                self.excluded.add(buffer.data)
            case CallExtern():
                self._expressions(*expressions_of(stmt))
                self.excluded.update(region.buffer.data for region in stmt.regions)
            case Launch(_, _, args):
                self.excluded.update(a.data for a in args if isinstance(a, Buffer))
            case _:
                if isinstance(stmt, Allocate):
                    self.excluded.add(stmt.buffer.data)
                for child in children(stmt):
                    if isinstance(child, StmtNode):
                        self.visit(child, facts, always)
                    else:
                        self._expressions(child)

    def _is_first(self, condition: Expr) -> bool:
        """Whether a condition says that this is the loop's first iteration, as that of sums which begin there does."""
        if self.loop is None or not isinstance(condition, Compare) or condition.op != "==":
            return False
        first = const_int(self.loop.min)
        return first is not None and condition.a is self.loop.var and const_int(condition.b) == first

    def _stored_first(self, stmt: Stmt) -> None:
        if isinstance(stmt, Seq):
            for part in stmt.stmts:
                self._stored_first(part)
        elif isinstance(stmt, Store):
            self.groups[stmt.buffer.data].stored_first.add(element_of(stmt))

    def _expressions(self, *values: Expr) -> None:
        for value in values:
            self.bound.update(bindings_of(value))
            for load in loads_of(value):
                self._access(load, False)

    def _access(self, access: Load | Store, always: bool) -> None:
        buffer = access.buffer
        group = self.groups.setdefault(buffer.data, ElementGroup(buffer))
        if buffer is not group.buffer or buffer.scope == "register":
            self.excluded.add(buffer.data)
            return
        element = element_of(access)
        group.elements.setdefault(element, len(group.elements))
        known = group.conditions.get(element, self.conditions)
        group.conditions[element] = tuple(c for c in known if any(c is around for around in self.conditions))
        if isinstance(access, Load):
            if element not in group.always_stored and element not in group.stored_first:
                group.needed.add(element)
        else:
            group.stores[element] += 1
            group.origin = access.origin
            if always:
                group.always_stored.add(element)

    def is_fixed(self, element: Element) -> bool:
        """Whether the address of an element is the same wherever it is accessed."""
        parts = (*element.indices, *(() if element.mask is None else (element.mask,)))
        return all(_extent(i) is not None for i in element.indices) and not any(
            reads_memory(part) or not self.bound.isdisjoint(variables_of(part)) for part in parts
        )


def _extent(index: Expr) -> tuple[Expr, int, int] | None:
    """First index, step and number of indices, if these are known; None for a scattered vector."""
    if index.dtype.lanes == 1:
        return index, 1, 1
    if isinstance(index, Ramp) and (step := const_int(index.stride)):
        return index.base, step, index.lanes
    return None


def _all_disjoint(elements: list[Element], facts: Facts) -> bool:
    compare = _Disjointness(facts)
    spans = [tuple(compare.span(index, element.mask) for index in element.indices) for element in elements]
    return all(
        any(map(compare.are_apart, a, b))  # of some dimension
        for i, a in enumerate(spans)
        for b in spans[:i]
    )


class _Span(NamedTuple):
    """The indices ``form + step * k`` for k below ``count``, of neighbours those for k below ``on`` if that is known.
    ``terms`` is the number of the form's terms, without its ``constant``."""

    form: Linear
    terms: int
    constant: int
    lanes: tuple[int, int]
    on: Linear | None


@dataclass(frozen=True, slots=True, eq=False)
class _Disjointness:
    """Which indices have no value in common, whatever the lanes. Remembers what it was asked: many pairs of elements
    are as far from each other."""

    facts: Facts
    _terms: dict[tuple[object, ...], int] = field(default_factory=dict)
    _known: dict[tuple[object, ...], bool] = field(default_factory=dict)

    def span(self, index: Expr, mask: Expr | None) -> _Span | None:
        """The indices in all lanes that a mask lets through; None of a scattered vector."""
        extent = _extent(index)
        if extent is None:
            return None
        form = linear_of(extent[0])
        terms = tuple((key, term.coefficient) for key, term in form.terms.items())
        on = None if mask is None or extent[1] != 1 else _lanes_on(mask)
        if on is not None and on.is_constant:
            extent = (extent[0], 1, max(1, min(extent[2], on.constant)))
            on = None
        return _Span(form, self._terms.setdefault(terms, len(self._terms)), form.constant, extent[1:], on)

    def are_apart(self, a: _Span | None, b: _Span | None) -> bool:
        """Whether it is certain that no index is in both."""
        if a is None or b is None:
            return False
        key = (a.terms, b.terms, b.constant - a.constant, a.lanes, b.lanes)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _is_apart(b.form.plus(a.form, -1), a.lanes, b.lanes, self.facts)
        return found or self._end_before(a, b) or self._end_before(b, a)

    def _end_before(self, a: _Span, b: _Span) -> bool:
        """Whether the lanes of ``a`` that are on end before the first index of ``b``."""
        if a.on is None or b.lanes[0] < 0:
            return False
        return self.facts.nonnegative(b.form.plus(a.form, -1).plus(a.on, -1))


def _lanes_on(mask: Expr) -> Linear | None:
    """How many lanes a mask lets through at the most, if these are the first ones: a tail's lanes count up to a
    limit."""
    match mask:
        case Compare("<", Ramp(base, stride, _), Broadcast(limit)) if const_int(stride) == 1:
            return linear_of(limit).plus(linear_of(base), -1)
        case Logical("and", a, b):
            return on if (on := _lanes_on(a)) is not None else _lanes_on(b)
        case _:
            return None


def _is_apart(gap: Linear, a: tuple[int, int], b: tuple[int, int], facts: Facts) -> bool:
    """Whether no ``gap + b_step * j`` is equal to an ``a_step * i``."""
    (a_step, a_count), (b_step, b_count) = a, b
    if gap.is_constant and a_step == b_step and gap.constant % a_step != 0:
        return True
    a_low, a_high = sorted((0, a_step * (a_count - 1)))
    b_low, b_high = sorted((0, b_step * (b_count - 1)))
    above, below = gap.shifted(b_low - a_high - 1), gap.times(-1).shifted(a_low - b_high - 1)
    if gap.is_constant:
        return above.constant >= 0 or below.constant >= 0
    return facts.nonnegative(above) or facts.nonnegative(below)
