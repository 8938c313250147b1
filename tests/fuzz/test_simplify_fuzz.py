"""Random expressions and statements keep their meaning when simplified, and simplifying twice changes nothing.

The oracle is the evaluator below: a direct reading of the semantics in ``ir/expr.py`` over lists of lanes, on top
of the scalar operations of ``ir/scalar.py``; for statements it is the interpreter.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.base.dtype import BOOL, INDEX, DType, dtype
from loopwright.base.errors import InterpretError
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Let,
    Load,
    Logical,
    Ramp,
    Select,
    Unary,
    Var,
)
from loopwright.ir.facts import NO_FACTS, Facts, prove
from loopwright.ir.interpret import interpret
from loopwright.ir.intrinsics import call as intrinsic
from loopwright.ir.makers import broadcast_to, maximum, minimum
from loopwright.ir.modular import modulus_of
from loopwright.ir.scalar import eval_binary, eval_cast, eval_compare, eval_unary
from loopwright.ir.simplify import simplify
from loopwright.ir.simplify.expressions import ExpressionVisitor
from loopwright.ir.stmt import Allocate, Assert, Evaluate, For, If, LetStmt, PrimFunc, Seq, Stmt, Store
from loopwright.ir.visit import walk

Value = bool | int | float
Env = Mapping[Var, Value]
LANES = 4
EXAMPLES = max(300, settings().max_examples)


def evaluate(e: Expr, env: Env) -> list[Value]:
    """The lanes of an expression."""
    match e:
        case Var():
            return [env[e]]
        case Const(value=value):
            return [value]
        case Cast(to, a):
            return [eval_cast(to.element, x) for x in evaluate(a, env)]
        case Unary(op, a):
            return [eval_unary(op, e.dtype.element, x) for x in evaluate(a, env)]
        case Binary(op, a, b):
            kind = e.dtype.element
            return [eval_binary(op, kind, x, y) for x, y in zip(evaluate(a, env), evaluate(b, env), strict=True)]
        case Compare(op, a, b):
            return [eval_compare(op, x, y) for x, y in zip(evaluate(a, env), evaluate(b, env), strict=True)]
        case Logical(op, a, b):
            pairs = zip(evaluate(a, env), evaluate(b, env), strict=True)
            return [(x and y) if op == "and" else (x or y) for x, y in pairs]
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            chosen = evaluate(condition, env)
            chosen = chosen * e.dtype.lanes if len(chosen) == 1 else chosen
            sides = zip(chosen, evaluate(a, env), evaluate(b, env), strict=True)
            return [x if c else y for c, x, y in sides]
        case Let(var, value, body):
            return evaluate(body, {**env, var: evaluate(value, env)[0]})
        case Call("abs", (a,)):
            kind = e.dtype.element
            return [x if x >= 0 else eval_unary("-", kind, x) for x in evaluate(a, env)]
        case Ramp(base, stride, lanes):
            kind = e.dtype.element
            start, step = evaluate(base, env)[0], evaluate(stride, env)[0]
            return [eval_binary("+", kind, start, eval_binary("*", kind, step, n)) for n in range(lanes)]
        case Broadcast(value, lanes):
            return evaluate(value, env) * lanes
        case _:
            raise AssertionError(e)


# Index variables: i in [-3, 5), j in [0, 4), n in [1, 7], k in [0, n), m any multiple of 4 from -8 to 8.
I, J, N, K, M = (index_var(name) for name in "ijnkm")
FACTS: Facts = (
    NO_FACTS.with_condition((N >= 1) & (N <= 7)).with_range(I, -3, 8).with_range(J, 0, 4).with_range(K, 0, N)
).with_condition(((M % 4).as_expr() == 0) & (M >= -8) & (M <= 8))
DATA = [dtype(name) for name in ("int8", "uint8", "int16", "uint32")]
FLOATS = [dtype(name) for name in ("float32", "float16")]
DATA_VARS = {kind: [Var(f"{kind}_{n}", kind) for n in "ab"] for kind in (*DATA, *FLOATS, BOOL)}


class Generator:
    """Random expressions and environments. Seeded, so that a failure is repeated by its seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def environment(self) -> Env:
        n = self.rng.randint(1, 7)
        env: dict[Var, Value] = {
            N: n,
            I: self.rng.randint(-3, 4),
            J: self.rng.randint(0, 3),
            K: self.rng.randrange(n),
            M: 4 * self.rng.randint(-2, 2),
        }
        for kind, variables in DATA_VARS.items():
            env.update((v, self.value(kind)) for v in variables)
        return env

    def value(self, kind: DType) -> Value:
        pick = self.rng
        if kind.is_bool:
            return pick.random() < 0.5
        if kind.is_float:
            return pick.choice([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, math.inf, -math.inf, math.nan])
        if kind.is_index:
            return pick.randint(-6, 20)
        low, high = kind.int_range() or (0, 0)
        return pick.choice([pick.randint(max(low, -4), 4), low, high, pick.randint(low, high)])

    def expr(self, kind: DType, depth: int, bound: tuple[Var, ...] = ()) -> Expr:
        """An expression of the dtype, of at most this depth; ``bound`` are variables of lets around it."""
        if kind.lanes > 1:
            return self._vector(kind, depth, bound)
        if depth == 0 or self.rng.random() < 0.15:
            return self._leaf(kind, bound)
        below = depth - 1
        shape = self.rng.choice(["binary"] * 6 + ["select", "if", "let", "unary", "cast"])
        if shape == "binary" or (shape in ("unary", "cast") and kind.is_bool):
            return self._condition(1, depth, bound) if kind.is_bool else self._operation(kind, depth, bound)
        if shape == "let":
            value, var = self.expr(INDEX, below, bound), index_var("v")
            return Let(var, value, self.expr(kind, below, (*bound, var)))
        if shape == "unary":
            a = self.expr(kind, below, bound)
            return intrinsic("abs", a) if self.rng.random() < 0.2 else -a
        if shape == "cast" and not kind.is_index:
            return Cast(kind, self.expr(self.rng.choice([*DATA, *FLOATS, BOOL, INDEX]), below, bound))
        make = Select if shape == "select" else IfThenElse
        return make(self.expr(BOOL, below, bound), self.expr(kind, below, bound), self.expr(kind, below, bound))

    def _leaf(self, kind: DType, bound: tuple[Var, ...]) -> Expr:
        if self.rng.random() < 0.4:
            return const(self.value(kind), kind)
        return self.rng.choice([I, J, N, K, M, *bound] if kind.is_index else DATA_VARS[kind])

    def _operation(self, kind: DType, depth: int, bound: tuple[Var, ...]) -> Expr:
        integers = ["+", "+", "-", "*", "//", "%", "min", "max"]
        bits = ["&", "|", "^", "<<", ">>"] if kind.is_data_int else []
        op = self.rng.choice(["+", "-", "*", "/", "min", "max"] if kind.is_float else integers + bits)
        a = self.expr(kind, depth - 1, bound)
        if kind.is_index and op in ("//", "%"):
            divisor = self.rng.choice([*(const(d, INDEX) for d in (2, 3, 4, 8, 12, 16, 1, -3)), N, N + 1])
            return Binary(op, a, broadcast_to(divisor, kind.lanes))
        if kind.is_index and op == "*" and self.rng.random() < 0.6:
            return Binary(op, a, const(self.rng.choice([2, 3, 4, 8, -1, -4]), kind))
        return Binary(op, a, self.expr(kind, depth - 1, bound))

    def _condition(self, lanes: int, depth: int, bound: tuple[Var, ...]) -> Expr:
        truth = BOOL.with_lanes(lanes)
        if self.rng.random() < 0.5:
            a, b = self.expr(truth, depth - 1, bound), self.expr(truth, depth - 1, bound)
            return self.rng.choice([~a, Logical("and", a, b), Logical("or", a, b)])
        kind = self.rng.choice([INDEX] * 6 + [*DATA, *FLOATS, BOOL]).with_lanes(lanes)
        op = self.rng.choice(["==", "!="] if kind.is_bool else ["==", "!=", "<", "<=", ">", ">="])
        return Compare(op, self.expr(kind, depth - 1, bound), self.expr(kind, depth - 1, bound))

    def _vector(self, kind: DType, depth: int, bound: tuple[Var, ...]) -> Expr:
        choice = self.rng.randrange(6)
        below = max(depth - 1, 0)
        if depth == 0 or choice == 0:
            scalar = self.expr(kind.element, below, bound)
            if kind.is_float or kind.is_bool or self.rng.random() < 0.4:
                return Broadcast(scalar, LANES)
            return Ramp(scalar, self.expr(kind.element, below, bound), LANES)
        if kind.is_bool:
            return self._condition(LANES, depth, bound)
        if choice == 1:
            condition = self.expr(BOOL.with_lanes(self.rng.choice([1, LANES])), below, bound)
            return Select(condition, self.expr(kind, below, bound), self.expr(kind, below, bound))
        return self._operation(kind, depth, bound)


def same(a: Value, b: Value, signed_zeros: bool) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b and (not signed_zeros or math.copysign(1, a) == math.copysign(1, b))
    return type(a) is type(b) and a == b


def has_float_minimum(e: Expr) -> bool:
    """Of two zeros of different sign, min and max may give either."""
    return any(isinstance(x, Binary) and x.op in ("min", "max") and x.dtype.is_float for x in walk(e))


SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("kind", ["index", "bool", "int8", "uint8", "uint32", "float32"])
@pytest.mark.parametrize("lanes", [1, LANES])
@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=SEEDS)
def test_simplified_expressions_keep_their_value(kind: str, lanes: int, seed: int) -> None:
    generator = Generator(seed)
    e = generator.expr(dtype(kind).with_lanes(lanes), generator.rng.randint(1, 4))
    simpler = simplify(e, FACTS)
    assert simpler.dtype is e.dtype
    twice = simplify(simpler, FACTS)
    assert twice is simpler, f"{e}\n once: {simpler}\ntwice: {twice}"
    signed_zeros = not has_float_minimum(e)
    for _ in range(8):
        env = generator.environment()
        expected, found = evaluate(e, env), evaluate(simpler, env)
        agree = all(same(a, b, signed_zeros) for a, b in itertools.zip_longest(expected, found))
        assert agree, f"{e}\n→ {simpler}\nat {env}: {expected} became {found}"


@pytest.mark.parametrize("kind", ["index", "uint8", "float32"])
@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_recursion_and_visits_give_the_same(kind: str, seed: int) -> None:
    """What is deep is simplified without recursion, by the same rules."""

    def known(self: ExpressionVisitor, e: Expr, facts: Facts) -> Expr | None:
        found: Expr | None = self.known(e, facts)
        return found

    e = Generator(seed).expr(dtype(kind), 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExpressionVisitor, "at_once", known)
        by_visits = simplify(e, replace(FACTS))  # which remember nothing yet
    assert simplify(e, replace(FACTS)) is by_visits


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(seed=SEEDS)
def test_bounds_and_congruences_hold(seed: int) -> None:
    generator = Generator(seed)
    kind = generator.rng.choice([INDEX, INDEX, *DATA]).with_lanes(generator.rng.choice([1, LANES]))
    e = generator.expr(kind, generator.rng.randint(1, 4))
    bounds, congruence = FACTS.interval(e), modulus_of(e, FACTS)
    for _ in range(8):
        env = generator.environment()
        for value in evaluate(e, env):
            assert bounds.low is None or bounds.low <= value, f"{e}: {bounds}, but {value} at {env}"
            assert bounds.high is None or bounds.high >= value, f"{e}: {bounds}, but {value} at {env}"
            difference = value - congruence.base
            holds = difference % congruence.coefficient == 0 if congruence.coefficient else difference == 0
            assert holds, f"{e}: {congruence}, but {value} at {env}"


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(seed=SEEDS)
def test_what_is_proved_is_true(seed: int) -> None:
    generator = Generator(seed)
    premise, claim = generator.expr(BOOL, 2), generator.expr(BOOL, 3)
    if not prove(claim, FACTS.with_condition(premise)):
        return
    for _ in range(8):
        env = generator.environment()
        if evaluate(premise, env)[0]:
            assert evaluate(claim, env)[0], f"{claim} was proved from {premise}, but fails at {env}"


# Statements: nests over the variables of FACTS, which write a buffer wherever an index lands when it is clamped.
SIZE = 16
MEMORY = make_buffer("A", (const(SIZE, INDEX),), "index")


class StatementGenerator(Generator):
    """Random statements; ``bound`` are the variables of the loops and lets around."""

    def stmt(self, depth: int, bound: tuple[Var, ...]) -> Stmt:
        shape = self.rng.choice(
            ["store"] if depth == 0 else ["store", "for", "for", "if", "let", "seq", "seq", "local"]
        )
        below = depth - 1
        if shape == "for":
            var = index_var("v")
            low, extent = self.expr(INDEX, 1, bound), minimum(self.expr(INDEX, 1, bound), 3)
            return For(var, low, extent, "serial", self.stmt(below, (*bound, var)))
        if shape == "if":
            orelse = self.stmt(below, bound) if self.rng.random() < 0.5 else None
            return If(self.expr(BOOL, 2, bound), self.stmt(below, bound), orelse)
        if shape == "let":
            var = index_var("w")
            return LetStmt(var, self.expr(INDEX, 2, bound), self.stmt(below, (*bound, var)))
        if shape == "local":
            local = make_buffer("L", (const(1, INDEX),), "index", "local")
            fill = Store(local, (const(0, INDEX),), self.expr(INDEX, 2, bound))
            return Allocate(local, Seq((fill, self._store(bound, Load(local, (const(0, INDEX),))))))
        if shape == "seq":
            parts = [self.stmt(below, bound) for _ in range(self.rng.randint(1, 3))]
            if self.rng.random() < 0.5:
                parts.insert(0, Assert(self.expr(BOOL, 2, bound), "must hold"))
            return Seq(tuple(parts))
        return Evaluate(self.expr(INDEX, 1, bound)) if self.rng.random() < 0.1 else self._store(bound)

    def _store(self, bound: tuple[Var, ...], value: Expr | None = None) -> Stmt:
        at = maximum(minimum(self.expr(INDEX, 2, bound), SIZE - 1), 0)
        return Store(MEMORY, (at,), self.expr(INDEX, 2, bound) if value is None else value)


def run(body: Stmt, env: Env) -> list[int] | str:
    """What is in memory afterwards; where the statement fails, how."""
    for var, number in env.items():
        body = LetStmt(var, const(number, var.dtype), body)
    memory = np.full(SIZE, 77, np.int64)
    try:
        interpret(PrimFunc("f", (MEMORY,), body, (MEMORY,)))(memory)
    except InterpretError as error:
        return str(error).splitlines()[0]
    return memory.tolist()


@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=SEEDS)
def test_simplified_statements_keep_their_meaning(seed: int) -> None:
    generator = StatementGenerator(seed)
    body = generator.stmt(generator.rng.randint(1, 4), ())
    simpler = simplify(body, FACTS)
    twice = simplify(simpler, FACTS)
    assert twice is simpler, f"{body}\nonce:\n{simpler}\ntwice:\n{twice}"
    for _ in range(3):
        env = generator.environment()
        expected = run(body, env)
        assert run(simpler, env) == expected, f"{body}\nbecame\n{simpler}\nat {env}"
