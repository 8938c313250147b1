"""Tensors of many numbers that follow from open extents, used as data."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw


def model_of(op, table):
    """``Shape(x)[0]`` beside a table of constants, added to a float."""
    nodes = [
        helper.make_node("Shape", ["x"], ["extent"]),
        helper.make_node(op, ["extent", "table"], ["numbers"]),
        helper.make_node("Cast", ["numbers"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Add", ["floats", "total"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, list(table.shape))
    graph = helper.make_graph(nodes, "numbers", [x], [y], [numpy_helper.from_array(table, "table")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("shape", [(3,), (14, 64), (2000,)])
def test_numbers_of_an_open_extent(op, shape):
    """Sums differ by a constant each; products are a formula each, which are many in one expression."""
    table = np.random.default_rng(3).integers(-99, 99, shape)
    if op == "Mul":
        table = np.arange(table.size).reshape(shape) % 700
    engine = lw.Engine(lw.compile(model_of(op, table), jobs=1))
    for n in (1, 6):
        wanted = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op](n, table) + np.float32(n)
        np.testing.assert_array_equal(engine([np.ones(n, np.float32)])[0], wanted)
