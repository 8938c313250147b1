"""A transformer encoder and a U-Net as exporters write them: shapes computed at run time, masks, Constant nodes.

They must become static graphs, and give what onnx's reference gives, and onnxruntime where it is installed.
"""

import importlib.util

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw
from loopwright.graph import Call, Constant
from loopwright.graph.visit import post_order

OPSET = 17


class Builder:
    """Collects nodes and weights. Mutable."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op}_{len(self.nodes)}.{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"/{op}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, *shape, around=0.0, scale=None):
        fan_in = np.prod(shape[1:]) if len(shape) > 2 else shape[0]
        value = self.rng.standard_normal(shape) * (scale or np.sqrt(2 / fan_in)) + around
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def constant(self, value, kind=np.int64):
        return self.node("Constant", value=numpy_helper.from_array(np.asarray(value, kind)))

    def extent(self, x, axis):
        """Shape → Gather → Unsqueeze."""
        number = self.node("Gather", self.node("Shape", x), self.constant(axis), axis=0)
        return self.node("Unsqueeze", number, self.constant([0]))

    def reshape(self, x, *extents):
        parts = [e if isinstance(e, str) else self.constant([e]) for e in extents]
        return self.node("Reshape", x, self.node("Concat", *parts, axis=0))

    def model(self, inputs, outputs):
        infos = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
        graph = helper.make_graph(
            self.nodes, "network", infos, [onnx.ValueInfoProto(name=o) for o in outputs], self.weights
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def attention(b, x, mask, width, heads):
    batch, length = b.extent(x, 0), b.extent(x, 1)

    def split_heads(order):
        made = b.node("Add", b.weight(width, scale=0.1), b.node("MatMul", x, b.weight(width, width)))
        return b.node("Transpose", b.reshape(made, batch, length, heads, width // heads), perm=order)

    q, k, v = split_heads([0, 2, 1, 3]), split_heads([0, 2, 3, 1]), split_heads([0, 2, 1, 3])
    scores = b.node("Div", b.node("MatMul", q, k), b.constant(np.sqrt(width / heads), np.float32))
    weights = b.node("Softmax", b.node("Add", scores, mask), axis=-1)
    mixed = b.node("Transpose", b.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    merged = b.reshape(mixed, batch, length, width)
    return b.node("Add", b.node("MatMul", merged, b.weight(width, width)), b.weight(width, scale=0.1))


def layer_norm_in_parts(b, x, width):
    """As exporters write it before operator set 17."""
    centered = b.node("Sub", x, b.node("ReduceMean", x, axes=[-1]))
    variance = b.node("ReduceMean", b.node("Pow", centered, b.constant(2.0, np.float32)), axes=[-1])
    deviation = b.node("Sqrt", b.node("Add", variance, b.constant(1e-5, np.float32)))
    normal = b.node("Div", centered, deviation)
    return b.node("Add", b.node("Mul", normal, b.weight(width, around=1, scale=0.1)), b.weight(width, scale=0.1))


def gelu_in_parts(b, x):
    erf = b.node("Erf", b.node("Div", x, b.constant(np.sqrt(2), np.float32)))
    return b.node("Mul", b.node("Mul", x, b.node("Add", erf, b.constant(1.0, np.float32))), b.constant(0.5, np.float32))


def additive_mask(b, tokens):
    """[batch, length] of 0 and 1 → [batch, 1, length, length] of minus infinity, nearly, and 0: Expand and Where."""
    keep = b.node("Unsqueeze", b.node("Unsqueeze", "mask", b.constant([1])), b.constant([2]))
    batch, length = b.extent(tokens, 0), b.extent(tokens, 1)
    target = b.node("Concat", batch, b.constant([1]), length, length, axis=0)
    ones = b.node("ConstantOfShape", b.node("Shape", target), value=numpy_helper.from_array(np.array([1])))
    unknown = b.node("Equal", target, b.node("Mul", ones, b.constant(-1)))
    wide = b.node("Expand", keep, b.node("Where", unknown, ones, target))
    inverted = b.node("Sub", b.constant(1.0, np.float32), b.node("Cast", wide, to=TensorProto.FLOAT))
    lowest = b.constant(np.finfo(np.float32).min, np.float32)
    return b.node("Where", b.node("Cast", inverted, to=TensorProto.BOOL), lowest, inverted)


def encoder(width=32, heads=4, words=50, positions=16):
    b = Builder(0)
    length = b.node("Gather", b.node("Shape", "tokens"), b.constant(1), axis=0)
    numbers = b.constant(np.arange(positions)[None])
    places = b.node("Slice", numbers, b.constant([0]), b.node("Unsqueeze", length, b.constant([0])), b.constant([1]))
    embedded = b.node("Add", b.node("Gather", b.weight(words, width), "tokens"),
                      b.node("Gather", b.weight(positions, width), places))  # fmt: skip
    mask = additive_mask(b, "tokens")
    x = layer_norm_in_parts(b, embedded, width)
    x = layer_norm_in_parts(b, b.node("Add", attention(b, x, mask, width, heads), x), width)
    hidden = gelu_in_parts(b, b.node("Add", b.node("MatMul", x, b.weight(width, 64)), b.weight(64, scale=0.1)))
    out = b.node("Add", b.node("MatMul", hidden, b.weight(64, width)), b.weight(width, scale=0.1))
    scale, bias = b.weight(width, around=1, scale=0.1), b.weight(width, scale=0.1)
    y = b.node("LayerNormalization", b.node("Add", out, x), scale, bias, axis=-1)
    first = b.node("Gather", y, b.constant(0), axis=1)
    pooled = b.node("Tanh", b.node("Gemm", first, b.weight(width, width), b.weight(width, scale=0.1), transB=1))
    tokens = [("tokens", TensorProto.INT64, ["batch", "length"]), ("mask", TensorProto.INT64, ["batch", "length"])]
    return b.model(tokens, [y, pooled])


def block(b, x, before, after):
    for channels in (before, after):
        x = b.node("Conv", x, b.weight(after, channels, 3, 3), b.weight(after, scale=0.1), pads=[1] * 4)
        statistics = [b.weight(after, around=1, scale=0.1), b.weight(after, scale=0.1), b.weight(after, scale=0.1)]
        variance = f"w{len(b.weights)}"
        b.weights.append(numpy_helper.from_array(b.rng.uniform(0.5, 1.5, after).astype(np.float32), variance))
        x = b.node("Relu", b.node("BatchNormalization", x, *statistics, variance))
    return x


def upsampled_like(b, x, skip):
    """To the height and width of another tensor, by sizes that are computed, then joined with it."""
    shape = b.node("Slice", b.node("Shape", skip), b.constant([2]), b.constant([4]), b.constant([0]))
    channels = b.node("Slice", b.node("Shape", x), b.constant([0]), b.constant([2]), b.constant([0]))
    sizes = b.node("Concat", channels, shape, axis=0)
    large = b.node("Resize", x, "", "", sizes, mode="nearest", nearest_mode="floor",
                   coordinate_transformation_mode="asymmetric")  # fmt: skip
    return b.node("Concat", skip, large, axis=1)


def u_net():
    b = Builder(1)
    first = block(b, "image", 3, 8)
    second = block(b, b.node("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2]), 8, 16)
    bottom = block(b, b.node("MaxPool", second, kernel_shape=[2, 2], strides=[2, 2]), 16, 16)
    up = block(b, upsampled_like(b, bottom, second), 32, 16)
    turned = b.node("ConvTranspose", up, b.weight(16, 8, 2, 2), strides=[2, 2])
    part = b.extent(turned, 2), b.extent(turned, 3)
    cut = b.node("Slice", first, b.constant([0, 0]), b.node("Concat", *part, axis=0), b.constant([2, 3]))
    top = block(b, b.node("Concat", cut, turned, axis=1), 16, 8)
    y = b.node("Sigmoid", b.node("Conv", top, b.weight(2, 8, 1, 1), b.weight(2, scale=0.1)))
    return b.model([("image", TensorProto.FLOAT, ["n", 3, "h", "w"])], [y])


def oracles(model, feeds):
    yield ReferenceEvaluator(model).run(None, feeds)
    if importlib.util.find_spec("onnxruntime") is not None:
        import onnxruntime

        yield onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)


def check(model, feeds):
    shapes = {name: value.shape for name, value in feeds.items()}
    function = lw.from_onnx(model, shapes)
    calls = [n for n in post_order(function) if isinstance(n, Call)]
    assert not [c for c in calls if all(isinstance(a, Constant) for a in c.args)]  # what shapes decide is decided
    found = lw.Engine(lw.compile(model, shapes=shapes))(feeds)
    for expected in oracles(model, feeds):
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, atol=1e-4 * abs(b).max(), rtol=0)


@pytest.mark.parametrize(("batch", "length"), [(2, 7), pytest.param(1, 16, marks=pytest.mark.slow)])
def test_a_transformer_encoder(batch, length):
    rng = np.random.default_rng(length)
    mask = (np.arange(length) < rng.integers(3, length, (batch, 1))).astype(np.int64)
    check(encoder(), {"tokens": rng.integers(0, 50, (batch, length)), "mask": mask})


@pytest.mark.parametrize("shape", [(1, 3, 16, 24), pytest.param((2, 3, 20, 12), marks=pytest.mark.slow)])
def test_a_u_net(shape):
    image = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    check(u_net(), {"image": image})


def test_a_u_net_of_any_batch():
    """Height and width decide the sizes that it computes; the batch stays open."""
    model = u_net()
    library = lw.compile(model, shapes={"image": (None, 3, 8, 12)})
    assert library.inputs[0].shape == ("n", 3, 8, 12)
    engine = lw.Engine(library)
    for batch in (1, 3):
        image = np.random.default_rng(batch).standard_normal((batch, 3, 8, 12)).astype(np.float32)
        (expected,) = ReferenceEvaluator(model).run(None, {"image": image})
        np.testing.assert_allclose(engine([image])[0], expected, atol=1e-4 * abs(expected).max(), rtol=0)
