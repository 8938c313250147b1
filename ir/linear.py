"""Polynomial normal forms of integer expressions: what the simplifier sorts sums into, and what bounds are proved on.

A ``Linear`` is ``sum(coefficient * product of factors) + constant``. A factor is an expression that is itself no sum,
difference or product (an *atom*), or a sum, in a product that is not multiplied out. For ``index`` this is algebra over
the integers; for the wrapping data integers it is algebra modulo 2^bits, which is a ring too, so the same form serves.
Vectors: a broadcast counts as its scalar, and ``ramp(b, s, lanes)`` as ``b + s*lane``, where the lane number is the
factor ``ramp(0, 1, lanes)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from ..base.dataclass import dataclass
from ..base.dtype import DType
from .expr import Binary, Broadcast, Const, Expr, Ramp, Unary

Factors: TypeAlias = tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One addend of a normal form: ``coefficient * factors[0] * factors[1] …``."""

    coefficient: int
    factors: Factors


def monomial_key(factors: Factors) -> Factors:
    """The factors in an order of their own, so that ``i*n`` and ``n*i`` are one key. It must never reach output."""
    return factors if len(factors) < 2 else tuple(sorted(factors, key=id))


@dataclass(slots=True, eq=False)
class Linear:
    """A normal form over the scalar dtype ``kind``. Mutable while ``accumulate`` builds it, a value afterwards.

    ``terms`` is in order of first appearance; no coefficient is 0.
    """

    kind: DType
    terms: dict[Factors, Term] = field(default_factory=dict)
    constant: int = 0

    def accumulate(self, coefficient: int, factors: Factors) -> None:
        """Add one term in place."""
        if not factors:
            self.constant = residue(self.kind, self.constant + coefficient)
            return
        key = factors if len(factors) == 1 else monomial_key(factors)
        found = self.terms.get(key)
        if found is not None:
            coefficient, factors = coefficient + found.coefficient, found.factors
        if not self.kind.is_index:
            coefficient = residue(self.kind, coefficient)
        if coefficient:
            self.terms[key] = Term(coefficient, factors)
        elif found is not None:
            del self.terms[key]

    def add(self, other: Linear, scale: int = 1) -> None:
        """Add ``scale * other`` in place."""
        self.constant = residue(self.kind, self.constant + scale * other.constant)
        for term in other.terms.values():
            self.accumulate(scale * term.coefficient, term.factors)

    def plus(self, other: Linear, scale: int = 1) -> Linear:
        """The form of ``self + scale * other``."""
        result = Linear(self.kind, self.terms.copy(), self.constant)
        result.add(other, scale)
        return result

    def shifted(self, offset: int) -> Linear:
        """The form plus a number."""
        return Linear(self.kind, self.terms, residue(self.kind, self.constant + offset))

    def times(self, factor: int, factors: Factors = ()) -> Linear:
        """The form of this one times a factor and a product: ``self * factor * product of factors``."""
        result = Linear(self.kind)
        for term in self:
            result.accumulate(term.coefficient * factor, term.factors + factors)
        return result

    def __iter__(self) -> Iterator[Term]:
        """All terms, the constant last if it is not 0."""
        yield from self.terms.values()
        if self.constant:
            yield Term(self.constant, ())

    @property
    def is_constant(self) -> bool:
        """Whether the form is a number alone, without any term."""
        return not self.terms

    @property
    def single(self) -> Term | None:
        """The only term, if there is exactly one and no constant."""
        return next(iter(self.terms.values())) if len(self.terms) == 1 and not self.constant else None

    def content(self) -> int:
        """The greatest common divisor of the coefficients, the constant not counted; 0 if there are none."""
        return math.gcd(*(t.coefficient for t in self.terms.values()))


def residue(kind: DType, value: int) -> int:
    """The representative of a coefficient: itself for index, the one next to 0 for wrapping integers."""
    if kind.is_index:
        return value
    half = 1 << (kind.bits - 1)
    return (value + half) % (2 * half) - half


def is_ring(kind: DType) -> bool:
    """Whether expressions of this dtype have a normal form."""
    return kind.is_index or kind.is_data_int


def is_ring_node(e: Expr) -> bool:
    """Whether the node is arithmetic that a ``Linear`` sees through."""
    match e:
        case Binary("+" | "-" | "*") | Unary("-") | Ramp() | Broadcast():
            return is_ring(e.dtype)
        case _:
            return False


def has_form(e: Expr) -> bool:
    """Whether the node is arithmetic that is no atom of its own normal form."""
    if not is_ring_node(e) or is_lane_number(e):
        return False
    return not (isinstance(e, Binary) and e.op == "*" and product_is_atom(e))


def lane_number(kind: DType, lanes: int) -> Expr:
    """``ramp(0, 1, lanes)``: the factor that stands for the number of a lane."""
    return Ramp(Const(0, kind), Const(1, kind), lanes)


_MAY_HAVE_PARTS = frozenset((Binary, Unary, Const, Broadcast, Ramp))
_RING_OPERATORS = frozenset("+-*")
_DEEPEST = 40
"""Sums nested deeper than this on their right sides are not worked out by recursion."""
_MAX_FACTORS = 64


def linear_of(e: Expr) -> Linear:
    """The normal form of an integer expression. An expression remembers its form, unless it is an atom of it."""
    return _linear_of(e, 0)


def _linear_of(e: Expr, depth: int) -> Linear:
    if type(e) not in _MAY_HAVE_PARTS or (type(e) is Binary and e.op not in _RING_OPERATORS):
        return Linear(e.dtype.element, {(e,): Term(1, (e,))})
    try:
        return e.normal_form
    except AttributeError:
        result = _form_of(e, depth) if depth < _DEEPEST else _form_of_deep(e)
    if (e,) not in result.terms:  # an atom would keep itself alive
        object.__setattr__(e, "normal_form", result)
    return result


def _form_of(e: Expr, depth: int) -> Linear:
    """The form from those of the parts. Sums are mostly nested to the left, and gone through from there."""
    outer: list[Binary] = []
    while isinstance(e, Binary) and e.op in ("+", "-") and not hasattr(e, "normal_form"):
        outer.append(e)
        e = e.a
    result = _form_of_part(e, depth)
    for node in reversed(outer):
        if isinstance(node.b, Const):
            value = int(node.b.value)
            result.constant = residue(result.kind, result.constant + (value if node.op == "+" else -value))
        else:
            result.add(_linear_of(node.b, depth + 1), 1 if node.op == "+" else -1)
    return result


def _form_of_part(e: Expr, depth: int) -> Linear:
    """The form of what is no sum, or has its form; one that may be added to."""
    if hasattr(e, "normal_form"):
        return Linear(e.normal_form.kind, e.normal_form.terms.copy(), e.normal_form.constant)
    result = Linear(e.dtype.element)
    for part, coefficient, factors in _parts(e):
        if part is e:
            result.accumulate(coefficient, factors)
        else:
            result.add(_linear_of(part, depth + 1).times(coefficient, factors))
    return result


def _form_of_deep(root: Expr) -> Linear:
    """The same without recursion, each part worked out once."""
    done: dict[Expr, Linear] = {}
    stack = [root]
    while stack:
        e = stack[-1]
        parts = _parts(e)
        missing = [x for x, _, _ in parts if x not in done and x is not e]
        if missing:
            stack += missing
            continue
        stack.pop()
        form = Linear(root.dtype.element)
        for x, coefficient, factors in parts:
            if x is e:
                form.accumulate(coefficient, factors)
            else:
                for term in done[x]:
                    form.accumulate(coefficient * term.coefficient, term.factors + factors)
        done[e] = form
    return done[root]


def atoms_of(form: Linear) -> list[Expr]:
    """The factors of all terms, in order of appearance, each once; lane numbers are none."""
    return list(dict.fromkeys(f for t in form.terms.values() for f in t.factors if not is_lane_number(f)))


def _parts(e: Expr) -> list[tuple[Expr, int, Factors]]:
    """``e`` as a sum of ``part * coefficient * factors``; a part that is ``e`` itself counts as 1."""
    match e:
        case Const(value=value):
            return [(e, int(value), ())]
        case Binary("+", a, b):
            return [(a, 1, ()), (b, 1, ())]
        case Binary("-", a, b):
            return [(a, 1, ()), (b, -1, ())]
        case Unary("-", a):
            return [(a, -1, ())]
        case Broadcast(value):
            return [(value, 1, ())]
        case Ramp(base, stride, lanes):
            return [(base, 1, ()), (stride, 1, (lane_number(e.dtype.element, lanes),))]
        case Binary("*"):
            coefficient, leaves, multiplied_out = _product(e)
            return [(e if multiplied_out is None else multiplied_out, coefficient, leaves)]
        case _:
            return [(e, 1, (e,))]


def _product(e: Binary) -> tuple[int, Factors, Expr | None]:
    """A product as (coefficient, factors, the sum to multiply out or None).

    It is multiplied out only where that does not copy work: by at most one sum, and a ramp not by other vectors. The
    sums that stay are factors, after the others. The products of wrapping integers stay as they are, but for constants:
    their arithmetic is the program's own.
    """
    coefficient = 1
    leaves: list[Expr] = []
    sums: list[Expr] = []
    stack: list[Expr] = [e]
    while stack and len(leaves) < _MAX_FACTORS:
        x = stack.pop()
        match x:
            case Const(value=value):
                coefficient *= int(value)
            case Binary("*", a, b):
                stack += (b, a)
            case Unary("-", inner):
                coefficient = -coefficient
                stack.append(inner)
            case Broadcast(inner):
                stack.append(inner)
            case Ramp(Const(value=0), stride, lanes):
                leaves.append(lane_number(e.dtype.element, lanes))
                stack.append(stride)
            case _:
                (sums if is_sum(x) else leaves).append(x)
    if coefficient == 0:
        return 0, (), None
    if stack or (not e.dtype.is_index and len(leaves) + len(sums) > 1):
        return 1, (e,), None
    if len(sums) != 1 or (isinstance(sums[0], Ramp) and any(x.dtype.lanes > 1 for x in leaves)):
        return coefficient, (*leaves, *sums), None
    if not e.dtype.is_index and coefficient not in (1, -1):
        return 1, (e,), None
    return coefficient, tuple(leaves), sums[0]


def is_sum(e: Expr) -> bool:
    """Whether the expression, if it is a factor, is one that could be multiplied out."""
    return (isinstance(e, Binary) and e.op in ("+", "-")) or (isinstance(e, Ramp) and not is_lane_number(e))


def product_is_atom(e: Binary) -> bool:
    """Whether a product is an atom of its own normal form."""
    _, leaves, _ = _product(e)
    return len(leaves) == 1 and leaves[0] is e


def without_factors(factors: Factors, gone: Factors) -> Factors | None:
    """The factors that remain when ``gone`` is taken away; None if it is not all there."""
    rest = list(factors)
    for factor in gone:
        position = next((i for i, f in enumerate(rest) if f is factor), None)
        if position is None:
            return None
        del rest[position]
    return tuple(rest)


def is_lane_number(e: Expr) -> bool:
    """Whether an expression is ``ramp(0, 1)``, the number of the lane itself; it is an atom, and all other ramps are
    made of it."""
    match e:
        case Ramp(Const(value=0), Const(value=1)):
            return True
        case _:
            return False
