"""A product that is read in parts becomes a product for each; the results are the same."""

import numpy as np
import pytest

import loopwright as lw
from loopwright.compiler.passes.split_products import split_products
from loopwright.graph import Call, Function, Tuple
from loopwright.graph.visit import post_order

nn = lw.nn
X = lw.var("x", (1, 3, 4))
W = np.arange(4 * 12, dtype=np.float32).reshape(4, 12) / 7
B = np.arange(12, dtype=np.float32)


def product(transposed=False):
    weight = W.T if transposed else W
    return nn.add(nn.dense(X, lw.const(weight), transposed=transposed), lw.const(B))


def taken(value, *numbers):
    parts = nn.reshape(value, (1, 3, 3, 2, 2))
    return Tuple(tuple(nn.take(parts, lw.const(np.int64(n)), axis=2) for n in numbers))


def operators(function):
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call)]


@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_for_each_of_queries_keys_and_values(transposed):
    function = Function((X,), taken(product(transposed), 0, 1, -1))
    divided = split_products(function)
    assert operators(divided) == ["nn.dense", "add", "reshape"] * 3
    x = np.random.default_rng(0).standard_normal((1, 3, 4)).astype(np.float32)
    whole = (x @ W + B).reshape(1, 3, 3, 2, 2)
    for number, got in enumerate(lw.Engine(lw.compile(function, jobs=1))([x])):
        np.testing.assert_allclose(got, whole[:, :, number], rtol=1e-5)


def test_slices_of_columns_are_products():
    whole = product()
    parts = Tuple((nn.strided_slice(whole, [0], [8], [2]), nn.strided_slice(whole, [-4], [99], [2])))
    divided = split_products(Function((X,), parts))
    assert operators(divided) == ["nn.dense", "add", "reshape"] * 2
    assert [str(field.type) for field in divided.body.fields] == ["float32[1, 3, 8]", "float32[1, 3, 4]"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(lambda: taken(product(), 0, 1, 1), id="columns read twice"),
        pytest.param(lambda: taken(product(), 1), id="one part alone"),
        pytest.param(lambda: taken(nn.relu(product()), 0, 1), id="of something else than a sum"),
        pytest.param(lambda: Tuple((p := product(), *taken(p, 0, 1).fields)), id="all of it is read too"),
        pytest.param(
            lambda: Tuple((nn.strided_slice(p := product(), [0], [2], [1]), nn.strided_slice(p, [2], [3], [1]))),
            id="rows",
        ),
    ],
)
def test_other_products_stay_whole(body):
    function = Function((X,), body())
    assert split_products(function) is function
