"""GatherElements and ScatterElements whose indices have fewer rows than data, of extents that are open."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from open_models import FLOAT, engine, model

import loopwright as lw

SHAPES = [(["n", "m", "p"], ["k", "l", "q"]), ([5, 6, 4], ["k", "l", "q"]), (["n", "m", "p"], [3, 2, 4])]
FEWER = [(3, 2, 4), (5, 6, 4), (1, 1, 1), (0, 2, 3)]


def compiled(operator, data, indices, axis, **attributes):
    inputs = {"x": (FLOAT, data), "i": (TensorProto.INT64, indices)}
    if operator == "ScatterElements":
        inputs["u"] = (FLOAT, indices)
    return engine(model([helper.make_node(operator, [*inputs], ["y"], axis=axis, **attributes)], inputs, ["y"]))


def drawn(shape, axis):
    rng = np.random.default_rng([axis, *shape])
    x = rng.random((5, 6, 4), np.float32)
    return x, rng.integers(-x.shape[axis], x.shape[axis], shape), rng.random(shape, np.float32)


def positions(i, axis, extent):
    at = list(np.indices(i.shape))
    at[axis] = i % extent
    return tuple(at)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("data", "indices"), SHAPES)
def test_rows_that_no_index_is_for_are_left(data, indices, axis):
    gather = compiled("GatherElements", data, indices, axis)
    scatter = compiled("ScatterElements", data, indices, axis, reduction="add")
    for shape in [(3, 2, 4)] if indices[0] == 3 else FEWER:
        x, i, u = drawn(shape, axis)
        at = positions(i, axis, x.shape[axis])
        np.testing.assert_array_equal(gather({"x": x, "i": i})[0], x[at])
        wanted = x.astype(np.float64)
        np.add.at(wanted, at, u)
        np.testing.assert_allclose(scatter({"x": x, "i": i, "u": u})[0], wanted, rtol=1e-6)


@pytest.mark.parametrize("operator", ["GatherElements", "ScatterElements"])
def test_more_rows_than_data_have_are_an_error_of_the_run(operator):
    run = compiled(operator, ["n", "m", "p"], ["k", "l", "q"], 0)
    x, i, u = drawn((2, 7, 4), 0)
    with pytest.raises(lw.RuntimeArgumentError):
        run({"x": x, "i": i} | ({"u": u} if operator == "ScatterElements" else {}))
