"""Equal constants are one: packed once, stored once, in libraries and exports too."""

import numpy as np
import pytest

import loopwright as lw
from loopwright.compiler.passes.share_constants import share_constants
from loopwright.graph import Constant
from loopwright.graph.visit import post_order

TARGET = "x86-64-v3"


def weight(seed=0):
    return np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32) / 8


def layers(weights, transposed):
    x = lw.var("x", (4, 64))
    body = x
    for each in weights:
        body = lw.nn.relu(lw.nn.dense(body, each, transposed=transposed))
    return lw.Function([x], body)


def expected(x, weights, transposed):
    for each in weights:
        x = np.maximum(x @ (each.T if transposed else each).astype(np.float64), 0)
    return x


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("layouts", ["plan", "keep"])
def test_a_weight_that_many_layers_have_is_stored_once(tmp_path, transposed, copies, layouts):
    one = lw.const(weight())
    weights = [lw.const(weight()) if copies else one for _ in range(8)]
    library = lw.compile(layers(weights, transposed), target=TARGET, layouts=layouts, jobs=1)
    assert sum(c.nbytes for c in library.model.constants) == weight().nbytes
    library.save(tmp_path / "model.lwlib")
    loaded = lw.load(tmp_path / "model.lwlib")
    assert len(loaded.model.constants) == 1
    files = library.export(tmp_path, weights="beside")
    assert files.weights.stat().st_size < 2 * weight().nbytes
    x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    for each in (library, loaded):
        (y,) = lw.Engine(each, threads=1)({"x": x})
        np.testing.assert_allclose(y, expected(x, [weight()] * 8, transposed), rtol=1e-4, atol=1e-5)


def test_constants_that_differ_in_one_bit_stay_apart():
    values = [np.zeros(100, np.float32) for _ in range(5)]
    values[1][50] = -0.0
    values[2][51] = np.nan
    values[3].view(np.uint32)[51] = np.float32(np.nan).view(np.uint32) + 1
    shared = share_constants(lw.Function([], tuple_of(values)))
    found = [n.value for n in post_order(shared.body) if isinstance(n, Constant)]
    assert [value.tobytes() for value in found] == [value.tobytes() for value in values[:4]]


def test_types_and_shapes_tell_constants_apart():
    values = [np.zeros(shape, kind) for shape in ((), (0,), (1,), (1, 1)) for kind in ("float32", "int32", "bool")]
    function = lw.Function([], tuple_of(values))
    assert share_constants(function) is function


def tuple_of(values):
    from loopwright.graph import Tuple

    return Tuple(tuple(Constant(value) for value in values))
