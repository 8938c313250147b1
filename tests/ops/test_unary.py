"""Elementwise operators with one argument: types, misuse, values against numpy, interpreted and native."""

import math

import ml_dtypes
import numpy as np
import pytest

from loopwright.base.errors import LoopwrightError, TypeInferenceError
from loopwright.graph.printer import graph_text
from loopwright.graph.types import tensor_type
from loopwright.ops import nn
from loopwright.ops.definition.registry import OpPattern, get_op
from loopwright.ops.families import parametric, unary
from loopwright.ops.families.cast import cast
from loopwright.te import var as dimension

VALUES = np.array([0.0, -0.0, 0.25, -0.25, 1.0, -1.0, 2.5, -2.5, 0.5, 3.75, -7.0, 19.5, -30.0, 88.0, 1e-6, -1e-6])
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30])
erf = np.vectorize(math.erf)


def softplus(x):
    return np.logaddexp(x, 0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


PLAIN = {
    "abs": np.abs,
    "negative": np.negative,
    "sign": np.sign,
    "relu": lambda x: np.maximum(x, 0),
    "reciprocal": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "log": np.log,
    "erf": erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "identity": lambda x: x,
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
}

WITH_ATTRIBUTES = [
    ("leaky_relu", {}, lambda x: np.where(x < 0, 0.01 * x, x)),
    ("leaky_relu", {"alpha": 0.3}, lambda x: np.where(x < 0, 0.3 * x, x)),
    ("thresholded_relu", {}, lambda x: np.where(x > 1, x, 0)),
    ("thresholded_relu", {"alpha": 2.5}, lambda x: np.where(x > 2.5, x, 0)),
    ("elu", {"alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x), x)),
    ("selu", {}, lambda x: 1.05070102214813232421875 * np.where(x > 0, x, 1.67326319217681884765625 * np.expm1(x))),
    ("selu", {"alpha": 2.0, "gamma": 3.0}, lambda x: 3 * np.where(x > 0, x, 2 * np.expm1(x))),
    ("celu", {"alpha": 2.0}, lambda x: np.maximum(x, 0) + np.minimum(0, 2 * np.expm1(x / 2))),
    ("hard_sigmoid", {}, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    ("hard_sigmoid", {"alpha": 0.5, "beta": 0.6}, lambda x: np.clip(0.5 * x + 0.6, 0, 1)),
    ("swish", {}, lambda x: x * sigmoid(x)),
    ("swish", {"alpha": 1.702}, lambda x: x * sigmoid(1.702 * x)),
    ("gelu", {}, lambda x: x / 2 * (1 + erf(x / np.sqrt(2)))),
    (
        "gelu",
        {"approximate": "tanh"},
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    ("shrink", {"lambd": 1.5, "bias": 1.5}, lambda x: np.where(x < -1.5, x + 1.5, np.where(x > 1.5, x - 1.5, 0))),
    ("isinf", {}, np.isinf),
    ("isinf", {"detect_negative": False}, np.isposinf),
    ("isinf", {"detect_positive": False}, np.isneginf),
    ("clip", {"min": -1.0, "max": 2.0}, lambda x: np.clip(x, -1, 2)),
    ("clip", {"min": 0.5}, lambda x: np.maximum(x, 0.5)),
    ("clip", {"max": 0.5}, lambda x: np.minimum(x, 0.5)),
    ("clip", {}, lambda x: x),
    ("clip", {"min": 2, "max": 1}, lambda x: np.where(np.isnan(x), x, 1)),
]

CASES = [(name, {}, oracle) for name, oracle in PLAIN.items()] + WITH_ATTRIBUTES
IDS = [f"{name}{k}" for k, (name, _, _) in enumerate(CASES)]
TOLERANCE = {"float32": 1e-6, "float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}


def expected(oracle, x):
    """The oracle in float64, on the numbers that the narrower dtype holds."""
    with np.errstate(all="ignore"):
        wide = oracle(x.astype(np.float64))
        return wide if wide.dtype == bool else wide.astype(x.dtype)


def check(found, wanted, tolerance):
    if wanted.dtype == bool:
        np.testing.assert_array_equal(found, wanted)
    else:
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True
        )


@pytest.mark.parametrize(("name", "attrs", "oracle"), CASES, ids=IDS)
def test_values_are_numpys_in_every_float_dtype_interpreted(ops, name, attrs, oracle):
    for kind, tolerance in TOLERANCE.items():
        x = VALUES.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
        check(ops.apply(getattr(nn, name), x, **attrs), expected(oracle, x), tolerance)


@pytest.mark.parametrize(("name", "attrs", "oracle"), CASES, ids=IDS)
def test_values_are_numpys_native_by_the_default_schedule(ops, name, attrs, oracle):
    rng = np.random.default_rng(0)
    x = np.concatenate([VALUES, rng.normal(size=21) * 4]).astype(np.float32)
    check(ops.apply(getattr(nn, name), x, native=True, **attrs), expected(oracle, x), 2e-6)


# x * f(x) at infinity, where f is 0, is NaN by the formula; sin, cos and tan of 1e30 are tested with the intrinsics
SPECIAL_CASES = [
    c for c in CASES if c[0] not in ("sin", "cos", "tan", "mish", "swish", "gelu", "hard_swish", "softsign")
]


@pytest.mark.parametrize(("name", "attrs", "oracle"), SPECIAL_CASES, ids=[c[0] for c in SPECIAL_CASES])
def test_nan_infinities_and_large_numbers_come_out_as_in_numpy(ops, name, attrs, oracle):
    for kind, tolerance in (("float32", 1e-6), ("float64", 1e-12)):
        x = SPECIAL.astype(kind)
        check(ops.apply(getattr(nn, name), x, **attrs), expected(oracle, x), tolerance)


@pytest.mark.parametrize("name", ["mish", "swish", "gelu", "softsign", "hard_swish"])
def test_nan_stays_nan_and_large_numbers_keep_their_limit(ops, name):
    x = np.array([np.nan, 1e10, -1e10], np.float32)
    found = ops.apply(getattr(nn, name), x)
    assert np.isnan(found[0])
    limits = (1, -1) if name == "softsign" else (1e10, 0)
    np.testing.assert_allclose(found[1:], limits, rtol=1e-6)


@pytest.mark.parametrize(("name", "low"), [("asinh", 1e-30), ("acosh", 1.0), ("atanh", 1e-30)])
def test_inverse_hyperbolics_are_accurate_near_their_zero_and_far_from_it(ops, name, low):
    offsets = np.logspace(-7, 12, 150) if name != "atanh" else np.logspace(-7, 0, 150) * 0.999
    for kind, tolerance in (("float32", 5e-7), ("float64", 2e-15)):
        x = (low + offsets).astype(kind)
        oracle = {"asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}[name]
        check_relative = oracle(x.astype(np.longdouble)).astype(np.float64)
        found = ops.apply(getattr(nn, name), x)
        np.testing.assert_allclose(found.astype(np.float64), check_relative, rtol=tolerance)
        if name != "acosh":
            np.testing.assert_array_equal(ops.apply(getattr(nn, name), -x), -found)


def test_integer_operators_follow_numpy_wrapping_included(ops):
    for kind in (np.int8, np.int32, np.int64, np.uint8):
        info = np.iinfo(kind)
        x = np.array([info.min, info.max, 0, 1, 5, 100, info.max - 1], kind)
        with np.errstate(all="ignore"):
            wanted = {"abs": np.abs(x), "negative": np.negative(x), "sign": np.sign(x), "relu": np.maximum(x, 0)}
        wanted |= {"bitwise_not": ~x, "identity": x}
        for name, value in wanted.items():
            for native in (False, True):
                found = ops.apply(getattr(nn, name), x, native=native)
                np.testing.assert_array_equal(found, value, err_msg=f"{name} of {kind}, native {native}")
        np.testing.assert_array_equal(ops.apply(parametric.clip, x, min=3, max=9), np.clip(x, 3, 9))
    x = np.array([-5, -2, -1, 0, 1, 2, 5], np.int32)
    np.testing.assert_array_equal(ops.apply(parametric.shrink, x, lambd=1.5, bias=1.5), [-3, 0, 0, 0, 0, 0, 3])


def test_logical_not(ops):
    x = np.array([True, False, True])
    np.testing.assert_array_equal(ops.apply(unary.logical_not, x), ~x)
    np.testing.assert_array_equal(ops.apply(unary.identity, x), x)


def test_rank_0_and_empty_tensors(ops):
    for native in (False, True):
        assert ops.apply(unary.exp, np.float32(0.5), native=native).shape == ()
        np.testing.assert_allclose(ops.apply(unary.exp, np.float32(0.5), native=native), np.exp(0.5), rtol=1e-6)
        assert ops.apply(unary.exp, np.zeros((3, 0), np.float32), native=native).shape == (3, 0)


CAST_KINDS = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("source", CAST_KINDS)
def test_casts_of_representable_values_are_numpys(ops, source):
    numbers = [0, 1, 1] if source == "bool" else [0, 1, 2, 100, 127]
    x = np.array(numbers).astype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    for to in CAST_KINDS:
        found = ops.apply(cast, x, to=to)
        np.testing.assert_array_equal(found, x.astype(ml_dtypes.bfloat16 if to == "bfloat16" else to))


def test_casts_truncate_saturate_and_wrap(ops):
    x = np.array([2.9, -2.9, 1e20, -1e20, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(ops.apply(cast, x, to="int8"), [2, -2, 127, -128, 0, 127])
    np.testing.assert_array_equal(ops.apply(cast, np.array([300, -1, 256]), to="uint8"), [44, 255, 0])
    np.testing.assert_array_equal(ops.apply(cast, np.array([0.0, 0.1, np.nan]), to="bool"), [0, 1, 1])


def test_types_follow_the_argument_symbolic_dimensions_too(ops):
    n = dimension("n")
    assert unary.exp(ops.var((n, 3), "float16")).type is tensor_type((n, 3), "float16")
    assert unary.isnan(ops.var((n,), "float64")).type is tensor_type((n,), "bool")
    assert cast(ops.var((n,)), "int8").type is tensor_type((n,), "int8")
    x = ops.var((n, 3))
    data = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    for native in (False, True):
        found = ops.evaluate(unary.relu(unary.negative(x)), {x: data}, native=native)
        np.testing.assert_array_equal(found, np.maximum(-data, 0))


def test_operators_are_registered_as_elementwise_under_their_names(ops):
    for name, _, _ in CASES:
        assert get_op(name).pattern is OpPattern.ELEMENTWISE
    assert "relu(" in graph_text(unary.relu(ops.var((2,))))
    assert unary.exp.__doc__ == "e to the power of x, elementwise."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: unary.exp(v((2,), "int32")), "exp(x: int32[2]): x must be of float, bfloat, found int32"),
        (lambda v: unary.abs(v((2,), "bool")), "x must be of float, bfloat, int, uint, found bool"),
        (lambda v: unary.logical_not(v((2,))), "x must be of bool, found float32"),
        (lambda v: unary.bitwise_not(v((2,))), "x must be of int, uint, found float32"),
        (
            lambda v: parametric.gelu(v((2,)), "sigmoid"),
            "GeluAttrs.approximate must be one of 'none', 'tanh'",
        ),
        (lambda v: parametric.celu(v((2,)), 0), "CeluAttrs.alpha must not be 0"),
        (lambda v: parametric.clip(v((2,), "int8"), 0, 300), "max does not fit x: 300 does not fit int8"),
        (lambda v: parametric.clip(v((2,), "int8"), 0.5), "min does not fit x: 0.5 is not an integer"),
        (lambda v: cast(v((2,)), "float33"), "no such dtype"),
        (lambda v: cast(v((2,)), "index"), "index is no dtype of tensors"),
        (lambda v: cast(v((2,)), "float32x4"), "float32x4 is no dtype of tensors"),
        (lambda v: get_op("exp")(v((2,)), v((2,))), "exp takes the arguments x, found 2"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)


def test_an_unknown_operator_is_an_error():
    with pytest.raises(LoopwrightError, match="there is no operator 'exp3'"):
        get_op("exp3")
