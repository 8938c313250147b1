"""Einsums that are products of matrices, and those that are not, against numpy's."""

import numpy as np
import pytest
from onnx_cases import floats
from pairs import each_value

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes.einsum_products import einsum_products
from loopwright.graph.node import Call
from loopwright.graph.visit import post_order

PRODUCTS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,kj->ki", (2, 3), (4, 3)),
    ("ibh,hnd->ibnd", (5, 2, 6), (6, 3, 4)),
    ("ibnd,hnd->ibh", (5, 2, 3, 4), (6, 3, 4)),
    ("ibnd,hdn->ibh", (5, 2, 3, 4), (6, 4, 3)),
    ("ibnd,jbnd->bnij", (5, 2, 3, 4), (7, 2, 3, 4)),
    ("bnij,jbnd->ibnd", (2, 3, 5, 7), (7, 2, 3, 4)),
    ("bcxd,bcyd->bcxy", (2, 3, 5, 4), (2, 3, 6, 4)),
    ("nchw,cd->ndhw", (2, 3, 4, 5), (3, 6)),
    ("bhwc,hkc->bhwk", (2, 3, 4, 5), (3, 6, 5)),
    ("bkm,bkn->mbn", (2, 3, 4), (2, 3, 5)),
    ("abk,kcd->acbd", (2, 5, 3), (3, 4, 6)),
    ("kb,kca->abc", (2, 3), (2, 4, 5)),
]
OTHERS = [
    ("ij,j->i", (2, 3), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("ijk,jl->il", (2, 3, 4), (3, 5)),
    ("jl,ijk->il", (3, 5), (2, 3, 4)),
    ("iij,jk->ik", (2, 2, 3), (3, 4)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("bi,bi->b", (2, 3), (2, 3)),
    ("ij,kj,kl->il", (2, 3), (4, 3), (4, 5)),
]


def made(equation, shapes, kind="float32", is_open=False):
    letters = {}
    terms = equation.partition("->")[0].split(",")
    own = [[letters.setdefault(k, te.var(k)) for k in term] if is_open else list(shape)
           for term, shape in zip(terms, shapes, strict=True)]  # fmt: skip
    inputs = [lw.var(name, shape, kind) for name, shape in zip("xyz", own, strict=False)]
    return lw.Function(inputs, lw.nn.einsum(equation, inputs))


def operators(function):
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call)]


@each_value(product=range(len(PRODUCTS)), is_open=[False, True])
def test_products_of_matrices(product, is_open):
    equation, *shapes = PRODUCTS[product]
    function = made(equation, shapes, is_open=is_open)
    assert "einsum" not in operators(einsum_products(function))
    arrays = [floats(*shape, seed=k) for k, shape in enumerate(shapes)]
    found = lw.Engine(lw.compile(function, "x86-64-v3", jobs=1))(arrays)[0]
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in OTHERS])
def test_what_is_no_product_of_matrices_stays(equation, shapes):
    function = made(equation, shapes)
    assert einsum_products(function) is function
    arrays = [floats(*shape, seed=k) for k, shape in enumerate(shapes)]
    found = lw.Engine(lw.compile(function, "x86-64-v3", jobs=1))(arrays)[0]
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)


def test_integers_stay():
    function = made("ij,jk->ik", [(2, 3), (3, 4)], "int32")
    assert einsum_products(function) is function


def test_the_simplest_ones_move_nothing():
    assert operators(einsum_products(made("ij,jk->ik", [(2, 3), (3, 4)]))) == ["nn.matmul"]
    assert operators(einsum_products(made("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]))) == ["nn.matmul"]
    assert operators(einsum_products(made("ibh,hn->ibn", [(5, 2, 6), (6, 3)]))) == ["nn.matmul"]
    assert operators(einsum_products(made("nchw,cd->ndhw", [(2, 3, 4, 5), (3, 6)]))).count("transpose") == 1


def test_constants_are_packed():
    x, w = lw.var("x", (te.var("n"), 2, 64)), lw.const(floats(64, 4, 16))
    library = lw.compile(lw.Function([x], lw.nn.einsum("ibh,hnd->ibnd", [x, w])), "x86-64-v3", jobs=1)
    assert library.functions[0].implementation == "packed_matmul.blocked"


def test_strict_precision_sums_in_the_order_of_the_definition():
    shapes = [(3, 2, 7, 5), (4, 5, 7)]
    arrays = [floats(*shape, seed=k) * 1e3 for k, shape in enumerate(shapes)]
    found = lw.Engine(lw.compile(made("ibnd,hdn->ibh", shapes), "x86-64-v3", precision="strict"))(arrays)[0]
    x, w = arrays
    expected = np.zeros((3, 2, 4), np.float32)
    for n in range(7):
        for d in range(5):
            expected += x[:, :, None, n, d] * w[:, d, n]
    np.testing.assert_array_equal(found, expected)


def test_attention_in_einsums_is_one_operator():
    q, k, v = (lw.var(name, (2, 3, te.var("n"), 16)) for name in "qkv")
    scores = lw.nn.softmax(lw.nn.einsum("bhid,bhjd->bhij", [q, k]) * 0.25)
    library = lw.compile(lw.Function([q, k, v], lw.nn.einsum("bhij,bhjd->bhid", [scores, v])), "x86-64-v3", jobs=1)
    assert [function.call.op for function in library.functions] == ["nn.attention"]
