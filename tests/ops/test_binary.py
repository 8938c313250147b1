"""Operators with two arguments: broadcasting, types, misuse, values against numpy, interpreted and native."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.base.errors import TypeInferenceError
from loopwright.graph.node import Tuple
from loopwright.graph.types import tensor_type
from loopwright.ops.definition.registry import OpPattern, all_ops, get_op
from loopwright.ops.families import binary
from loopwright.te import var as dimension

ARITHMETIC = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
BITWISE = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SHAPES = [
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((3, 1), (1, 5)),
    ((), (2, 3)),
    ((2, 1, 3), (4, 1)),
    ((), ()),
    ((0, 2), (1, 2)),
]


def data(rng, shape, kind):
    if kind == "bool":
        return rng.random(shape) < 0.5
    if kind in INTEGERS:
        info = np.iinfo(kind)
        return np.where(
            rng.random(shape) < 0.5,
            rng.integers(max(info.min, -4), 5, shape),
            rng.integers(info.min, info.max, shape, np.dtype(kind), endpoint=True),
        ).astype(kind)
    return rng.normal(size=shape).astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)


def quotient_and_remainder(a, b):
    quotients, remainders = [], []
    for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
        quotient = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        quotients.append(quotient)
        remainders.append(0 if y == 0 else x - quotient * y)
    wrap = np.iinfo(a.dtype).max - int(np.iinfo(a.dtype).min) + 1
    fits = [(q - int(np.iinfo(a.dtype).min)) % wrap + int(np.iinfo(a.dtype).min) for q in quotients]
    return np.array(fits, a.dtype).reshape(a.shape), np.array(remainders, a.dtype).reshape(a.shape)


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_shapes_broadcast_as_numpys(ops, left, right, native):
    rng = np.random.default_rng(0)
    a, b = data(rng, left, "float32"), data(rng, right, "float32")
    for x, y in ((a, b), (b, a)):
        found = ops.apply(binary.subtract, x, y, native=native)
        assert found.shape == np.broadcast_shapes(left, right)
        np.testing.assert_array_equal(found, x - y)


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_arithmetic_and_comparisons_are_numpys_in_every_dtype(ops, name):
    rng = np.random.default_rng(1)
    oracle = (ARITHMETIC | COMPARISONS)[name]
    for kind in INTEGERS + FLOATS:
        a, b = data(rng, (4, 5), kind), data(rng, (1, 5), kind)
        a[0] = b[0]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(ops.apply(getattr(binary, name), a, b), oracle(a, b), err_msg=kind)
    for kind in ("int32", "float32", "uint8"):
        a, b = data(rng, (4, 37), kind), data(rng, (4, 1), kind)
        np.testing.assert_array_equal(ops.apply(getattr(binary, name), a, b, native=True), oracle(a, b), err_msg=kind)


@pytest.mark.parametrize("name", [*ARITHMETIC, "divide", *COMPARISONS])
def test_nan_and_infinities_come_out_as_in_numpy(ops, name):
    numbers = np.array([np.nan, np.inf, -np.inf, 0.0, 1.5], np.float32)
    a, b = numbers[:, None], numbers[None, :]
    oracle = (ARITHMETIC | COMPARISONS | {"divide": np.divide})[name]
    for native in (False, True):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(ops.apply(getattr(binary, name), a, b, native=native), oracle(a, b))


@pytest.mark.parametrize("name", [*LOGICAL, *BITWISE])
def test_logic_and_bits_are_numpys(ops, name):
    rng = np.random.default_rng(2)
    oracle = (LOGICAL | BITWISE)[name]
    for kind in ["bool"] if name in LOGICAL else INTEGERS:
        a, b = data(rng, (3, 7), kind), data(rng, (7,), kind)
        for native in (False, True):
            np.testing.assert_array_equal(ops.apply(getattr(binary, name), a, b, native=native), oracle(a, b))


def test_equality_of_bools(ops):
    a, b = np.array([[True], [False]]), np.array([True, False])
    np.testing.assert_array_equal(ops.apply(binary.equal, a, b), a == b)
    np.testing.assert_array_equal(ops.apply(binary.not_equal, a, b), a != b)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_integer_division_truncates_and_both_remainders_fit_it(ops, kind, native):
    info = np.iinfo(kind)
    numbers = np.array(
        [0, 1, 2, 3, 7, info.max, info.min, info.max - 1, *([-1, -2, -3, -7] if info.min else [5])], kind
    )
    a, b = (np.ascontiguousarray(g) for g in np.meshgrid(numbers, numbers))
    quotient, remainder = quotient_and_remainder(a, b)
    np.testing.assert_array_equal(ops.apply(binary.divide, a, b, native=native), quotient)
    np.testing.assert_array_equal(ops.apply(binary.mod, a, b, fmod=True, native=native), remainder)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ops.apply(binary.mod, a, b, native=native), np.mod(a, b))


@pytest.mark.parametrize("kind", FLOATS)
def test_float_division(ops, kind):
    rng = np.random.default_rng(3)
    a, b = data(rng, (4, 5), kind), data(rng, (5,), kind)
    np.testing.assert_array_equal(ops.apply(binary.divide, a, b), a / b)


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_fmod_of_floats_is_exact(ops, native):
    rng = np.random.default_rng(4)
    for kind, largest in ((np.float32, np.inf), (np.float64, 2.0**208)):
        limits = np.finfo(kind)
        hostile = [3e8, 1e10, limits.max, limits.min, limits.tiny, limits.smallest_subnormal, 2.0**-120, 2.0**127]
        special = [0.0, -0.0, 1.0, -3.0, 6.0, 0.1, np.inf, -np.inf, np.nan, *hostile]
        a = np.concatenate([special, rng.normal(size=40) * 10.0 ** rng.integers(-6, 7, 40)]).astype(kind)
        b = np.concatenate([special, rng.normal(size=40)]).astype(kind)
        x, y = a[:, None], b[None, :]
        with np.errstate(all="ignore"):
            wanted, quotient = np.fmod(x, y), np.abs(x.astype(np.longdouble) / y)
        found = ops.apply(binary.mod, x, y, fmod=True, native=native)
        near = ~np.isfinite(quotient) | (quotient < largest)
        np.testing.assert_array_equal(found[near], wanted[near])
        np.testing.assert_array_equal(
            np.signbit(found)[near & ~np.isnan(wanted)], np.signbit(wanted)[near & ~np.isnan(wanted)]
        )


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_mod_of_floats_is_numpys_zeros_and_their_signs_too(ops, kind, native):
    rng = np.random.default_rng(5)
    tiny = float(ml_dtypes.finfo(kind).smallest_subnormal)
    limit = float(ml_dtypes.finfo(kind).max)
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        3.0,
        -3.0,
        6.0,
        -6.0,
        0.1,
        np.inf,
        -np.inf,
        np.nan,
        tiny,
        -tiny,
        3e4,
        limit,
        -limit,
    ]
    a = np.concatenate([special, rng.normal(size=20) * 10.0 ** rng.integers(-3, 4, 20)]).astype(kind)
    b = np.concatenate([special, rng.normal(size=10)]).astype(kind)
    x, y = a[:, None], b[None, :]
    with np.errstate(all="ignore"):
        wanted, quotient = np.mod(x, y).astype(np.float64), np.abs(x.astype(np.longdouble) / y.astype(np.longdouble))
    found = ops.apply(binary.mod, x, y, native=native).astype(np.float64)
    largest = 2.0**208 if np.dtype(kind) == np.float64 else np.inf
    exact = (quotient < largest) | np.isnan(wanted) | (wanted == np.inf) | (wanted == -np.inf)
    np.testing.assert_array_equal(found[exact], wanted[exact])
    signed = exact & ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[signed]), np.signbit(wanted[signed]))


@given(x=st.floats(allow_nan=False, allow_infinity=False, width=32), y=st.floats(allow_nan=False, width=32))
def test_fmod_is_the_c_librarys(ops, x, y):
    if y == 0:
        return
    found = ops.apply(binary.mod, np.array([x], np.float32), np.array([y], np.float32), fmod=True)
    assert float(found[0]) == math.fmod(x, y)


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
def test_powers_take_the_dtype_of_the_base(ops, native):
    rng = np.random.default_rng(5)
    base = np.abs(data(rng, (3, 5), "float32")) + np.float32(0.1)
    for kind in ("float32", "float64", "int32", "int64", "uint8"):
        exponent = (np.array([0, 1, 2, 3, 5]) if kind != "float64" else np.array([0.5, -1.5, 2, 0, 1])).astype(kind)
        found = ops.apply(binary.power, base, exponent, native=native)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, base.astype(np.float64) ** exponent, rtol=1e-6)
    whole = np.array([-7, -2, -1, 0, 1, 2, 3, 10], np.int64)[:, None]
    exponent = np.arange(0, 15)
    np.testing.assert_array_equal(ops.apply(binary.power, whole, exponent, native=native), whole**exponent)
    np.testing.assert_array_equal(
        ops.apply(
            binary.power, np.array([2, 1, -1, -1, 4, 9], np.int32), np.array([-1, -3, -3, -2, 0.5, 1.5]), native=native
        ),
        [0, 1, -1, 1, 2, 27],
    )


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint64"])
def test_shifts_are_numpys_and_empty_a_value_at_its_width(ops, kind):
    info = np.iinfo(kind)
    a = np.array([1, 3, info.max, info.min, 100], kind)[:, None]
    b = np.array([0, 1, 4, info.bits - 1], kind)
    for native in (False, True):
        np.testing.assert_array_equal(ops.apply(binary.left_shift, a, b, native=native), a << b)
        np.testing.assert_array_equal(ops.apply(binary.right_shift, a, b, native=native), a >> b)
        beyond = np.array([info.bits], kind)
        assert not ops.apply(binary.left_shift, a, beyond, native=native).any()
        np.testing.assert_array_equal(
            ops.apply(binary.right_shift, a, beyond, native=native), np.where(a < 0, -1, 0).astype(kind)
        )


def test_prelu_broadcasts_its_slope_to_x(ops):
    rng = np.random.default_rng(6)
    for kind in ("float32", "int32", "uint8", "float16"):
        x, slope = data(rng, (2, 3, 4), kind), data(rng, (3, 1), kind)
        for native in (False, True):
            found = ops.apply(binary.prelu, x, slope, native=native)
            np.testing.assert_array_equal(found, np.where(x < 0, x * slope, x).astype(x.dtype))


def test_operators_of_many_arguments_compose(ops):
    rng = np.random.default_rng(7)
    arrays = [data(rng, shape, "float32") for shape in [(2, 3), (3,), (2, 1), ()]]
    composed = lambda make: lambda *values: make(values)  # noqa: E731
    for make, oracle in (
        (binary.add_all, lambda xs: xs[0] + xs[1] + xs[2] + xs[3]),
        (binary.mean_all, lambda xs: (xs[0] + xs[1] + xs[2] + xs[3]) / 4),
        (binary.maximum_all, lambda xs: np.maximum(np.maximum(np.maximum(xs[0], xs[1]), xs[2]), xs[3])),
        (binary.minimum_all, lambda xs: np.minimum(np.minimum(np.minimum(xs[0], xs[1]), xs[2]), xs[3])),
    ):
        np.testing.assert_allclose(ops.apply(composed(make), *arrays), oracle(arrays), rtol=1e-6)
        one = ops.var((2,))
        assert make([one]) is one
        with pytest.raises(TypeInferenceError, match="needs at least one tensor"):
            make([])
    half = [data(rng, (3,), "bfloat16") for _ in range(3)]
    assert ops.apply(composed(binary.mean_all), *half).dtype == ml_dtypes.bfloat16


def test_symbolic_dimensions_broadcast(ops):
    n, m = dimension("n"), dimension("m")
    assert binary.add(ops.var((n, 3)), ops.var((3,))).type is tensor_type((n, 3), "float32")
    assert binary.add(ops.var((n, 1)), ops.var((m,))).type is tensor_type((n, m), "float32")
    assert binary.less(ops.var((n,)), ops.var((4,))).type is tensor_type((4,), "bool")
    a, b = ops.var((n, 1), name="a"), ops.var((m,), name="b")
    x, y = np.arange(3, dtype=np.float32)[:, None], np.arange(5, dtype=np.float32)
    for native in (False, True):
        np.testing.assert_array_equal(ops.evaluate(binary.add(a, b), {a: x, b: y}, native=native), x + y)


def test_operators_are_registered_as_broadcasting(ops):
    for name in [*ARITHMETIC, *COMPARISONS, *LOGICAL, *BITWISE, "divide", "power", "mod", "prelu", "left_shift"]:
        assert get_op(name).pattern is OpPattern.BROADCAST
    assert [op.name for op in all_ops()] == sorted(op.name for op in all_ops())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda v: binary.add(v((2,)), v((3,))),
            "add(a: float32[2], b: float32[3]): extents 2 of a and 3 of b do not broadcast",
        ),
        (lambda v: binary.add(v((2,)), v((2,), "float64")), "a is float32, but b is float64"),
        (lambda v: binary.add(v((2,), "bool"), v((2,), "bool")), "a must be of float, bfloat, int, uint, found bool"),
        (lambda v: binary.less(v((2,), "bool"), v((2,), "bool")), "found bool"),
        (lambda v: binary.logical_and(v((2,)), v((2,))), "a must be of bool, found float32"),
        (lambda v: binary.bitwise_or(v((2,)), v((2,))), "a must be of int, uint, found float32"),
        (lambda v: binary.left_shift(v((2,)), v((2,))), "a must be of int, uint, found float32"),
        (lambda v: binary.power(v((2,)), v((2,), "bool")), "b must be of float, bfloat, int, uint, found bool"),
        (lambda v: binary.prelu(v((3,)), v((2, 3))), "slope does not broadcast to the shape of x"),
        (lambda v: binary.prelu(v((1,)), v((3,))), "slope does not broadcast to the shape of x"),
        (lambda v: binary.add(Tuple((v((2,)),)), v((2,))), "a must be a tensor, found a (float32[2],)"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)
