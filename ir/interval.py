"""Interval analysis: constant bounds of integer expressions, from constant bounds of their variables.

``None`` stands for "unbounded". Data integers wrap: where an operation may leave the range of its dtype, the result is
the whole range. Vectors are bounded over all their lanes. The simplifier and the verifier ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ..base.dataclass import dataclass
from ..base.dtype import DType
from .expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Dimension,
    Expr,
    IfThenElse,
    Let,
    Logical,
    Ramp,
    Select,
    Unary,
)
from .linear import Linear, Term, atoms_of, has_form, is_lane_number, linear_of

Bound: TypeAlias = int | None


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from ``low`` to ``high``, both included."""

    low: Bound = None
    high: Bound = None

    @staticmethod
    def exactly(value: int) -> Interval:
        """The interval of one value."""
        return Interval(value, value)

    @property
    def is_point(self) -> bool:
        """Whether it has one value only."""
        return self.low is not None and self.low == self.high

    @property
    def largest_magnitude(self) -> Bound:
        """The largest absolute value; None if it is not bounded."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))

    def within(self, low: Bound, high: Bound) -> bool:
        """Whether no value is below ``low`` or above ``high``."""
        return (low is None or (self.low is not None and self.low >= low)) and (
            high is None or (self.high is not None and self.high <= high)
        )

    def __neg__(self) -> Interval:
        return Interval(_neg(self.high), _neg(self.low))

    def __add__(self, other: Interval) -> Interval:
        return Interval(_add(self.low, other.low), _add(self.high, other.high))

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def scale(self, factor: int) -> Interval:
        """The interval of the multiples by a factor."""
        if factor == 0:
            return Interval(0, 0)
        low, high = (None if b is None else b * factor for b in (self.low, self.high))
        return Interval(low, high) if factor > 0 else Interval(high, low)

    def __mul__(self, other: Interval) -> Interval:
        if other.is_point and other.low is not None:
            return self.scale(other.low)
        if self.is_point and self.low is not None:
            return other.scale(self.low)
        if self.low is not None and other.low is not None and min(self.low, other.low) >= 0:
            high = None if self.high is None or other.high is None else self.high * other.high
            return Interval(self.low * other.low, high)
        if None in (self.low, self.high, other.low, other.high):
            return Interval()
        corners = [
            a * b for a in (self.low, self.high) for b in (other.low, other.high) if a is not None and b is not None
        ]
        return Interval(min(corners), max(corners))

    def __floordiv__(self, other: Interval) -> Interval:
        """The quotients, rounded down; also of data integers, where ``x // 0`` is 0."""
        if other.within(1, None):
            low = None if self.low is None else _divide(self.low, other.low if self.low < 0 else other.high)
            high = None if self.high is None else _divide(self.high, other.high if self.high < 0 else other.low)
            return Interval(low, high)
        if other.within(None, -1):
            return -self // -other
        if other.within(0, None):
            return self.union(Interval.exactly(0))  # as far as 0, and no further
        largest = self.largest_magnitude
        return Interval() if largest is None else Interval(-largest, largest)

    def __mod__(self, other: Interval) -> Interval:
        """The remainders, with the divisor's sign; also of data integers, where ``x % 0`` is 0."""
        if other.within(1, None):
            if other.low is not None and self.within(0, other.low - 1):
                return self
            if other.is_point and other.low is not None and self.low is not None and self.high is not None:
                divisor = other.low
                if self.low // divisor == self.high // divisor:
                    return Interval(self.low % divisor, self.high % divisor)
            highest = None if other.high is None else other.high - 1
            if self.within(0, None):
                return Interval(
                    0, self.high if highest is None else highest if self.high is None else min(highest, self.high)
                )
            return Interval(0, highest)
        if other.within(None, -1):
            return -(-self % -other)
        low = None if other.low is None else min(other.low + 1, 0)
        return Interval(low, None if other.high is None else max(other.high - 1, 0))

    def minimum(self, other: Interval) -> Interval:
        """What the smaller of a value of each lies in."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        return Interval(low, _least(self.high, other.high))

    def maximum(self, other: Interval) -> Interval:
        """What the larger of a value of each lies in."""
        return -(-self).minimum(-other)

    def union(self, other: Interval) -> Interval:
        """The least interval that holds both."""
        return Interval(self.minimum(other).low, self.maximum(other).high)

    def intersect(self, other: Interval) -> Interval:
        """What both allow. Of disjoint intervals, which only dead code has, ``self``: no interval is ever empty."""
        both = Interval(_neg(_least(_neg(self.low), _neg(other.low))), _least(self.high, other.high))
        if both.low is not None and both.high is not None and both.low > both.high:
            return self
        return both


EVERYTHING = Interval()


def _neg(bound: Bound) -> Bound:
    return None if bound is None else -bound


def _add(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else a + b


def _least(a: Bound, b: Bound) -> Bound:
    return b if a is None else a if b is None else min(a, b)


def _divide(a: int, b: Bound) -> int:
    """``a // b``, and its limit for an unbounded ``b > 0``."""
    if b is None:
        return -1 if a < 0 else 0
    return a // b


def range_of(kind: DType) -> Interval:
    """All values of an integer dtype; everything for index and what is no integer."""
    limits = kind.int_range()
    return EVERYTHING if limits is None else Interval(*limits)


def interval_of(e: Expr, ranges: Mapping[Expr, Interval] | None = None) -> Interval:
    """Bounds of an index, data integer or bool expression, whose variables (or other parts) lie in ``ranges``.

    Sums are bounded as a whole, so terms that cancel do not widen the result.
    """
    return IntervalAnalysis(ranges or {}).of(e)


class IntervalAnalysis:
    """Bounds under fixed ranges. Mutable: it remembers what it computed, so ask one object all the questions."""

    def __init__(self, ranges: Mapping[Expr, Interval]) -> None:
        self._ranges = ranges
        self._done: dict[Expr, Interval] = {}
        self._forms: dict[Expr, Linear] = {}

    def of(self, e: Expr) -> Interval:
        """The interval that an integer expression lies in."""
        found = self._done.get(e)
        if found is not None:
            return found
        stack = [e]
        while stack:
            node = stack[-1]
            missing = [x for x in self._operands(node) if x not in self._done] if node not in self._done else []
            if missing:
                stack += missing
                continue
            stack.pop()
            if node not in self._done:
                bounds = self._transfer(node)
                known = self._ranges.get(node)
                self._done[node] = bounds if known is None else known.intersect(bounds)
        return self._done[e]

    def of_linear(self, form: Linear) -> Interval:
        """Bounds of a normal form, without regard to wrapping."""
        low: Bound = form.constant
        high: Bound = form.constant
        for term in form.terms.values():
            least, most = self.of_term(term)
            low = None if low is None or least is None else low + least
            high = None if high is None or most is None else high + most
        return Interval(low, high)

    def of_term(self, term: Term) -> tuple[Bound, Bound]:
        """Bounds of a term, likewise, as a pair: they are asked for more often than anything else."""
        first, *others = term.factors
        bounds, k = self.of(first), term.coefficient
        for factor in others:
            bounds = self.of(factor) * bounds
        low, high = (bounds.low, bounds.high) if k > 0 else (bounds.high, bounds.low)
        return None if low is None else low * k, None if high is None else high * k

    def _form(self, e: Expr) -> Linear:
        if e not in self._forms:
            self._forms[e] = linear_of(e)
        return self._forms[e]

    def _operands(self, e: Expr) -> Iterable[Expr]:
        """The parts whose bounds the node's bounds follow from."""
        match e:
            case _ if _is_form(e):
                return atoms_of(self._form(e))
            case Binary(_, a, b) if not e.dtype.is_float:
                return (a, b)
            case Compare() | Logical():
                return ()
            case Select(_, a, b) | IfThenElse(_, a, b):
                return (a, b)
            case Let(var, value, body):
                if value not in self._done:
                    return (value,)
                self._done.setdefault(var, self._done[value])
                return (body,)
            case Cast(_, value) | Unary(_, value) | Broadcast(value):
                return (value,)
            case Ramp(base, stride):
                return (base, stride)
            case Call("abs" | "popcount", args):
                return args
            case _:
                return ()

    def _transfer(self, e: Expr) -> Interval:
        whole = range_of(e.dtype)
        bounds = self._bounds(e)
        return bounds if bounds.within(whole.low, whole.high) else whole

    def _bounds(self, e: Expr) -> Interval:
        of = self._done
        match e:
            case Const(value=value):
                return EVERYTHING if isinstance(value, float) else Interval.exactly(int(value))
            case Dimension(low=low, high=high):
                return Interval(low, high)
            case _ if e.dtype.holds_floats:
                return EVERYTHING
            case Ramp(_, _, lanes) if is_lane_number(e):
                return Interval(0, lanes - 1)
            case _ if _is_form(e):
                return self.of_linear(self._form(e))
            case Binary(op, a, b):
                return _binary(op, of[a], of[b])
            case Unary("-", a):
                return -of[a]
            case Unary("~", a):
                return -of[a] - Interval.exactly(1)
            case Select(_, a, b) | IfThenElse(_, a, b):
                return of[a].union(of[b])
            case Let(_, _, body):
                return of[body]
            case Cast(_, value):
                return range_of(e.dtype) if value.dtype.holds_floats or e.dtype.is_bool else of[value]
            case Broadcast(value):
                return of[value]
            case Ramp(base, stride, lanes):
                return of[base] + Interval(0, lanes - 1) * of[stride]
            case Call("abs", (a,)):
                return of[a].maximum(-of[a]).maximum(Interval(0, 0))
            case Call("popcount", (a,)):
                return Interval(0, a.dtype.bits)
            case Call("dot4"):
                return Interval(4 * 255 * -128, 4 * 255 * 127)
            case _:
                return range_of(e.dtype)


def _is_form(e: Expr) -> bool:
    """Whether the node is bounded through its normal form: index arithmetic, unless it is one big atom itself."""
    return e.dtype.is_index and has_form(e)


def _binary(op: str, a: Interval, b: Interval) -> Interval:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b
        case "%":
            return a % b
        case "min":
            return a.minimum(b)
        case "max":
            return a.maximum(b)
        case "&" if a.within(0, None) or b.within(0, None):
            return Interval(0, _least(a.high if a.within(0, None) else None, b.high if b.within(0, None) else None))
        case "|" | "^" if a.within(0, None) and b.within(0, None) and a.high is not None and b.high is not None:
            return Interval(0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1)
        case ">>" if b.is_point and b.low is not None and b.low >= 0:
            return Interval(None if a.low is None else a.low >> b.low, None if a.high is None else a.high >> b.low)
        case "<<" if b.is_point and b.low is not None and 0 <= b.low < 64:
            return a.scale(1 << b.low)
        case _:
            return EVERYTHING
