"""Operators and functions of numpy on whole tensors: the same values as numpy's on arrays."""

import math
import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

RNG = np.random.default_rng(7)
X = RNG.uniform(0.5, 2.0, (4, 6)).astype(np.float32)
Y = RNG.uniform(0.5, 2.0, (6,)).astype(np.float32)
I = RNG.integers(1, 9, (4, 6)).astype(np.int32)
J = RNG.integers(1, 9, (4, 1)).astype(np.int32)


def computed(function, *arrays):
    """What the interpreter makes of the tensors of a function, without a schedule."""
    tensors = [te.placeholder(a.shape, a.dtype, name=f"x{k}") for k, a in enumerate(arrays)]
    made = function(*tensors)
    outputs = made if isinstance(made, tuple) else (made,)
    results = [np.zeros([int(e) for e in t.shape], t.dtype) for t in outputs]
    lw.interpret(lw.lower(lw.create_schedule(outputs), [*tensors, *outputs]))(*arrays, *results)
    return results if isinstance(made, tuple) else results[0]


FLOATS = {
    "sum of two": lambda x, y: x + y,
    "number and tensor": lambda x, y: 1 + 2.0 * x - 3 / y - (4 - x),
    "quotient and power": lambda x, y: x / y + x**y + 2**x + x**2,
    "negative and absolute": lambda x, y: abs(-x) - y,
    "scalar of numpy": lambda x, y: np.float32(2) * x + np.float64(3) + np.asarray(4.0) * y,
    "functions": lambda x, y: np.exp(x) + np.sqrt(y) + np.tanh(x) + np.log1p(y) + np.square(x),
    "extremes": lambda x, y: np.maximum(x, y) + np.minimum(x, 1.0) + np.clip(x, 0.75, 1.5) + np.clip(x, None, 1.0),
    "choice": lambda x, y: np.where(x > y, x, 0.0) + np.where(np.logical_and(x < 1, ~(y >= 1)), 1.0, y),
    "product of matrices": lambda x, y: x @ y,
    "transposed": lambda x, y: (x.T + x.transpose([1, 0])).T + np.transpose(x).T,
    "reshaped": lambda x, y: x.reshape(2, 12) + np.reshape(x, (2, -1)) + x.reshape((2, 12)),
    "sums": lambda x, y: x.sum(axis=1) + np.sum(x, axis=(1,)) + x.sum() + x.sum(axis=-1, keepdims=True).reshape(4),
    "means": lambda x, y: x.mean(axis=0) + np.mean(y),
    "products": lambda x, y: x.prod(axis=0) + np.prod(y),
    "largest and smallest": lambda x, y: x.max(axis=0) - np.min(x, axis=0) + np.max(y) - y.min(),
    "joined": lambda x, y: np.concatenate([x, x * 2], axis=1),
    "new axes": lambda x, y: np.expand_dims(x, 0) + np.squeeze(np.expand_dims(y, 0)) + np.broadcast_to(y, (4, 6)),
    "spread": lambda x, y: np.std(x, axis=0) + np.var(y) + np.cumsum(y),
    "einsum": lambda x, y: np.einsum("ij,j->i", x, y),
    "softmax": lambda x, y: (
        np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
    ),
}
INTEGERS = {
    "arithmetic": lambda i, j: i + j * 2 - i // j + i % j - 7 // j + 9 % i,
    "bits": lambda i, j: (i & j) | (i ^ 3) | (~j & 1),
    "comparisons": lambda i, j: np.where(i <= j, i, j),
    "positions": lambda i, j: np.argmax(i, axis=1) + np.argmin(i, axis=1),
    "any and all": lambda i, j: np.any(i > j, axis=0) | np.all(i > 0, axis=0),
}


@pytest.mark.parametrize("function", FLOATS.values(), ids=FLOATS)
def test_floats_are_what_numpy_computes(function):
    found = computed(function, X, Y)
    np.testing.assert_allclose(found, function(X, Y), rtol=1e-5)


@pytest.mark.parametrize("function", INTEGERS.values(), ids=INTEGERS)
def test_integers_are_what_numpy_computes(function):
    np.testing.assert_array_equal(computed(function, I, J), function(I, J))


def test_a_tensor_of_another_dtype_is_converted_on_request():
    found = computed(lambda i, y: i.astype("float32") * y, I, Y)
    np.testing.assert_allclose(found, I.astype(np.float32) * Y, rtol=1e-6)
    A = te.placeholder((4,), name="A")
    assert A.astype(np.float32) is A


def test_an_element_of_a_computed_tensor_can_be_read():
    found = computed(lambda x, y: te.compute((6,), lambda i: (x * 2.0)[0, i] + np.exp(y)[i], name="z"), X, Y)
    np.testing.assert_allclose(found, X[0] * 2 + np.exp(Y), rtol=1e-5)


def test_symbolic_extents_broadcast():
    n = te.var("n")
    A, B = te.placeholder((n, 4), name="A"), te.placeholder((4,), name="B")
    made = np.exp(A) * B + 1
    assert repr(made) == "add: float32[n, 4]"
    out = np.zeros((3, 4), np.float32)
    lw.build(lw.create_schedule(made), [A, B, made])(X[:3, :4].copy(), Y[:4].copy(), out)
    np.testing.assert_allclose(out, np.exp(X[:3, :4]) * Y[:4] + 1, rtol=1e-5)


def test_parts_of_a_tensor_are_a_list_as_those_of_an_array():
    found = np.split(te.placeholder(X.shape, name="X"), 2, axis=1)
    assert list(map(repr, found)) == ["strided_slice: float32[4, 3]"] * 2
    np.testing.assert_array_equal(computed(lambda x, y: np.split(x, 2, axis=1)[1], X, Y), X[:, 3:])


EXTENTS = {
    "choice by one": lambda x, y: x * 2 if x.shape[1] % 2 == 0 and x.shape[0] > 3 else -x,
    "choice by all": lambda x, y: x * 2 if x.shape == (4, 6) and x.shape[::-1] != (4, 6) else -x,
    "number beside a tensor": lambda x, y: x / x.shape[1] + x.shape[0] * y - (x.shape[0] - x) * x.shape[1],
    "roots": lambda x, y: x / np.sqrt(x.shape[1]) + y * x.shape[1] ** 0.5,
    "quotient": lambda x, y: x * (x.shape[0] / 3) - y / (1 / x.shape[1]),
    "numbers of Python": lambda x, y: x * math.prod(x.shape) + max(y.shape) - float(x.shape[0] // 2),
    "shapes": lambda x, y: x.reshape(x.shape[0] // 2, 2, -1) + y.reshape(1, 1, x.shape[1]),
    "operators": lambda x, y: np.where(x > 1, x, x.shape[0]) + np.broadcast_to(y, (x.shape[0], y.shape[0] * 1)),
}


@pytest.mark.parametrize("function", EXTENTS.values(), ids=EXTENTS)
def test_extents_that_are_known_are_numbers(function):
    np.testing.assert_allclose(computed(function, X, Y), function(X, Y), rtol=1e-5)


def test_symbolic_extents_decide_nothing():
    A = te.placeholder((te.var("n"), 4), name="A")
    with pytest.raises(lw.ExpressionError, match="the truth of the symbolic expression `n == 4` is not known"):
        bool(A.shape[0] == 4)
    with pytest.raises(lw.ExpressionError, match="`/` does not apply to index values"):
        A.shape[0] / 2


def test_numpy_asks_a_tensor_for_its_shape():
    A = te.placeholder((4, 6), name="A")
    assert np.shape(A) == A.shape == (4, 6)
    assert np.ndim(A) == A.ndim == 2


def test_axes_to_transpose_are_given_one_by_one_or_as_a_tuple():
    A = te.placeholder((4, 6, 8), name="A")
    assert A.transpose(1, 0, 2).shape == A.transpose((1, 0, 2)).shape == np.transpose(A, (1, 0, 2)).shape == (6, 4, 8)
    assert A.transpose().shape == A.transpose(None).shape == (8, 6, 4)


def test_equality_asks_whether_tensors_are_the_same():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="A")
    assert A == A
    assert A != B
    assert len({A, B}) == 2


REFUSED = {
    "np.add of A: float32[4, 6], B: float32[5]: extents 6 of A and 5 of B do not broadcast": lambda a, b: a + b,
    "np.multiply: A: float32[4, 6] and K: int32[6] do not share a dtype; convert one of them, as by astype": (
        lambda a, b: a * te.placeholder((6,), "int32", name="K")
    ),
    "np.add: A: float32[4, 6] is a whole tensor, and `B[0]` one element": lambda a, b: a + b[0],
    "np.add: A: float32[4, 6] meets a ndarray of shape (6,)": lambda a, b: a + np.ones(6),
    "np.subtract: A: float32[4, 6] meets a list": lambda a, b: a - [1],
    "np.multiply: A: float32[4, 6] meets a complex": lambda a, b: 1j * a,
    "the truth of greater: bool[4, 6] is not known before it is computed: choose by np.where": lambda a, b: bool(a > 0),
    "A: float32[4, 6] has no values: it says what is computed": lambda a, b: np.asarray(a),
    "A: float32[4, 6] cannot be iterated over": lambda a, b: list(a),
    "np.sort is computed by no operator: print(lw.nn) lists those that there are": lambda a, b: np.sort(a),
    "np.add.outer does not apply to tensors": np.add.outer,
    "np.maximum.reduce does not apply to tensors: np.sum, np.prod, np.max": lambda a, b: np.maximum.reduce(a),
    "an array of shape (6, 2) meets tensors, but only numbers go with tensors": lambda a, b: a @ np.ones((6, 2)),
    "an array of shape (1, 6) meets tensors": lambda a, b: np.concatenate([a, np.ones((1, 6))]),
    "np.mean takes here (a, axis=None, ": lambda a, b: np.mean(a, where=True),
    "np.exp of tensors takes no out": lambda a, b: np.exp(a, out=np.zeros(3)),
    "np.cbrt does not apply to symbolic expressions": lambda a, b: np.cbrt(a),
    "`/` does not apply to int32 values: use // for integers": lambda a, b: a.astype("int32") / 2,
    "the axes to multiply over differ in extent: 6 of a and 5 of b": lambda a, b: a @ b,
    "axis 2 is not one of a tensor of rank 2": lambda a, b: a.sum(axis=2),
}


@pytest.mark.parametrize(("message", "function"), REFUSED.items())
def test_what_cannot_be_computed_is_refused(message, function):
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((5,), name="B")
    with pytest.raises((lw.ExpressionError, lw.TypeInferenceError), match=re.escape(message)):
        function(A, B)
