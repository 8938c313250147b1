"""What is fused before an operator leaves its own differences alone: finite inputs give what the definition gives."""

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright.graph.node import Tuple

TARGET = "x86-64-v3"  # with fma
KINDS = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
LARGE = {"float32": 1.1e10, "float64": 1.1e40, "float16": 330.0, "bfloat16": 1.1e10}
SHAPE = (6, 37)


def constant(value, kind):
    return lw.const(np.asarray(value, KINDS[kind]))


def row(kind):
    return constant(np.random.default_rng(1).standard_normal(SHAPE[1]) * LARGE[kind], kind)


BEFORE = {
    "scaled": lambda x, kind: lw.nn.multiply(x, constant(LARGE[kind], kind)),
    "scaled by columns": lambda x, kind: lw.nn.multiply(x, row(kind)),
    "negated": lambda x, kind: lw.nn.negative(lw.nn.multiply(x, constant(LARGE[kind], kind))),
    "divided": lambda x, kind: lw.nn.divide(x, constant(1 / LARGE[kind], kind)),
    "two products": lambda x, kind: lw.nn.add(lw.nn.multiply(x, row(kind)), lw.nn.multiply(lw.nn.abs(x), row(kind))),
    "normalised": lambda x, kind: lw.nn.add(lw.nn.multiply(x, row(kind)), row(kind)),
    "chosen": lambda x, kind: lw.nn.where(
        lw.nn.greater(x, constant(0, kind)), lw.nn.multiply(x, constant(LARGE[kind], kind)), x
    ),
    "joined": lambda x, kind: lw.nn.concatenate([BEFORE["scaled"](x, kind), x], 1),
}


def fraction(x):
    return lw.nn.subtract(x, lw.nn.floor(x))


def below_maximum(x):
    return lw.nn.subtract(x, lw.nn.max(x, (-1,), True))


def softmax_by_hand(x):
    e = lw.nn.exp(below_maximum(x))
    return lw.nn.divide(e, lw.nn.sum(e, (-1,), True))


# What the results of finite inputs are in any case, however their rows were rounded.
INVARIANTS = {
    lw.nn.softmax: lambda y: (y >= 0).all() and np.allclose(y.sum(-1), 1, atol=0.02),
    softmax_by_hand: lambda y: (y >= 0).all() and np.allclose(y.sum(-1), 1, atol=0.02),
    lw.nn.log_softmax: lambda y: (y <= 0).all() and np.isfinite(y.max(-1)).all(),
    lw.nn.log_sum_exp: lambda y: np.isfinite(y).all(),
    below_maximum: lambda y: (y.max(-1) == 0).all(),
    fraction: lambda y: ((y >= 0) & (y <= 1)).all(),
}


SOME = ("scaled", "two products", "joined")
CASES = [
    ("standard", "float32", lw.nn.softmax, tuple(BEFORE)),
    *(("standard", "float32", operator, SOME) for operator in INVARIANTS if operator is not lw.nn.softmax),
    *(("standard", kind, lw.nn.log_softmax, ("scaled",)) for kind in KINDS if kind != "float32"),
    ("fast", "float32", lw.nn.softmax, (*SOME, "divided")),
]


@pytest.mark.parametrize(("precision", "kind", "operator", "before"), CASES)
def test_large_finite_inputs_give_no_nan_and_no_infinity(operator, kind, precision, before):
    data = np.random.default_rng(0).standard_normal(SHAPE)
    data[0] = data[0, 0]
    x = lw.var("x", SHAPE, kind)
    outputs = [operator(BEFORE[name](x, kind)) for name in before]
    library = lw.compile(lw.Function([x], Tuple(tuple(outputs))), target=TARGET, precision=precision)
    results = lw.Engine(library, threads=1)({"x": data.astype(KINDS[kind])})
    for name, result in zip(before, results, strict=True):
        assert INVARIANTS[operator](result.astype(np.float64)), f"{operator.__name__} of x {name}: {result}"


def test_values_at_the_ends_of_the_range_are_numpys():
    """Each product is rounded, overflows and underflows as numpy's does; a mask of the smallest number among them."""
    columns = np.array([1e38, -1e38, 3.4e38, np.finfo(np.float32).min, 1e-38, 1e-45, 0, 1, 1.5], np.float32)
    rows = np.array([[1.0], [0.5], [-1.0], [1e-3], [0.0]], np.float32) * np.ones((5, 9), np.float32)
    x = lw.var("x", rows.shape)
    function = lw.Function([x], lw.nn.softmax(lw.nn.multiply(x, lw.const(columns))))
    (found,) = lw.Engine(lw.compile(function, target=TARGET), threads=1)({"x": rows})
    scores = (rows * columns).astype(np.float64)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True), rtol=1e-6, atol=1e-37)


def test_a_product_that_one_sum_reads_is_contracted():
    """A scale and a bias, and the rectifier after it: one fma."""
    x, scale, bias = lw.var("x", (1, 64)), lw.var("scale", (64,)), lw.var("bias", (64,))
    normalised = lw.nn.relu(lw.nn.add(lw.nn.multiply(x, scale), bias))
    library = lw.compile(lw.Function([x, scale, bias], normalised), target=TARGET)
    (function,) = library.functions
    assert "llvm.fma" in function.llvm_ir
    assert not {"fmul", "fadd"} & set(function.llvm_ir.split())
