"""What the interpreter computes, operator by operator, against Python's integers and fractions, and numpy."""

from __future__ import annotations

import itertools
import math
import operator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.base.dtype import dtype
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ZERO, const
from loopwright.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
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
from loopwright.ir.interpret import interpret
from loopwright.ir.intrinsics import INTRINSICS, call
from loopwright.ir.rounding import round_to_float
from loopwright.ir.scalar import eval_binary, eval_cast, eval_unary
from loopwright.ir.stmt import For, PrimFunc, Store

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")


@pytest.fixture(autouse=True)
def _no_float_warnings():
    with np.errstate(all="ignore"):
        yield


def apply(build, result: str, *columns, kinds, lanes: int = 1):
    """``build(*operands)`` for each row of the columns, computed by the interpreter, one row or ``lanes`` at a time."""
    arrays = [np.array(c, dtype(k).to_numpy()) for c, k in zip(columns, kinds, strict=True)]
    count = len(arrays[0])
    assert count % lanes == 0
    inputs = [make_buffer(f"in{k}", (count,), kind) for k, kind in enumerate(kinds)]
    output = make_buffer("out", (count,), result)
    i = index_var("i")
    index = i if lanes == 1 else Ramp(i * lanes, const(1, "index"), lanes)
    value = build(*(Load(b, (index,)) for b in inputs))
    body = For(i, ZERO, const(count // lanes, "index"), "serial", Store(output, (index,), value))
    out = np.zeros(count, dtype(result).to_numpy())
    interpret(PrimFunc("apply", (*inputs, output), body, (output,)))(*arrays, out)
    return out


def same(found, expected) -> bool:
    """Equal bits, but for the payload of NaNs."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype:
        return False
    if found.dtype.kind not in "fV" and found.dtype != ml_dtypes.bfloat16:
        return bool((found == expected).all())
    nan = np.isnan(found.astype(np.float64))
    bits = f"u{found.dtype.itemsize}"
    equal = found.view(bits) == expected.view(bits)
    return bool((equal | (nan & np.isnan(expected.astype(np.float64)))).all())


def edge_integers(kind: str) -> list[int]:
    low, high = dtype(kind).int_range()
    values = {low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, 8, 31, 32, 100, high - 1, high}
    return sorted(v for v in values if low <= v <= high)


def edge_floats(kind: str):
    values = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        3.1415926,
        1e-3,
        65504.0,
        1e30,
        -1e300,
        math.inf,
        -math.inf,
        math.nan,
        5e-324,
        1e-40,
    ]
    with np.errstate(over="ignore"):
        return np.array(values).astype(dtype(kind).to_numpy())


def wrapped(kind: str, value: int) -> int:
    return int(np.array([value % (1 << dtype(kind).bits)], f"uint{dtype(kind).bits}").view(kind)[0])


def integer_operation(op: str, kind: str, a: int, b: int) -> int:
    """The definition in the docstring of expr.py, in unbounded integers."""
    bits = dtype(kind).bits
    match op:
        case "//" | "%":
            exact = 0 if b == 0 else math.floor(Fraction(a, b)) if op == "//" else a - b * math.floor(Fraction(a, b))
        case "<<":
            exact = a * 2**b if 0 <= b < bits else 0
        case ">>":
            exact = math.floor(Fraction(a, 2**b)) if 0 <= b < bits else -1 if a < 0 else 0
        case "min" | "max":
            exact = min(a, b) if op == "min" else max(a, b)
        case _:
            functions = {"+": operator.add, "-": operator.sub, "*": operator.mul}
            functions |= {"&": operator.and_, "|": operator.or_, "^": operator.xor}
            exact = functions[op](a, b)
    return wrapped(kind, exact)


INTEGER_OPS = ("+", "-", "*", "//", "%", "min", "max", "&", "|", "^", "<<", ">>")


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integer_operations(op, kind):
    a, b = zip(*itertools.product(edge_integers(kind), repeat=2), strict=True)
    expected = np.array([integer_operation(op, kind, x, y) for x, y in zip(a, b, strict=True)], kind)
    folded = [eval_binary(op, dtype(kind), x, y) for x, y in zip(a, b, strict=True)]
    assert folded == expected.tolist()
    for lanes in (1, len(a)):
        if lanes <= 256:
            found = apply(lambda x, y: Binary(op, x, y), kind, a, b, kinds=(kind, kind), lanes=lanes)
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("op", INTEGER_OPS[:7])
@pytest.mark.parametrize("lanes", [1, 4])
def test_index_operations_are_exact(op, lanes):
    a, b = zip(*itertools.product((-(2**40), -7, -1, 0, 3, 2**31), (-5, -1, 2, 2**20)), strict=True)
    found = apply(lambda x, y: Binary(op, x, y), "index", a, b, kinds=("index", "index"), lanes=lanes)
    exact = {"//": operator.floordiv, "%": operator.mod, "min": min, "max": max}
    exact |= {"+": operator.add, "-": operator.sub, "*": operator.mul}
    assert found.tolist() == [exact[op](x, y) for x, y in zip(a, b, strict=True)]


def test_index_values_may_pass_beyond_64_bits_on_the_way():
    found = apply(lambda x: (x * x * x) // (x * x), "index", [2**40, -(2**50)], kinds=("index",))
    assert found.tolist() == [2**40, -(2**50)]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("op", ["+", "-", "*", "/", "min", "max"])
@pytest.mark.parametrize("lanes", [1, 14])
def test_float_operations_round_once_and_propagate_nan(op, kind, lanes):
    edges = edge_floats(kind)
    a, b = (np.array(c) for c in zip(*itertools.product(edges, repeat=2), strict=True))
    found = apply(lambda x, y: Binary(op, x, y), kind, a, b, kinds=(kind, kind), lanes=lanes)
    for x, y, z in zip(a, b, found, strict=True):
        assert _is_float_result(op, kind, x, y, z), (x, y, z)


def _is_float_result(op, kind, x, y, z) -> bool:
    exact = all(math.isfinite(v) for v in (x, y)) and not (op == "/" and y == 0)
    x64, y64 = np.float64(x), np.float64(y)
    if op in ("min", "max"):
        expected = np.nan if math.isnan(x) or math.isnan(y) else (min if op == "min" else max)(x64, y64)
        return bool(z == expected) or (math.isnan(z) and math.isnan(expected))
    functions = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    if not exact or functions[op](Fraction(float(x)), Fraction(float(y))) == 0:
        with np.errstate(all="ignore"):  # signs of zeros, infinities, NaN: as in float64
            expected = np.asarray(functions[op](x64, y64)).astype(z.dtype)
        return same(z, expected)
    return _is_nearest(kind, functions[op](Fraction(float(x)), Fraction(float(y))), z)


def _is_nearest(kind: str, exact: Fraction, found) -> bool:
    """Whether no neighbour of ``found`` is nearer to ``exact``; on a tie, the one with an even last bit is right."""
    kind_bits = f"u{found.dtype.itemsize}"
    largest = Fraction(float(np.asarray(ml_dtypes.finfo(found.dtype).max)))
    ulp_of_largest = largest - Fraction(float(_neighbour(np.asarray(ml_dtypes.finfo(found.dtype).max), -1)))
    if math.isinf(found):
        return abs(exact) >= largest + ulp_of_largest / 2 and (exact > 0) == (found > 0)
    error = abs(Fraction(float(found)) - exact)
    for step in (-1, 1):
        other = _neighbour(np.asarray(found), step)
        if not math.isfinite(other):
            continue
        distance = abs(Fraction(float(other)) - exact)
        if distance < error or (distance == error and int(np.asarray(found).view(kind_bits)) % 2 == 1):
            return False
    return abs(exact) < largest + ulp_of_largest / 2


def _neighbour(value, step: int):
    return np.nextafter(value, np.asarray(math.inf if step > 0 else -math.inf, value.dtype))


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS, "bool", "index"])
@pytest.mark.parametrize("target", [*INTEGERS, *FLOATS, "bool", "index"])
def test_casts(source, target):
    if source in FLOATS:
        values = [float(v) for v in [*edge_floats(source), *edge_floats(source) / 3, -128.9, 127.5, 255.4, 1e10]]
        values = [float(v) for v in np.array(values).astype(dtype(source).to_numpy())]
    elif source == "index":
        values = [-(2**62), -(2**33) - 1, -1, 0, 1, 255, 2**32 + 2**24 + 1, 2**62]
    else:
        values = [False, True] if source == "bool" else edge_integers(source)
    if target == "index":  # which stays below 2**63 by contract
        values = [v for v in values if not isinstance(v, int) or v < 2**63]
    values = values[: len(values) // 2 * 2]
    expected = [_cast(target, v) for v in values]
    assert same(np.array([eval_cast(dtype(target), v) for v in values], dtype(target).to_numpy()), expected)
    for lanes in (1, 2):
        found = apply(
            lambda x, k=lanes: Cast(dtype(target).with_lanes(k), x), target, values, kinds=(source,), lanes=lanes
        )
        assert same(found, np.array(expected, dtype(target).to_numpy())), (values, found, expected)


def _cast(target: str, value):
    kind = dtype(target)
    if target == "bool":
        return np.bool_(value != 0)
    if not kind.is_float:
        low, high = kind.int_range() or (-(2**63), 2**63 - 1)
        if isinstance(value, float):
            exact = 0 if math.isnan(value) else min(high, max(low, math.trunc(value))) if math.isfinite(value) else None
            number = exact if exact is not None else low if value < 0 else high
        else:
            number = value if kind.is_index else wrapped(target, int(value))
        return kind.to_numpy().type(number)
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return kind.to_numpy().type(value)
    return _nearest(target, Fraction(value))


def _nearest(kind: str, exact: Fraction):
    """The nearest value of a float dtype, found by searching around a rough one."""
    numpy_type = dtype(kind).to_numpy()
    with np.errstate(over="ignore"):
        rough = np.asarray(float(exact)).astype(numpy_type)
    candidates = [rough, _neighbour(rough, 1), _neighbour(rough, -1)]
    return next(numpy_type.type(c) for c in candidates if exact == 0 or _is_nearest(kind, exact, numpy_type.type(c)))


@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_round_once_to_bfloat16(value):
    found = round_to_float(dtype("bfloat16"))(np.uint64(value) if value > 2**63 - 1 else np.int64(value))[()]
    assert value == 0 or _is_nearest("bfloat16", Fraction(value), found)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_round_once_to_bfloat16(value):
    with np.errstate(over="ignore", under="ignore"):
        found = round_to_float(dtype("bfloat16"))(value)[()]
    assert _is_nearest("bfloat16", Fraction(value), found)


def test_ties_are_seen_through_the_first_rounding():
    above_a_tie = 1 + 2**-8 + 2**-40  # float32 sees the tie itself, which would go down to 1
    assert float(round_to_float(dtype("bfloat16"))(above_a_tie)) == 1 + 2**-7
    assert float(const(above_a_tie, "bfloat16")) == 1 + 2**-7


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS, "index"])
@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
def test_comparisons(op, kind):
    edges = [-3, 0, 5, 2**40] if kind == "index" else edge_floats(kind) if kind in FLOATS else edge_integers(kind)
    a, b = (np.array(c, dtype(kind).to_numpy()) for c in zip(*itertools.product(edges, repeat=2), strict=True))
    compare = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt}
    expected = [compare.get(op, operator.ge)(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    for lanes in (1, len(edges)):
        found = apply(lambda x, y: Compare(op, x, y), "bool", a, b, kinds=(kind, kind), lanes=lanes)
        assert found.tolist() == expected


@pytest.mark.parametrize("lanes", [1, 4])
def test_logic_and_choices(lanes):
    a, b = [False, False, True, True], [False, True, False, True]
    both = {"kinds": ("bool", "bool"), "lanes": lanes}
    assert apply(lambda x, y: Logical("and", x, y), "bool", a, b, **both).tolist() == [False, False, False, True]
    assert apply(lambda x, y: Logical("or", x, y), "bool", a, b, **both).tolist() == [False, True, True, True]
    assert apply(lambda x, y: Unary("not", x), "bool", a, b, **both).tolist() == [True, True, False, False]
    assert apply(lambda x, y: Compare("!=", x, y), "bool", a, b, **both).tolist() == [False, True, True, False]
    numbers = {"kinds": ("bool", "index", "index"), "lanes": lanes}
    chosen = apply(Select, "index", a, [1, 2, 3, 4], [5, 6, 7, 8], **numbers)
    assert chosen.tolist() == [5, 6, 3, 4]


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("lanes", [1, 2])
def test_negation_and_complement(kind, lanes):
    values = (edge_floats(kind) if kind in FLOATS else edge_integers(kind))[:8]
    values = values[: len(values) // 2 * 2]
    negated = apply(lambda x: Unary("-", x), kind, values, kinds=(kind,), lanes=lanes)
    expected = [-float(v) if kind in FLOATS else wrapped(kind, -v) for v in values]
    assert same(negated, np.array(expected, dtype(kind).to_numpy()))
    if kind not in FLOATS:
        complement = apply(lambda x: Unary("~", x), kind, values, kinds=(kind,), lanes=lanes)
        assert complement.tolist() == [wrapped(kind, ~v) for v in values]
        assert complement.tolist() == [eval_unary("~", dtype(kind), v) for v in values]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", [n for n, i in INTRINSICS.items() if i.domain in ("float", "number") and n != "fma"])
def test_float_intrinsics_are_numpy_in_float64_rounded_once(name, kind):
    intrinsic = INTRINSICS[name]
    values = np.concatenate([edge_floats(kind), np.linspace(-3, 3, 6).astype(dtype(kind).to_numpy())])
    columns = [values, values[::-1], values][: intrinsic.arity]
    result = kind if intrinsic.result is None else str(intrinsic.result)
    for lanes in (1, 4):
        found = apply(lambda *x: call(name, *x), result, *columns, kinds=(kind,) * intrinsic.arity, lanes=lanes)
        with np.errstate(all="ignore"):
            wide = intrinsic.reference(*(c.astype(np.float64) for c in columns))
            expected = round_to_float(dtype(kind))(wide) if intrinsic.result is None else wide
        assert same(found, expected)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_intrinsics(kind):
    values = edge_integers(kind)
    assert apply(lambda x: call("popcount", x), kind, values, kinds=(kind,)).tolist() == [
        (v % (1 << dtype(kind).bits)).bit_count() for v in values
    ]
    assert apply(lambda x: call("abs", x), kind, values, kinds=(kind,)).tolist() == [
        wrapped(kind, abs(v)) for v in values
    ]


@pytest.mark.parametrize("kind", FLOATS)
def test_fma_rounds_once(kind):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(300).astype(dtype(kind).to_numpy()) for _ in range(2))
    c = (-a.astype(np.float64) * b.astype(np.float64)).astype(dtype(kind).to_numpy())
    found = apply(lambda *x: call("fma", *x), kind, a, b, c, kinds=(kind,) * 3)
    for x, y, z, result in zip(a, b, c, found, strict=True):
        assert _is_nearest(kind, Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), result)
    special = apply(lambda *x: call("fma", *x), kind, [math.inf, 0, -0.0], [0, 1, 1], [1, 0, -0.0], kinds=(kind,) * 3)
    assert same(special, np.array([math.nan, 0, -0.0], dtype(kind).to_numpy()))


@pytest.mark.parametrize("kind", ["int8", "index"])
def test_ramps_and_broadcasts(kind):
    values = [1, 100]
    ramp = apply(lambda x: Select(Broadcast(const(True, "bool"), 2), _ramp(x, kind), _ramp(x, kind)), kind, values,
                 kinds=(kind,), lanes=2)  # fmt: skip
    assert ramp.tolist() == [60, wrapped("int8", 160) if kind == "int8" else 160]


def _ramp(like: Expr, kind: str) -> Expr:
    assert like.dtype.lanes == 2
    return Ramp(const(60, kind), const(100, kind), 2)


def test_let_binds_its_value_in_its_body_only_once_evaluated():
    x = Var("x", dtype("float32"))
    found = apply(lambda v: Let(x, v + v, x * x), "float32", [1.0, 3.0], kinds=("float32",))
    assert found.tolist() == [4.0, 36.0]


def test_lets_that_reuse_a_variable_do_not_mix_up_their_bodies():
    x = Var("x", dtype("float32"))
    found = apply(lambda v: Let(x, v, x + 1.0) * Let(x, v + v, x + 1.0), "float32", [1.0, 3.0], kinds=("float32",))
    assert found.tolist() == [6.0, 28.0]


def test_if_then_else_evaluates_only_the_chosen_side():
    buffer, out, i = make_buffer("A", (2,), "int32"), make_buffer("B", (4,), "int32"), index_var("i")
    value = IfThenElse(i < 2, Load(buffer, (i,)), const(-1, "int32"))
    result = np.zeros(4, "int32")
    body = For(i, ZERO, const(4, "index"), "serial", Store(out, (i,), value))
    interpret(PrimFunc("f", (buffer, out), body, (out,)))(np.array([5, 6], "int32"), result)
    assert result.tolist() == [5, 6, -1, -1]


def test_shared_subexpressions_are_evaluated_once():
    x = apply(lambda v: _double_often(v, 64), "uint64", [1, 3], kinds=("uint64",))
    assert x.tolist() == [0, 0]  # 2**64 wraps; as a tree, this would never end


def _double_often(value: Expr, times: int) -> Expr:
    for _ in range(times):
        value = value + value
    return value


def test_deep_expressions_run():
    def build(value: Expr) -> Expr:
        for number in range(5000):
            value = value + number % 5
        return value

    assert apply(build, "int32", [7], kinds=("int32",)).tolist() == [7 + 10000]
