"""What the simplifier makes of expressions and statements, as tables: expression, what it prints as afterwards.

That values are kept is the business of the fuzz test and of the proofs; here stand the results one relies on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

import pytest

from loopwright.base.dtype import FLOAT32, INDEX, INT8, INT32, UINT8, dtype
from loopwright.base.timing import TimedStage
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import FALSE, TRUE, const
from loopwright.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Let,
    Load,
    Ramp,
    Select,
    Unary,
    Var,
)
from loopwright.ir.facts import NO_FACTS, prove
from loopwright.ir.makers import cast, logical_and, maximum, minimum
from loopwright.ir.simplify import FunctionSimplifier, simplify, simplify_func
from loopwright.ir.stmt import Allocate, Assert, Evaluate, For, If, LetStmt, PrimFunc, Seq, Stmt, Store, While, seq

I, J, K, IO, II = (index_var(name) for name in ("i", "j", "k", "io", "ii"))
M, N = index_var("m"), index_var("n")
X, Y = Var("x", INT32), Var("y", INT32)
U = Var("u", UINT8)
F, G = Var("f", FLOAT32), Var("g", FLOAT32)
P, Q = Var("p", dtype("bool")), Var("q", dtype("bool"))
A = make_buffer("A", (N,), "float32")
B = make_buffer("B", (N,), "int32")

# i in [0, 32), j in [0, 16), k in [0, n), io in [0, ceil(n / 16)), ii in [0, 16)
FACTS = (
    NO_FACTS.with_range(I, 0, 32).with_range(J, 0, 16).with_range(K, 0, N).with_range(IO, 0, (N + 15) // 16)
).with_range(II, 0, 16)


def idx(value: int) -> Expr:
    return const(value, INDEX)


def f32(value: float) -> Expr:
    return const(value, FLOAT32)


def vec(value: Expr, lanes: int = 16) -> Expr:
    return Broadcast(value, lanes)


SUMS = [
    (3 + J + I * 16, "j + i * 16 + 3"),
    (I * 16 + J + 3, "i * 16 + j + 3"),
    (I * 2 + J - I * 2, "j"),
    (I - I, "0"),
    (-I + N, "n - i"),
    (idx(3) - I - J, "3 - i - j"),
    (-I - 3, "-i - 3"),
    ((I + 1) * 4 * N, "i * n * 4 + n * 4"),
    ((I + 1) * N - N, "i * n"),
    (-(I - J), "j - i"),
    ((I + M) * (J + N) - (I + M) * (J + N), "0"),
    ((I + M) * (J + N) * 4 * K - (I + M) * K * (J + N) * 3, "k * (i + m) * (j + n)"),
    (M // 4 * 4 + M % 4, "m"),
    (M // 4 * 8 + M % 4 * 2, "m * 2"),
    (M // N * N + M % N, "m"),
    (M - M // 4 * 4, "m % 4"),
    (M // 4 % 8 * 4 + M % 4, "m % 32"),
    (M // 12 * 12 + M // 4 % 3 * 4 + M % 4, "m"),
    (X + 1 + 2, "x + int32(3)"),
    (X - X, "int32(0)"),
    (X * 2 + X, "x * int32(3)"),
    ((X + Y) * 3, "(x + y) * int32(3)"),
    (U - 5 + 5, "u"),
    (U + 200, "u - uint8(56)"),
]

DIVISIONS = [
    ((I * 16 + J) // 16, "i"),
    ((I * 16 + J) % 16, "j"),
    ((I * 16 + J) // 4, "i * 4 + j // 4"),
    ((I * 4 + J % 4) // 8, "i // 2"),
    ((I * 4 + J % 4) % 8, "i % 2 * 4 + j % 4"),
    ((M + 5) // 4, "(m + 1) // 4 + 1"),
    ((M - 1) // 16, "(m + 15) // 16 - 1"),
    ((M + 5) % 4, "(m + 1) % 4"),
    (M // 4 // 8, "m // 32"),
    (((M + 15) // 16 + 3) // 4, "(m + 63) // 64"),
    (M % 12 // 4, "m // 4 % 3"),
    (M % 12 % 4, "m % 4"),
    (M // 1, "m"),
    (M % 1, "0"),
    (M // M, "1"),
    (M // -4, "-m // 4"),
    ((M * N + K) // N, "m"),
    ((M * N + K) % N, "k"),
    ((M * N + J) // N, "m + j // n"),
    (K // N, "0"),
    (K % N, "k"),
    (idx(-7) // 2, "-4"),
    (idx(7) // 0, "7 // 0"),
    (U // 0, "uint8(0)"),
    (X // X, "x // x"),
    (U % 0, "uint8(0)"),
    (cast(UINT8, 5) // 2, "uint8(2)"),
    (U // 4 // 8, "u // uint8(32)"),
    (U // 32 // 32, "uint8(0)"),
    (X // 65536 // 65536, "x // int32(65536) // int32(65536)"),
]

MINIMA = [
    (minimum(I, 40), "i"),
    (minimum(I, I + 1), "i"),
    (maximum(I, -1), "i"),
    (minimum(5, M), "min(m, 5)"),
    (minimum(minimum(M, 9), 5), "min(m, 5)"),
    (minimum(I * 16 + M, I * 16 + 3), "i * 16 + min(m, 3)"),
    (minimum(minimum(M, N), N), "min(m, n)"),
    (maximum(minimum(M, N), M), "m"),
    (minimum(K, N), "k"),
    (maximum(U, 0), "u"),
    (minimum(F, F), "f"),
    (maximum(F, G), "max(f, g)"),
]

CONDITIONS = [
    (I * 16 + J < 512, "True"),
    (I * 16 + J >= 512, "False"),
    (K < N, "True"),
    (K + 1 <= N, "True"),
    (N >= 1, "True"),
    (IO * 16 < N, "True"),
    (IO * 16 + II < N, "io * 16 + ii < n"),
    (minimum(M, N) <= N, "True"),
    (maximum(M, N) < N, "False"),
    (idx(0) < M, "m > 0"),
    (M * 2 < N * 2, "m < n"),
    (M * 4 < 10, "m < 3"),
    (M * 4 <= 10, "m <= 2"),
    (M * 4 > 10, "m > 2"),
    (M * 4 >= 10, "m >= 3"),
    (M * 4 == 10, "False"),
    (M * 4 != 10, "True"),
    (M + J < J + N, "m < n"),
    (M - N < 0, "m < n"),
    (~(M < N), "m >= n"),
    (~(F < G), "not f < g"),
    (~(F == G), "f != g"),
    ((M < N) & (M < N + 1), "m < n"),
    ((M < 5) & (M < 3), "m < 3"),
    ((M < 5) | (M < 3), "m < 5"),
    ((M < 3) & (M > 5), "False"),
    ((M < 3) | (M >= 3), "True"),
    (P & ~P, "False"),
    (P | Q | P, "p or q"),
    (~(P & Q), "not p or not q"),
    (Compare("==", P, P), "True"),
    (Compare("!=", P, P), "False"),
    *((Compare("==", *sides), "p") for sides in ((P, TRUE), (TRUE, P))),
    *((Compare("==", *sides), "not p") for sides in ((P, FALSE), (FALSE, P))),
    *((Compare("!=", *sides), "p") for sides in ((P, FALSE), (FALSE, P))),
    *((Compare("!=", *sides), "not p") for sides in ((P, TRUE), (TRUE, P))),
    (Compare("==", P, Q), "p == q"),
    (U < 256 - 1, "u < uint8(255)"),
    (U >= 0, "True"),
    (F <= F, "f <= f"),
    (F - F == 0.0, "f - f == 0.0"),
]

CHOICES = [
    (Select(M < N, TRUE, FALSE), "m < n"),
    (Select(P, M, M), "m"),
    (Select(~P, M, N), "select(p, n, m)"),
    (Select(I < 40, M, N), "m"),
    (Select(M < 5, minimum(M, 7), 0 * N), "select(m < 5, m, 0)"),
    (Select(P, Select(P, M, N), N), "select(p, m, n)"),
    (IfThenElse(K < N, Load(A, (K,)), f32(0)), "A[k]"),
    (IfThenElse(M < 9, IfThenElse(M < 5, Load(A, (M,)), f32(0)), f32(0)), "if_then_else(m < 5, A[m], 0.0)"),
    (
        IfThenElse(M < 9, IfThenElse(Load(A, (M,)) < 5.0, f32(1), f32(0)), f32(0)),
        "if_then_else(m < 9, if_then_else(A[m] < 5.0, 1.0, 0.0), 0.0)",
    ),
    (IfThenElse(M < N, Load(A, (minimum(M, N - 1),)), f32(0)), "if_then_else(m < n, A[m], 0.0)"),
    # Select reads on both sides, so what the condition says must not remove the guard in the index.
    (Select(M < N, Load(A, (minimum(M, N - 1),)), f32(0)), "select(m < n, A[min(m, n - 1)], 0.0)"),
]

FLOATS = [
    (F * 1.0, "f"),
    (F / 1.0, "f"),
    (F - 0.0, "f"),
    (F + f32(-0.0), "f"),
    (F + 0.0, "f + 0.0"),
    (F * 0.0, "f * 0.0"),
    (F - F, "f - f"),
    (f32(1.5) + f32(2), "3.5"),
    (-(Unary("-", F)), "f"),
    ((F + 1.0) + 2.0, "f + 1.0 + 2.0"),
]

CASTS = [
    (Cast(INT32, Cast(INDEX, X)), "x"),
    (Cast(INT8, Cast(INT32, U)), "int8(u)"),
    (Cast(INT32, Cast(UINT8, X)), "int32(uint8(x))"),
    (Cast(INDEX, Cast(INT32, I)), "i"),
    (Cast(INDEX, Cast(INT32, M)), "index(int32(m))"),
    (Cast(FLOAT32, Cast(dtype("float64"), F)), "f"),
    (Cast(INT8, Cast(FLOAT32, X)), "int8(float32(x))"),
    (Cast(INT8, f32(300.5)), "int8(127)"),
    (Let(K, idx(3), K + M), "m + 3"),
]

LANES = maximum(Ramp(M, idx(3), 16), vec(N))
"""A vector that is no ramp: no product with it can be multiplied out into one."""

VECTORS = [
    (Ramp(M, idx(1), 16) + vec(N), "ramp(m + n, 1, 16)"),
    (Ramp(M, idx(1), 16) * vec(idx(4)), "ramp(m * 4, 4, 16)"),
    (Ramp(M, idx(1), 16) - Ramp(N, idx(1), 16), "broadcast(m - n, 16)"),
    (vec(M) // vec(idx(4)), "broadcast(m // 4, 16)"),
    (Ramp(M * 16, idx(1), 16) // vec(idx(16)), "broadcast(m, 16)"),
    (Ramp(M * 16, idx(1), 16) % vec(idx(16)), "ramp(0, 1, 16)"),
    (Ramp(I * 16, idx(1), 16) < vec(idx(512)), "broadcast(True, 16)"),
    (Ramp(I * 16, idx(1), 16) < vec(N), "ramp(i * 16, 1, 16) < broadcast(n, 16)"),
    (Ramp(M, idx(0), 16), "broadcast(m, 16)"),
    (vec(K * 4) * Ramp(idx(0), idx(1), 16) * LANES, f"ramp(0, 1, 16) * {LANES} * broadcast(k * 4, 16)"),
    (Ramp(idx(0), K * 4, 16) * LANES, f"ramp(0, 1, 16) * {LANES} * broadcast(k * 4, 16)"),
    (vec(K) * Ramp(M, N, 16) * LANES * vec(idx(4)), f"{LANES} * ramp(m, n, 16) * broadcast(k * 4, 16)"),
    ((LANES + vec(N)) * Ramp(idx(0), K, 16), f"{LANES} * ramp(0, 1, 16) * broadcast(k, 16) + ramp(0, n * k, 16)"),
    (vec(F) * vec(G) + vec(f32(0.0)), "broadcast(f * g + 0.0, 16)"),
    (Load(A, (vec(M),)), "broadcast(A[m], 16)"),
    (Load(A, (Ramp(M, idx(1), 16),), vec(TRUE)), "A[ramp(m, 1, 16)]"),
    (Select(vec(P), Ramp(M, idx(1), 16), vec(N)), "select(p, ramp(m, 1, 16), broadcast(n, 16))"),
]

TABLE = [*SUMS, *DIVISIONS, *MINIMA, *CONDITIONS, *CHOICES, *FLOATS, *CASTS, *VECTORS]


@pytest.mark.parametrize(("e", "expected"), TABLE, ids=[str(e) for e, _ in TABLE])
def test_expression_becomes(e: Expr, expected: str) -> None:
    simpler = simplify(e, FACTS)
    assert str(simpler) == expected
    assert simplify(simpler, FACTS) is simpler


def test_unchanged_expressions_come_back_as_they_are() -> None:
    e = Load(A, (minimum(M * 16 + N, 5),)) * F
    assert simplify(e) is e


def test_facts_may_come_from_conditions() -> None:
    facts = NO_FACTS.with_condition((M % 16).as_expr() == 0).with_condition((M >= 1) & P)
    assert str(simplify((M * 3 + 5) % 16, facts)) == "5"
    assert str(simplify(M // 16 * 16, facts)) == "m"
    assert simplify(P, facts) is TRUE
    assert prove(M > 0, facts)
    assert not prove(M > 1, facts)


def test_what_is_not_known_is_not_proved() -> None:
    facts = NO_FACTS.with_range(IO, 0, (N + 15) // 16).with_range(II, 0, 16)
    assert not prove(IO * 16 + II < N, facts)
    assert prove(IO * 16 + II < N + 15, facts)
    assert prove(IO * 16 + II < (N + 15) // 16 * 16, facts)


def test_a_loop_that_goes_on_behind_another_one_begins_where_that_ends():
    """It runs only where its end is greater, and then the other one's end is not what both have in common."""
    begin, found = minimum(N, 32), NO_FACTS.with_condition(N >= 0)
    for end in (const(32, INDEX), minimum(N + 5, 32)):
        facts = found.with_range(I, begin, end - begin)
        assert prove(I >= N, facts)
        assert not prove(I > N, facts)
    assert not prove(I >= N, found.with_range(I, begin, 40 - begin)), "it may begin at 32, and go on"


def test_quotients_are_whole_numbers() -> None:
    i = index_var("i")
    facts = NO_FACTS.with_range(i, 0, N * 6)
    assert prove(i // 6 < N, facts)
    assert prove(i // 2 // 3 + 1 <= N, facts)
    assert prove(i // 4 * 2 < N * 3, facts)
    assert not prove(i // 6 < N - 1, facts)
    assert not prove(i // 5 < N, facts)
    assert not prove(i // 4 * 2 < N * 3 - 1, facts)


def test_a_loop_over_a_product_knows_the_factors_to_be_positive() -> None:
    i = index_var("i")
    tiles = (N + 15) // 16
    facts = NO_FACTS.with_condition((M >= 0) & (N >= 0)).with_range(i, 0, M * tiles * 2)
    assert prove(M > 0, facts)
    assert prove(tiles > 0, facts)
    assert prove(i // tiles // 2 < M, facts)
    assert prove(i // tiles >= 0, facts)
    assert prove(i % tiles < tiles, facts)
    assert not prove(i // tiles < M, facts)
    assert not prove(i // tiles // 2 < M - 1, facts)
    assert not prove(i // M < M, facts)
    unsigned = NO_FACTS.with_range(i, 0, M * N)  # both may be negative
    assert not prove(M > 0, unsigned)


@pytest.mark.parametrize("period", [N, M * N, (M + 3) // 4], ids=str)
def test_a_loop_over_some_periods_knows_the_number_of_each(period: Expr) -> None:
    """As a product's tasks are chunks of panels times blocks of an open number of rows."""
    facts = NO_FACTS.with_condition((M >= 0) & (N >= 0)).with_range(I, 0, period * 8).with_range(J, 0, 4)
    assert prove(I // period >= 0, facts)
    assert prove(I // period < 8, facts)
    assert prove(I // period * 4 + J < 32, facts)
    assert not prove(I // period < 7, facts)
    assert not prove(I // period * 4 + J < 31, facts)
    late = NO_FACTS.with_condition((M >= 0) & (N >= 0)).with_range(I, 1, period * 8)
    assert not prove(I // period < 8, late)


@pytest.mark.parametrize("count", [N, N * 7, M * N], ids=str)
def test_a_loop_over_tiles_that_runs_knows_that_there_is_something(count: Expr) -> None:
    facts = NO_FACTS.with_condition((M >= 0) & (N >= 0)).with_range(I, 0, (count + 12) // 13).with_range(J, 0, 13)
    assert prove(count >= 1, facts)
    assert prove(minimum(I * 13 + J, count - 1) >= 0, facts)
    assert not prove(N >= 2, facts)


def test_symbolic_strides_stay_within_their_array() -> None:
    i, j = index_var("i"), index_var("j")
    facts = NO_FACTS.with_range(i, 0, M).with_range(j, 0, N)
    assert prove(i * N + j < M * N, facts)
    assert prove(i * N + j >= 0, facts)
    assert not prove(i * N + j < M * N - 1, facts)


# Statements.


def text(stmt: Stmt) -> str:
    simpler = simplify(stmt)
    assert simplify(simpler) is simpler
    return str(simpler)


def store(index: Expr, value: Expr | None = None) -> Stmt:
    return Store(A, (index,), f32(1.0) if value is None else value)


def loop(var: Var, extent: Expr | int, body: Stmt) -> Stmt:
    return For(var, idx(0), idx(extent) if isinstance(extent, int) else extent, "serial", body)


def test_loop_ranges_decide_conditions() -> None:
    body = If(IO * 16 + II < 64, store((IO * 16 + II) // 16))
    assert text(loop(IO, 4, loop(II, 16, body))) == (
        "for io in range(4):\n    for ii in range(16):\n        A[io] = 1.0"
    )


def test_loops_of_one_iteration_are_replaced_by_it() -> None:
    assert text(For(I, N, idx(1), "serial", store(I + 1))) == "A[n + 1] = 1.0"


def test_loops_of_no_iteration_disappear() -> None:
    assert text(seq(loop(I, 0, store(I)), store(N), loop(J, idx(-3), store(J)))) == "A[n] = 1.0"


def test_conditions_hold_in_their_branches() -> None:
    stmt = If(M < 5, store(minimum(M, 7)), If(M >= 5, store(M), store(N)))
    assert text(stmt) == "if m < 5:\n    A[m] = 1.0\nelse:\n    A[m] = 1.0"


def test_conditions_on_memory_are_no_facts_for_statements() -> None:
    condition = Load(B, (idx(0),)) > 0
    stmt = If(condition, seq(Store(B, (idx(0),), const(-1, INT32)), If(condition, store(N))))
    assert simplify(stmt) is stmt


def test_assertions_hold_from_there_on() -> None:
    stmt = seq(store(minimum(N, 4)), Assert(N < 4, "too long"), store(minimum(N, 4)))
    assert text(stmt) == "A[min(n, 4)] = 1.0\nassert n < 4, 'too long'\nA[n] = 1.0"


def test_assertions_hold_after_the_sequence_they_stand_in() -> None:
    stmt = Seq((Seq((Assert(N < 4, "too long"), store(N))), store(minimum(N, 4))))
    assert text(stmt) == "assert n < 4, 'too long'\nA[n] = 1.0\nA[n] = 1.0"


def test_dead_and_nested_statements_are_cleared() -> None:
    stmt = Seq((Seq((store(N), Evaluate(idx(0)))), If(N < N, store(N)), Assert(TRUE, ""), LetStmt(K, N, store(K + 1))))
    assert text(stmt) == "A[n] = 1.0\nA[n + 1] = 1.0"
    assert text(While(FALSE, store(N))) == "pass"


def test_masks_that_are_constant_go() -> None:
    lanes = Ramp(I * 16, idx(1), 16)
    body = Store(A, (lanes,), Load(A, (lanes,), lanes < vec(idx(64))), lanes < vec(idx(64)))
    assert text(loop(I, 4, body)) == "for i in range(4):\n    A[ramp(i * 16, 1, 16)] = A[ramp(i * 16, 1, 16)]"


def test_shapes_of_local_buffers_lose_the_loop_variables_too() -> None:
    local = make_buffer("local", (minimum(4, N - I * 4),), "float32", "local")
    stmt = For(I, idx(2), idx(1), "serial", Allocate(local, Store(local, (I,), f32(0.0))))
    assert "i" not in str(simplify(stmt)).replace("min", "").replace("float32", "").replace("with", "").split()
    assert "local: float32[min(n - 8, 4)]" in str(simplify(stmt))


def test_a_function_that_is_simple_stays_the_same_object() -> None:
    func = PrimFunc("f", (A,), loop(I, N, store(I)), (A,))
    assert simplify_func(func) is func


# What is remembered.


def visits(run: Callable[[], object]) -> int:
    with TimedStage("test") as stage:
        run()
    return stage.timing.visits


def test_what_is_simplified_is_known_to_the_next_run_over_a_changed_function() -> None:
    simplify_again = FunctionSimplifier()
    func = simplify_again(PrimFunc("f", (A,), loop(I, N, store((I * 4 + I * 2) // 2)), (A,)))
    assert str(func) == str(simplify_func(func))
    changed = replace(func, body=seq(func.body, loop(J, N, store(J + J))))
    known, anew = visits(lambda: simplify_again(changed)), visits(lambda: simplify_func(changed))
    assert known < anew
    assert str(simplify_again(changed)) == str(simplify_func(changed))


def test_loads_follow_a_buffer_that_becomes_simpler_in_a_later_run() -> None:
    simplify_again = FunctionSimplifier()
    local = make_buffer("local", (idx(4),), "float32", "local")
    body = seq(Store(local, (idx(0),), f32(0.0)), Store(A, (I,), Load(local, (idx(0),))))
    plain = PrimFunc("f", (A,), loop(I, N, Allocate(local, body)), (A,))
    assert simplify_again(plain) is plain
    wider = replace(local, shape=(idx(4) + idx(4),))
    moved = PrimFunc("f", plain.params, loop(I, N, Allocate(wider, seq(Allocate(local, body), store(I)))), (A,))
    assert str(simplify_again(moved)) == str(simplify_func(moved))


def test_what_an_expression_becomes_is_remembered_for_its_facts_only() -> None:
    quotient = (I * 64 + J) // 64
    with_j = NO_FACTS.with_range(J, 0, 16)
    assert simplify(quotient, with_j) is I
    assert visits(lambda: simplify(quotient, with_j)) == 0
    assert simplify(quotient) is not I
    assert visits(lambda: simplify(quotient)) == 0
    assert simplify(quotient, NO_FACTS.with_range(J, 0, 65)) is not I


def test_facts_that_are_asked_for_again_are_the_same_but_for_those_that_live_for_ever() -> None:
    facts = NO_FACTS.with_range(I, 0, 8)
    assert facts.with_range(J, 0, N) is facts.with_range(J, 0, N)
    assert facts.with_condition(J < N) is facts.with_condition(J < N)
    assert facts.with_range(J, 0, N) is not facts.with_range(J, 1, N)
    assert NO_FACTS.with_range(I, 0, 8) is not facts


def test_values_that_let_puts_in_are_not_remembered_beyond_it() -> None:
    facts = NO_FACTS.with_range(I, 0, 8)
    body = (J * 3 + I) * 2
    assert str(simplify(Let(J, idx(5), body), facts)) == str(simplify((idx(15) + I) * 2, facts))
    assert simplify(body, facts) is simplify((J * 3 + I) * 2)
    assert str(simplify(body, facts)) == "j * 6 + i * 2"


@pytest.mark.parametrize("value", [0, 5])
def test_values_that_statements_put_in_reach_what_was_simplified_without_them(value: int) -> None:
    facts = NO_FACTS.with_range(I, 0, 8)
    condition = (idx(0) * 4 + J) < 2
    assert str(simplify(condition, facts)) == "j < 2"
    inside = If(condition, store(I), store(N))
    wanted = str(store(I) if value < 2 else store(N))
    assert str(simplify(LetStmt(J, idx(value), inside), facts)) == wanted
    assert str(simplify(For(J, idx(value), idx(1), "serial", inside), facts)) == wanted
    assert str(simplify(condition, facts)) == "j < 2"


# Size.


def quickly(e: Expr, most_calls: int) -> Expr:
    """The simplified expression, which takes no more calls of Python functions; their time would be the machine's."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        simpler = simplify(e)
    finally:
        sys.setprofile(None)
    assert calls <= most_calls
    assert simplify(simpler) is simpler
    return simpler


@pytest.mark.parametrize("terms", [3000])
def test_long_expressions_meet_no_limit(terms: int) -> None:
    variables = [index_var(f"v{n}") for n in range(terms)]
    total: Expr = idx(0)
    for v in variables:
        total = total + v * 2
    assert str(quickly(total - total, 200_000)) == "0"
    assert quickly(total, 500_000).dtype is INDEX
    floats: Expr = F
    lowest: Expr = idx(0)
    for v in variables[:1500]:
        floats = floats + Load(A, (v,))
        lowest = IfThenElse(v > M, v, lowest)
    assert quickly(floats, 400_000) is floats
    quickly(lowest, 5_000_000)
    quickly(logical_and([v > M for v in variables[:1500]]), 2_000_000)


def test_shared_parts_do_not_multiply() -> None:
    e: Expr = X
    product: Expr = M
    for _ in range(40):
        e = e + e
        product = product + product * 2
    assert str(quickly(e, 500_000)) == "int32(0)"  # x * 2**40, modulo 2**32
    assert isinstance(quickly(product, 1_000_000), Binary)


def test_constants_are_kept_apart_by_sign_of_zero() -> None:
    assert isinstance(simplify(f32(-0.0) * f32(1.0)), Const)
    assert str(simplify(f32(-0.0) * f32(1.0))) == "-0.0"
