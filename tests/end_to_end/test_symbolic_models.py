"""ONNX models whose dimensions stay open: one library for all shapes, saved and loaded, against the reference."""

import importlib.util

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw

RNG = np.random.default_rng(3)


class Builder:
    """Collects nodes and weights. Mutable."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def node(self, op, *inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"/{name}", **attributes))
        return name

    def weight(self, *shape, scale=0.3):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array((RNG.standard_normal(shape) * scale).astype(np.float32), name))
        return name

    def constant(self, value, kind=np.int64):
        return self.node("Constant", value=numpy_helper.from_array(np.asarray(value, kind)))

    def extent(self, x, axis):
        number = self.node("Gather", self.node("Shape", x), self.constant(axis), axis=0)
        return self.node("Unsqueeze", number, self.constant([0]))

    def reshape(self, x, *extents):
        parts = [e if isinstance(e, str) else self.constant([e]) for e in extents]
        return self.node("Reshape", x, self.node("Concat", *parts, axis=0))

    def model(self, shape, output):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "network", [x], [y], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolutional():
    b = Builder()
    x = b.node("Relu", b.node("Conv", "x", b.weight(8, 3, 3, 3), b.weight(8), pads=[1] * 4))
    x = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = b.node("Relu", b.node("Conv", x, b.weight(16, 8, 3, 3), b.weight(16), pads=[1] * 4, strides=[2, 2]))
    y = b.node("Add", y, b.node("Conv", x, b.weight(16, 8, 1, 1), strides=[2, 2]))
    flat = b.reshape(b.node("GlobalAveragePool", y), b.extent(y, 0), -1)
    logits = b.node("Gemm", flat, b.weight(10, 16), b.weight(10), transB=1)
    return b.model(["batch", 3, 12, 12], b.node("Softmax", logits, axis=-1))


def transformer_block(width=32, heads=4):
    b = Builder()
    batch, length = b.extent("x", 0), b.extent("x", 1)

    def split_heads(order):
        made = b.node("Add", b.weight(width), b.node("MatMul", "x", b.weight(width, width)))
        return b.node("Transpose", b.reshape(made, batch, length, heads, width // heads), perm=order)

    q, k, v = split_heads([0, 2, 1, 3]), split_heads([0, 2, 3, 1]), split_heads([0, 2, 1, 3])
    scores = b.node("Div", b.node("MatMul", q, k), b.constant(np.sqrt(width / heads), np.float32))
    mixed = b.node("MatMul", b.node("Softmax", scores, axis=-1), v)
    merged = b.reshape(b.node("Transpose", mixed, perm=[0, 2, 1, 3]), batch, length, width)
    y = b.node("Add", b.node("MatMul", merged, b.weight(width, width)), "x")
    return b.model(["batch", "length", width], b.node("LayerNormalization", y, b.weight(width), b.weight(width)))


def check(model, library, shapes):
    engine = lw.Engine(library)
    for shape in shapes:
        x = RNG.standard_normal(shape).astype(np.float32)
        (found,) = engine({"x": x})
        for (expected,) in oracles(model, x):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def oracles(model, x):
    yield ReferenceEvaluator(model).run(None, {"x": x})
    if importlib.util.find_spec("onnxruntime") is not None:
        import onnxruntime

        yield onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})


def test_a_convolutional_network_of_any_batch(tmp_path):
    model = convolutional()
    library = lw.compile(model)
    assert str(library.inputs[0]) == "x: float32[batch, 3, 12, 12]"
    assert library.outputs[0].shape == ("batch", 10)
    library.save(tmp_path / "network.lwlib")
    check(model, lw.load(tmp_path / "network.lwlib"), [(n, 3, 12, 12) for n in (1, 3, 8)])


def test_a_transformer_block_of_any_batch_and_length():
    model = transformer_block()
    library = lw.compile(model)
    assert library.outputs[0].shape == ("batch", "length", 32)
    check(model, library, [(1, 1, 32), (2, 7, 32), (1, 70, 32), (3, 64, 32)])


def test_part_of_the_shapes_may_be_given():
    library = lw.compile(transformer_block(), shapes={"x": (2, 5, 32)})
    assert (library.model.dims, library.inputs[0].shape) == ((), (2, 5, 32))


def test_arithmetic_on_open_dimensions_is_done_on_expressions():
    b = Builder()
    rows = b.node("Mul", b.extent("x", 0), b.constant([4]))
    twice = b.node("Concat", "x", "x", axis=0)
    y = b.reshape(twice, b.node("Div", rows, b.constant([2])), 2, -1)
    assert str(lw.from_onnx(b.model(["n", 6], y)).body.type) == "float32[n * 2, 2, 3]"


def test_a_shape_may_be_used_as_data():
    b = Builder()
    y = b.node("Mul", "x", b.node("Cast", b.extent("x", 0), to=TensorProto.FLOAT))
    model = b.model(["n", 6], y)
    for shapes in (None, {"x": (3, 6)}):
        (got,) = lw.Engine(lw.compile(model, shapes=shapes))([np.ones((3, 6), np.float32)])
        np.testing.assert_array_equal(got, np.full((3, 6), 3))


def test_an_operator_that_needs_a_known_dimension_says_which():
    b = Builder()
    training = b.constant(0.5, np.float32), b.constant(True, np.bool_)
    model = b.model([3, "length"], b.node("Dropout", "x", *training, seed=1))  # its numbers are drawn when compiling
    with pytest.raises(lw.ModelError, match=r'Dropout.*dimension length\ngive shapes=.*"x": \(None, 128\)'):
        lw.from_onnx(model)
