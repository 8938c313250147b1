"""What the emitter can prove about index expressions: sign, divisibility, and the ramp that a vector index is.

Cheap local reasoning for cheaper instructions and alignment; the simplifier has done the real work before.
"""

from __future__ import annotations

import math
import operator

from ..base.dataclass import dataclass
from ..ir.buffer import Buffer
from ..ir.build import buffer_strides
from ..ir.constants import ZERO, const_int
from ..ir.expr import Binary, Broadcast, Cast, Compare, Const, Expr, Ramp, Select, Var
from ..ir.makers import broadcast_to


@dataclass(frozen=True, slots=True)
class VarFacts:
    """What is known of a variable: its sign, and a number that divides it (0 for the variable that is 0)."""

    non_negative: bool = False
    multiple: int = 1


NOTHING = VarFacts()


def merge_facts(several: list[VarFacts]) -> VarFacts:
    """What holds in all of these cases, of which there is at least one."""
    return VarFacts(all(f.non_negative for f in several), math.gcd(*(f.multiple for f in several)))


@dataclass(frozen=True, slots=True)
class Division:
    """What is known of ``a // b``: the divisor, if constant in all lanes, and the signs."""

    divisor: int | None
    a_non_negative: bool
    b_non_negative: bool


class IndexFacts:
    """Known signs and divisors of index variables, filled as the emitter enters their scopes."""

    def __init__(self) -> None:
        self._known: dict[Var, VarFacts] = {}

    def learn(self, var: Var, facts: VarFacts) -> None:
        """State what holds of a variable from here on; copies of a loop may bind one variable to other values."""
        self._known[var] = facts

    def of(self, value: Expr) -> VarFacts:
        """What is known of an index; nothing of other dtypes."""
        if not value.dtype.is_index:
            return NOTHING
        return VarFacts(self.non_negative(value), self.multiple(value))

    def non_negative(self, value: Expr) -> bool:
        """Whether the integer (or every lane of it) is provably at least 0."""
        if value.dtype.kind in ("uint", "bool"):
            return True
        match value:
            case Const(value=number):
                return number >= 0
            case Var():
                return self._known.get(value, NOTHING).non_negative
            case Broadcast(inner, _):
                return self.non_negative(inner)
            case Ramp(base, stride, _):
                return value.dtype.is_index and self.non_negative(base) and self.non_negative(stride)
            case Binary("+" | "*", a, b):
                return value.dtype.is_index and self.non_negative(a) and self.non_negative(b)
            case Binary("//" | "min", a, b):
                return self.non_negative(a) and self.non_negative(b)
            case Binary("max", a, b):
                return self.non_negative(a) or self.non_negative(b)
            case Binary("%", _, b):
                return self.non_negative(b)
            case Select(_, a, b):
                return self.non_negative(a) and self.non_negative(b)
            case Cast(_, inner):
                return value.dtype.is_index and inner.dtype.kind in ("uint", "bool") and inner.dtype.bits < 64
            case _:
                return False

    def multiple(self, value: Expr) -> int:
        """A number that divides the index; 0 if it is 0."""
        match value:
            case Const():
                return abs(int(value))
            case Var():
                return self._known.get(value, NOTHING).multiple
            case Broadcast(inner, _):
                return self.multiple(inner)
            case Binary("+" | "-" | "%" | "min" | "max", a, b):
                return math.gcd(self.multiple(a), self.multiple(b))
            case Binary("*", a, b):
                return self.multiple(a) * self.multiple(b)
            case Binary("//", a, Const(value=divisor)) if divisor and self.multiple(a) % divisor == 0:
                return self.multiple(a) // int(divisor)
            case Select(_, a, b):
                return math.gcd(self.multiple(a), self.multiple(b))
            case _:
                return 1


def add(a: Expr, b: Expr) -> Expr:
    """The sum of two scalar indices; zeros are dropped."""
    if const_int(a) == 0:
        return b
    return a if const_int(b) == 0 else Binary("+", a, b)


def multiply(a: Expr, b: Expr) -> Expr:
    """The product of two scalar indices; zeros and ones are folded."""
    if const_int(a) == 0 or const_int(b) == 0:
        return ZERO
    if const_int(a) == 1:
        return b
    return a if const_int(b) == 1 else Binary("*", a, b)


def as_ramp(value: Expr) -> tuple[Expr, Expr] | None:
    """``(base, stride)`` with ``value[lane] = base + lane * stride``, or None. A scalar has stride 0."""
    match value:
        case _ if value.dtype.lanes == 1:
            return value, ZERO
        case Ramp(base, stride, _):
            return base, stride
        case Broadcast(inner, _):
            return inner, ZERO
        case Binary("+" | "-" as op, a, b):
            left, right = as_ramp(a), as_ramp(b)
            if left is None or right is None:
                return None
            if op == "+":
                return add(left[0], right[0]), add(left[1], right[1])
            return Binary("-", left[0], right[0]), _difference(left[1], right[1])
        case Binary("*", a, Broadcast(factor, _)) | Binary("*", Broadcast(factor, _), a):
            ramp = as_ramp(a)
            return None if ramp is None else (multiply(ramp[0], factor), multiply(ramp[1], factor))
        case _:
            return None


def lane_offsets(value: Expr) -> tuple[Expr, tuple[int, ...]] | None:
    """``(base, offsets)`` with ``value[lane] = base + offsets[lane]``, or None."""
    match value:
        case Broadcast(inner, lanes):
            return inner, (0,) * lanes
        case Ramp(base, stride, lanes):
            step = const_int(stride)
            return None if step is None else (base, tuple(step * lane for lane in range(lanes)))
        case Binary("+", a, b):
            left, right = lane_offsets(a), lane_offsets(b)
            if left is None or right is None:
                return None
            return add(left[0], right[0]), tuple(map(operator.add, left[1], right[1]))
        case Binary("*", a, Broadcast(by, _)):
            near, factor = lane_offsets(a), const_int(by)
            if near is None or factor is None:
                return None
            return multiply(near[0], by), tuple(factor * offset for offset in near[1])
        case Binary("//" | "%" as op, a, Broadcast(by, _)):
            near, divisor = lane_offsets(a), const_int(by)
            start = None if near is None else const_int(near[0])
            if near is None or start is None or not divisor:
                return None
            apply = operator.floordiv if op == "//" else operator.mod
            return ZERO, tuple(apply(start + offset, divisor) for offset in near[1])
        case _:
            return None


_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def known_lanes(condition: Expr) -> tuple[bool, ...] | None:
    """The lanes in which a comparison holds, if that can be told."""
    if not isinstance(condition, Compare) or condition.op not in _COMPARISONS or not condition.a.dtype.is_index:
        return None
    left, right = lane_offsets(condition.a), lane_offsets(condition.b)
    if left is None or right is None:
        return None
    start, other = const_int(left[0]), const_int(right[0])
    if start is None or other is None:
        return None
    compare = _COMPARISONS[condition.op]
    return tuple(compare(start + a, other + b) for a, b in zip(left[1], right[1], strict=True))


def _difference(a: Expr, b: Expr) -> Expr:
    left, right = const_int(a), const_int(b)
    if left is not None and right is not None:
        return Const(left - right, a.dtype)
    return a if right == 0 else Binary("-", a, b)


def flat_index(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The position of an access from ``buffer.data``, in elements of the buffer's dtype."""
    if len(indices) == 1 and buffer.strides is None and const_int(buffer.elem_offset) == 0:
        return indices[0]
    lanes = max((i.dtype.lanes for i in indices), default=1)
    total: Expr = buffer.elem_offset
    vector: Expr | None = None
    for index, stride in zip(indices, buffer_strides(buffer), strict=True):
        if index.dtype.lanes == 1:
            total = add(total, multiply(index, stride))
        else:
            term = index if const_int(stride) == 1 else Binary("*", index, Broadcast(stride, lanes))
            vector = term if vector is None else Binary("+", vector, term)
    if vector is None:
        return total
    return vector if const_int(total) == 0 else Binary("+", broadcast_to(total, lanes), vector)
