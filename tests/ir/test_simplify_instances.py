"""What the simplifier does by code rather than by lines of patterns is proved on families of instances.

Normal forms, the helpers of the rules, conditions as facts, vectors: for each expression of a family, z3 proves that
what ``simplify`` gives is equal under the facts, for all values of the variables and in all lanes. The families hold
each operator over each kind of operand: sums with and without constants, multiples, products, remainders, ramps and
broadcasts, and constants of both signs, with and without common factors, which is what the code distinguishes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import z3
from z3_semantics import BITS, HALF, compare, decide, operate

from loopwright.base.dtype import BOOL, INDEX, DType, dtype
from loopwright.ir.build import index_var
from loopwright.ir.constants import const
from loopwright.ir.expr import (
    Binary,
    BinaryOp,
    Broadcast,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Let,
    Logical,
    Ramp,
    Select,
    Unary,
    Var,
)
from loopwright.ir.facts import NO_FACTS
from loopwright.ir.makers import maximum, minimum
from loopwright.ir.scalar import eval_cast
from loopwright.ir.simplify import helpers, simplify

LANES = 4
I, J, M, N, K = (index_var(name) for name in "ijmnk")
# i in [0, 32), j in [0, 4), n > 0, k in [0, n), m any integer
FACTS = NO_FACTS.with_range(I, 0, 32).with_range(J, 0, 4).with_condition(N > 0).with_range(K, 0, N)
INT8, UINT8, HALVES = dtype("int8"), dtype("uint8"), dtype("float16")


def variable(var: Var) -> Any:
    kind = var.dtype
    if kind.is_bool:
        return z3.Bool(var.name)
    if kind.is_float:
        return z3.FP(var.name, HALF)
    return z3.Int(var.name) if kind.is_index else z3.BitVec(var.name, kind.bits)


def domain(kind: DType) -> str:
    return "index" if kind.is_index else "bool" if kind.is_bool else kind.kind


def constant(value: Any, kind: DType) -> Any:
    if kind.is_bool:
        return z3.BoolVal(value)
    if kind.is_float:
        return z3.FPVal(value, HALF)
    return z3.IntVal(value) if kind.is_index else z3.BitVecVal(value, kind.bits)


class Meaning:
    """The z3 term of an expression in one lane, which is a variable. Mutable: collects what index division needs."""

    def __init__(self) -> None:
        self.premises: list[Any] = [z3.Int("lane") >= 0, z3.Int("lane") < LANES]
        self.premises += [z3.ULT(z3.BitVec("lane8", BITS), LANES)]

    def of(self, e: Expr) -> Any:
        kind = e.dtype.element
        match e:
            case Var():
                return variable(e)
            case Const(value=value):
                return constant(value, kind)
            case Broadcast(value):
                return self.of(value)
            case Ramp(base, stride):
                return self.of(base) + self.of(stride) * (z3.Int("lane") if kind.is_index else z3.BitVec("lane8", BITS))
            case Binary(op, a, b):
                x, y = self.of(a), self.of(b)
                if op in ("//", "%") and kind.is_index:
                    self.premises.append(y != 0)
                return operate(op, domain(kind), x, y)
            case Compare(op, a, b):
                return compare(op, domain(a.dtype.element), self.of(a), self.of(b))
            case Logical(op, a, b):
                return operate(op, "bool", self.of(a), self.of(b))
            case Unary("not", a):
                return z3.Not(self.of(a))
            case Unary("-", a):
                return z3.fpNeg(self.of(a)) if kind.is_float else -self.of(a)
            case Unary("~", a):
                return ~self.of(a)
            case Select(condition, a, b) | IfThenElse(condition, a, b):
                return z3.If(self.of(condition), self.of(a), self.of(b))
            case Let(var, value, body):
                return z3.substitute(self.of(body), (variable(var), self.of(value)))
            case Cast(_, a) if kind.is_data_int and a.dtype.is_data_int:
                return resized(self.of(a), a.dtype.element, kind)
            case _:
                raise AssertionError(e)


def resized(term: Any, kind: DType, to: DType) -> Any:
    if to.bits <= kind.bits:
        return z3.Extract(to.bits - 1, 0, term)
    return (z3.SignExt if kind.kind == "int" else z3.ZeroExt)(to.bits - kind.bits, term)


def known() -> list[Any]:
    i, j, n, k = (z3.Int(name) for name in "ijnk")
    return [i >= 0, i < 32, j >= 0, j < 4, n > 0, k >= 0, k < n]


PERIOD = 96
"""A multiple of all constant divisors. Where z3 cannot tell at once, it does for each rest of m."""


def assert_equal(e: Expr, divisors: Sequence[int] = ()) -> bool:
    """The simplified expression is equal; if divisors are given, for each of them as n, not for all n at once."""
    simpler = simplify(e, FACTS)
    if simpler is e:
        return False
    meaning = Meaning()
    before, after = meaning.of(e), meaning.of(simpler)
    same = before == after  # of floats: the same bits, or both NaN
    premises = [*known(), *meaning.premises]
    n, m, periods = z3.Ints("n m periods")
    for case in [n == d for d in divisors] or [z3.BoolVal(True)]:
        answer = decide([*premises, case], same, 2_000)
        if answer == z3.unknown:
            rests = [m == PERIOD * periods + rest for rest in range(PERIOD)]
            proved = all(decide([*premises, case, rest], same, 20_000) == z3.unsat for rest in rests)
        else:
            proved = answer == z3.unsat
        assert proved, f"{e}\nbecame {simpler}"
    return True


def idx(value: int) -> Expr:
    return const(value, INDEX)


def vector(value: Expr) -> Expr:
    return Broadcast(value, LANES)


RING: tuple[BinaryOp, ...] = ("+", "-", "*")
SCALARS = [M, J, idx(0), idx(1), idx(-1), idx(4), M + 2, 3 - M, M * 4 - J, M * N, -J, M % 4, minimum(M, N)]
VECTORS = [
    vector(idx(1)), vector(idx(-3)), vector(M * 4), vector(J + M), Ramp(idx(0), idx(1), LANES), Ramp(M, idx(1), LANES),
    Ramp(idx(0), J, LANES), Ramp(M + 1, J * 2, LANES), maximum(Ramp(M, idx(3), LANES), vector(N)),
]  # fmt: skip


def ring_sums() -> Iterator[Expr]:
    """Sums, differences and products of all operands, alone and under one more operator."""
    for operands in (SCALARS, VECTORS):
        pairs = [Binary(op, a, b) for op in RING for a, b in itertools.product(operands, repeat=2)]
        yield from pairs
        yield from (Binary(op, a, b) for op in RING for a, b in zip(pairs, itertools.cycle(operands[1:]), strict=False))


SUMS = [M, I, J + I * 4, M * 4 + J, M * 6 + 3, I * 16 + J - 5, M % 12, M // 3, I // 4 * 4 + J, M * 8 + M % 8, 7 - M * 4]
DIVISORS = [idx(d) for d in (1, 3, 4, 8, 12, -4)]
BY_N = [K, M * N, M * N + K, M * N + J, I * N - K, M * N * 2 + K, M * N % N]


def divisions() -> Iterator[Expr]:
    """Quotients and remainders of sums, of each other, and put together again."""
    ops: tuple[BinaryOp, ...] = ("//", "%")
    for op, x, d in itertools.product(ops, SUMS, DIVISORS):
        yield Binary(op, x, d)
        if any(d is e for e in DIVISORS[2:4]):
            yield from (Binary(other, Binary(op, x, d), e) for other in ops for e in DIVISORS[1:4])
    for x, d in itertools.product(SUMS, DIVISORS):
        yield x // d * d + x % d
        yield x // d * d * 2 + x % d * 2 + 1
        yield x - x // d * d
        yield x // d % 4 * d + x % d
    lanes = Ramp(I * 4, idx(1), LANES)
    for op, x, d in itertools.product(ops, (lanes, lanes * vector(idx(2)), Ramp(M * 8, idx(3), LANES)), DIVISORS):
        yield Binary(op, x, vector(d))


def divisions_by_n() -> Iterator[Expr]:
    for x in BY_N:
        yield from (x // N, x % N, x // N * N + x % N, (x // N) // 2, x % N + 3)


COMPARES = ("<", "<=", ">", ">=", "==", "!=")
SIDES = [I, I * 4 + J, M * 4 + 2, M * 4, M * 6 - J * 4, N, K, idx(0), idx(10), J + 1, -M, M % 4, minimum(M, N)]


def comparisons() -> Iterator[Expr]:
    """Comparisons, minima and maxima of all pairs of sums."""
    for a, b in itertools.product(SIDES, repeat=2):
        yield from (Compare(op, a, b) for op in COMPARES)
        yield from (minimum(a, b), maximum(a, b), minimum(maximum(a, b), b), maximum(minimum(a, 5), b))


CONDITIONS = [M < 5, M >= 5, M < 3, M * 2 < N, I < 40, J == 2, Var("p", BOOL), M % 4 == 0, N <= M]


def conditions() -> Iterator[Expr]:
    """Parts of conditions are facts for each other, and conditions for what they choose between."""
    for a, b in itertools.product(CONDITIONS, repeat=2):
        yield from (a & b, a | b, ~(a & b), ~(a | ~b), (a & b) | ~a, a & (b | ~a))
        for value in (minimum(M, 4), M // 4 * 4, N - M):
            yield from (IfThenElse(a, IfThenElse(b, value, I), other) for other in (value, I))
            yield from (Select(a, IfThenElse(b, value, J), J), Select(a & b, value, minimum(value, 7)))
    yield from (Let(K, value, body) for value in (idx(3), M, M + 1) for body in (K + M, K * 4 // 4, minimum(K, M)))


DATA_OPS: tuple[BinaryOp, ...] = ("+", "-", "*", "//", "%", "min", "max", "&", "|", "^", "<<", ">>")


def data_integers(kind: DType) -> Iterator[Expr]:
    """All pairs of operators over a byte and constants, among them the ends of its range."""
    x, y = Var("x", kind), Var("y", kind)
    low, high = kind.int_range() or (0, 0)
    numbers = [const(c, kind) for c in dict.fromkeys((0, 1, 2, 3, low, high, -1 if low else high - 1))]
    for first, second in itertools.product(DATA_OPS, repeat=2):
        yield Binary(second, Binary(first, x, y), x)
        for c in numbers:
            yield Binary(second, Binary(first, x, c), numbers[3])
            yield Binary(second, c, Binary(first, c, x))
    for op, c in itertools.product(COMPARES, numbers):
        yield from (Compare(op, x, c), Compare(op, c, x), Compare(op, x & c, c), Compare(op, minimum(x, c), y))
    yield from (-x - 1, ~(~x), -Unary("-", x), ~x + x, (x + y) * 3 - x * 3, -(x * 5) + x)


def floats() -> Iterator[Expr]:
    """All pairs of operators over a half and the constants that are neutral for some operator, or nearly."""
    x, y = Var("x", HALVES), Var("y", HALVES)
    numbers = [const(c, HALVES) for c in (0.0, -0.0, 1.0, -1.0)]
    ops: tuple[BinaryOp, ...] = ("+", "-", "*", "/")
    for op, c in itertools.product(ops, numbers):
        yield from (Binary(op, x, c), Binary(op, c, x), Binary(op, Binary("+", x, y), c), -Unary("-", Binary(op, x, c)))
    for op in COMPARES:
        yield from (Compare(op, x, y), ~Compare(op, x, y), Compare(op, x, x))
    yield from (Binary(op, x, x) for op in ops)


FAMILIES = {
    "sums and products": (ring_sums, 300),
    "divisions": (divisions, 300),
    "comparisons": (comparisons, 300),
    "conditions": (conditions, 300),
    "int8": (lambda: data_integers(INT8), 300),
    "uint8": (lambda: data_integers(UINT8), 300),
    "float16": (floats, 8),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_simplified_is_equal(family: str) -> None:
    instances, least = FAMILIES[family]
    assert sum(assert_equal(e) for e in instances()) >= least


def test_divisions_by_a_variable_are_equal() -> None:
    assert sum(assert_equal(e, divisors=range(1, 8)) for e in divisions_by_n()) >= 20


def test_a_wrong_result_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "simplify", lambda e, facts: e + 1 if e.dtype.is_index else e)
    with pytest.raises(AssertionError, match="became"):
        assert_equal(M + J)


WHOLE = [dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]


def test_casts_between_integers_that_are_left_out_change_nothing() -> None:
    for kind, middle, to in itertools.product(WHOLE, repeat=3):
        assert_equal(Cast(to, Cast(middle, Var("x", kind))))


KINDS = [dtype(k) for k in ("bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16")]
OTHERS = [*KINDS, *(dtype(k) for k in ("int32", "uint32", "int64", "float32", "float64"))]


def numbers_of(kind: DType) -> list[Any]:
    """All values of one byte, every 37th of two, and the ends."""
    if kind.is_float:
        bits = np.arange(0, 1 << 16, 37, dtype=np.uint16)
        with np.errstate(invalid="ignore"):
            return [x for x in bits.view(kind.to_numpy()).astype(float).tolist() if x == x]
    low, high = kind.int_range() or (0, 1)
    return [eval_cast(kind, n) for n in (*range(low, high, max(1, (high - low) // 1800)), high)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_casts_through_floats_that_are_left_out_change_nothing(kind: DType) -> None:
    x, numbers = Var("x", kind), numbers_of(kind)
    for middle, to in itertools.product(OTHERS, repeat=2):
        if helpers.passes(middle, to, x, NO_FACTS):
            wrong = [n for n in numbers if eval_cast(to, eval_cast(middle, n)) != eval_cast(to, n)]
            assert not wrong, f"{to}({middle}({kind})) of {wrong[:5]}"
