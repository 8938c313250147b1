"""``lw.nn`` on tensors of ``te``: the definitions of the operators, as computes."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

X = np.random.default_rng(3).standard_normal((4, 6), np.float32)
W = np.random.default_rng(4).standard_normal((6, 5), np.float32)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


CASES = {
    "relu": (lambda x, w: lw.nn.relu(x), lambda x, w: np.maximum(x, 0)),
    "softmax": (lambda x, w: lw.nn.softmax(x, axis=1), lambda x, w: softmax(x)),
    "matmul": (lambda x, w: lw.nn.relu(lw.nn.matmul(x, w)), lambda x, w: np.maximum(x @ w, 0)),
    "mean": (lambda x, w: lw.nn.mean(x, axes=1, keepdims=True), lambda x, w: x.mean(axis=1, keepdims=True)),
    "list": (lambda x, w: lw.nn.concatenate([x, x], axis=0), lambda x, w: np.concatenate([x, x])),
    "keyword": (lambda x, w: lw.nn.add(a=x, b=x), lambda x, w: x + x),
    "several calls": (lambda x, w: lw.nn.elu(x, alpha=2.0), lambda x, w: np.where(x > 0, x, 2 * np.expm1(x))),
}


@pytest.mark.parametrize(("made", "expected"), CASES.values(), ids=CASES)
def test_an_operator_on_tensors_is_its_definition(made, expected):
    np.testing.assert_allclose(lw.kernel(made)(X, W), expected(X, W), rtol=1e-4, atol=1e-5)


def test_an_operator_of_several_results_gives_several_tensors():
    left, right = lw.kernel(lambda x: lw.nn.split(x, [2, 4], axis=1))(X)
    np.testing.assert_array_equal(left, X[:, :2])
    np.testing.assert_array_equal(right, X[:, 2:])


def test_an_operator_on_nodes_is_a_call():
    assert repr(lw.nn.relu(lw.var("x", (2, 3)))) == "<Call relu: float32[2, 3]>"


def test_a_node_that_is_no_tensor_beside_tensors_is_refused():
    A = te.placeholder((4, 6), name="A")
    with pytest.raises(lw.ExpressionError, match=re.escape("%x: float32[4, 6] is a node of a graph")):
        lw.nn.add(A, lw.var("x", (4, 6)))
    with pytest.raises(lw.ExpressionError, match=re.escape("an array of shape (4, 6) meets tensors")):
        lw.nn.add(A, lw.const(X))


def test_types_that_do_not_fit_are_told_with_the_names_of_arguments():
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((5,), name="B")
    with pytest.raises(lw.TypeInferenceError, match=re.escape("nn.matmul(a: float32[4, 6], b: float32[5])")):
        lw.nn.matmul(A, B)
