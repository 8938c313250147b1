"""Numbers that facts allow, which show at once that a form is not always >= 0.

Most of what ``Facts.nonnegative`` is asked does not hold, which a search finds out only when it has tried everything.
An example, numbers for the variables which the facts allow, ends it where the form is negative. That takes no proof
away, for an example satisfies all that the search starts from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import chain, islice
from zlib import crc32

from ..base.dataclass import dataclass
from .expr import Binary, Broadcast, Compare, Const, Expr, IfThenElse, Logical, Ramp, Select, Unary, Var
from .interval import EVERYTHING, Interval, IntervalAnalysis
from .linear import Linear, is_lane_number, lane_number
from .scalar import eval_binary, eval_compare
from .visit import walk

_TRIES = 16
_ENOUGH = 6
"""So many examples are looked for, in so many tries."""
_FEW = 2
"""Of so few that are left of those further out, others are looked for."""
_DISTANCES = (0, 1, 2, 5, 16, 31, 100, 1000)
"""How far from the end of its range a leaf is set whose range has no other end."""


def _mixed(number: int) -> int:
    """A number of 20 bits, each of which depends on all of the given one."""
    number = (number ^ number >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
    return ((number ^ number >> 12) * 0x297A2D39 & 0xFFFFFFFF) >> 12


@dataclass(slots=True, eq=False)
class Example:
    """Numbers for leaves, and the values of index expressions with them, in one lane. A leaf is what is no arithmetic.
    ``settled`` are the values that the facts speak of. Mutable: it remembers values, and chooses the number of a leaf
    when it is first asked for, which does not depend on what it was asked before."""

    number: int
    ranges: Mapping[Expr, Interval]
    settled: Mapping[Expr, int]
    values: dict[Expr, int] = field(init=False)

    def __post_init__(self) -> None:
        self.values = dict(self.settled)

    def settle(self) -> None:
        """Let the values found so far be those that the facts speak of."""
        self.settled = self.values.copy()

    def of_linear(self, form: Linear) -> int:
        """The value of a normal form; ``ZeroDivisionError`` where it has none."""
        total = form.constant
        for term in form.terms.values():
            product = term.coefficient
            for factor in term.factors:
                product *= self.of(factor)
            total += product
        return total

    def of(self, e: Expr) -> int:
        """The value of an index expression; ``ZeroDivisionError`` where it has none."""
        found = self.values.get(e)
        if found is None:
            found = self.values[e] = self._computed(e)
        return found

    def choose(self, leaf: Expr, within: Interval) -> int:
        """Set a leaf to an end of an interval, or to a number near it: to another one in each example."""
        name = leaf.name if isinstance(leaf, Var) else ""
        draw = _mixed(crc32(name.encode()) + self.number)
        low, high = within.low, within.high
        distance = _DISTANCES[draw % len(_DISTANCES)]
        if low is not None and high is not None:
            value = (low, high, high, min(low + distance, high))[draw // len(_DISTANCES) % 4]
        elif low is not None:
            value = low + distance
        else:
            value = distance if high is None else high - distance
        self.values[leaf] = value
        return value

    def range_of(self, leaf: Expr) -> Interval:
        """The interval that a leaf lies in."""
        if type(leaf) is Var:
            return self.ranges.get(leaf, EVERYTHING)
        return IntervalAnalysis(self.ranges).of(leaf)

    def _computed(self, e: Expr) -> int:
        match e:
            case Const(value=int() as value):
                return value
            case _ if not e.dtype.is_index:
                pass
            case Binary(op, a, b):
                return int(eval_binary(op, e.dtype.element, self.of(a), self.of(b)))
            case Unary("-", a):
                return -self.of(a)
            case Broadcast(a):
                return self.of(a)
            case Ramp(base, stride, lanes) if not is_lane_number(e):
                return self.of(base) + self.of(stride) * self.of(lane_number(e.dtype.element, lanes))
            case Select(condition, a, b) | IfThenElse(condition, a, b):
                return self.of(a if self._holds(condition) else b)
        return self.choose(e, self.range_of(e))

    def _holds(self, condition: Expr) -> bool:
        match condition:
            case Compare(op, a, b) if a.dtype.is_index:
                return eval_compare(op, self.of(a), self.of(b))
            case Logical("and", a, b):
                return self._holds(a) and self._holds(b)
            case Logical("or", a, b):
                return self._holds(a) or self._holds(b)
            case Unary("not", a):
                return not self._holds(a)
        return self.of(condition) % 2 == 1


@dataclass(slots=True, eq=False)
class Examples:
    """A few examples in which each expression lies in its range, and each form of ``bounds`` is >= 0; fewer, or none,
    where they are not found quickly. Mutable: they are looked for when something is to be refuted, among those of
    ``outer`` first, which knows less."""

    ranges: Mapping[Expr, Interval]
    bounds: tuple[Linear, ...]
    outer: Examples | None
    found: Sequence[Example] | None = None

    def refute(self, form: Linear) -> bool:
        """Whether the form is negative in one of the examples."""
        return any(_is_negative(form, example) for example in self.known())

    def known(self) -> Sequence[Example]:
        """The examples, which are looked for the first time: those of facts further out before those inside."""
        missing: list[Examples] = []
        examples: Examples | None = self
        while examples is not None and examples.found is None:
            missing.append(examples)
            examples = examples.outer
        for examples in reversed(missing):
            examples.found = examples.looked_for()
        return self.found or ()

    def looked_for(self) -> Sequence[Example]:
        """The examples of ``outer`` that hold here too; where they have become few, others that do."""
        if self.outer is None or self.outer.found is None:
            return self._new()
        left = self._inherited(self.outer, self.outer.found)
        if len(left) > _FEW or len(left) == len(self.outer.found):
            return left
        return max(left, self._new(), key=len)

    def _new(self) -> list[Example]:
        tried = (Example(number, self.ranges, {}) for number in range(_TRIES))
        limits = _limits(self.ranges, self.bounds)
        return list(islice((e for e in tried if _is_allowed(e, self.ranges, self.bounds, limits)), _ENOUGH))

    def _inherited(self, outer: Examples, known: Sequence[Example]) -> Sequence[Example]:
        """The examples of ``outer`` that allow what has been added to it."""
        ranges = {e: within for e, within in self.ranges.items() if outer.ranges.get(e) is not within}
        bounds = self.bounds[len(outer.bounds) :]
        if not ranges and not bounds:
            return known
        limits = _limits(ranges, bounds)
        copies = (Example(e.number, self.ranges, e.settled) for e in known)
        return [e for e in copies if _is_allowed(e, ranges, bounds, limits)]


def _is_negative(form: Linear, example: Example) -> bool:
    try:
        return example.of_linear(form) < 0
    except ZeroDivisionError:
        return False


@dataclass(frozen=True, slots=True, eq=False)
class _Limit:
    """A bound on a variable by others, ``coefficient * variable + rest >= 0``."""

    coefficient: int
    rest: Linear

    def narrow(self, within: Interval, example: Example) -> Interval:
        """What it leaves of an interval, with the numbers of the others; an empty one may have its ends reversed."""
        rest, low, high = example.of_linear(self.rest), within.low, within.high
        if self.coefficient > 0:
            least = -(rest // self.coefficient)
            return Interval(least if low is None else max(low, least), high)
        most = rest // -self.coefficient
        return Interval(low, most if high is None else min(high, most))


def _is_allowed(
    example: Example,
    ranges: Mapping[Expr, Interval],
    bounds: Sequence[Linear],
    limits: Mapping[Var, Sequence[_Limit]],
) -> bool:
    """Choose the number of each variable within what those before it leave, and say whether all holds then."""
    try:
        for var, by_others in limits.items():
            if var in example.values:
                continue
            within = example.range_of(var)
            for limit in by_others:
                within = limit.narrow(within, example)
            if within.low is not None and within.high is not None and within.low > within.high:
                return False
            example.choose(var, within)
        allowed = all(example.of_linear(form) >= 0 for form in bounds) and all(
            Interval.exactly(example.of(e)).within(within.low, within.high) for e, within in ranges.items()
        )
    except ZeroDivisionError:
        return False
    example.settle()
    return allowed


def _limits(ranges: Mapping[Expr, Interval], bounds: Sequence[Linear]) -> dict[Var, list[_Limit]]:
    """The variables of ranges and bounds, in the order in which they became known, and what bounds each by those before
    it."""
    variables = [_variables(form) for form in bounds]
    order = dict.fromkeys([*(e for e in ranges if isinstance(e, Var)), *chain.from_iterable(variables)])
    position_of = {var: position for position, var in enumerate(order)}
    limits: dict[Var, list[_Limit]] = {var: [] for var in order}
    for form, inside in zip(bounds, variables, strict=True):
        last = max(inside, key=position_of.__getitem__, default=None)
        if last is None or (last,) not in form.terms or sum(var is last for var in inside) > 1:
            continue
        rest = Linear(form.kind, form.terms.copy(), form.constant)
        limits[last].append(_Limit(rest.terms.pop((last,)).coefficient, rest))
    return limits


def _variables(form: Linear) -> list[Var]:
    """The variables in a form, each as often as there are factors that have it."""
    nodes = (node for factors in form.terms for factor in factors for node in walk(factor))
    return [node for node in nodes if isinstance(node, Var)]
