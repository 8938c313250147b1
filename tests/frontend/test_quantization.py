"""ONNX's quantized operators, in each version, against the reference; forms that have no conversion."""

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import case, check, each_version, floats, make_model, model_of, run

import loopwright as lw
from loopwright.graph.node import Call, tensor_of
from loopwright.graph.visit import post_order

VERSIONS = (10, 13, 19, 21, 23, 24, 25, 28)
rng = np.random.default_rng(0)


def scalar(value, kind=np.float32):
    return np.array(value, kind)


def integers(shape, kind):
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, kind, endpoint=True)


A, B = integers((3, 20), np.uint8), integers((20, 5), np.int8)
X, W = integers((2, 4, 6, 5), np.uint8), integers((6, 4, 3, 3), np.int8)
REAL = np.concatenate([floats(12, low=-300, high=300), np.array([0.5, 1.5, -2.5, 1e9, -1e9, 0], np.float32)])
ROW = np.array([3, 250, 0], np.uint8)
HALF = np.float16


def dequantized(versions, *inputs, label="", **attrs):
    """The reference has no version before 19, which is as these are."""
    reference = ReferenceEvaluator(model_of(case("DequantizeLinear", (19,), *inputs, **attrs), 19))
    (wanted,) = reference.run(None, {f"x{k}": x for k, x in enumerate(inputs)})
    old, new = [v for v in versions if v < 19], [v for v in versions if v >= 19]
    yield case("DequantizeLinear", old, *inputs, label=label, expected=lambda *x: wanted, **attrs)
    yield case("DequantizeLinear", new, *inputs, label=label, **attrs)


CONVERSIONS = [
    case("QuantizeLinear", VERSIONS, REAL, scalar(1.0), label="defaults"),
    case("QuantizeLinear", VERSIONS, REAL, scalar(0.7), scalar(-5, np.int8)),
    case("QuantizeLinear", VERSIONS[1:], REAL.reshape(3, 6), floats(6, low=0.5), integers(6, np.uint8), label="axis"),
    case("QuantizeLinear", VERSIONS[1:], REAL.reshape(3, 6), floats(3, low=0.5), integers(3, np.int8), axis=-2),
    case("QuantizeLinear", VERSIONS[3:], REAL[:12], scalar(0.001), output_dtype=5, label="int16"),
    *dequantized(VERSIONS, A, scalar(0.3), scalar(100, np.uint8)),
    *dequantized(VERSIONS, A.astype(np.int32), scalar(0.3), label="no zero point"),
    *dequantized(VERSIONS[1:], A, floats(20), integers(20, np.uint8), label="axis"),
    *dequantized(VERSIONS[1:], A, floats(3), integers(3, np.uint8), axis=0, label="rows"),
    case("DequantizeLinear", VERSIONS[2:], A, scalar(0.25, HALF), scalar(9, np.uint8), label="half", tolerance=1e-3),
    case("DequantizeLinear", VERSIONS[4:], A, scalar(0.25, HALF), output_dtype=1, label="output"),
]
PRODUCTS = [
    case("DynamicQuantizeLinear", (11,), floats(3, 4), outputs=3),
    case("MatMulInteger", (10,), A, B, label="no zero points"),
    case("MatMulInteger", (10,), A, B, scalar(7, np.uint8), scalar(-3, np.int8)),
    case("MatMulInteger", (10,), A, B, scalar(7, np.uint8), scalar(0, np.int8), const=(1, 2, 3), label="known"),
    case("MatMulInteger", (10,), A, B.view(np.uint8), ROW[1], scalar(128, np.uint8), const=(1, 3), label="middle"),
    case("MatMulInteger", (10,), A, B, ROW, integers(5, np.int8), label="rows and columns",
         expected=lambda a, b, p, q: (a.astype(np.int32) - p[:, None]) @ (b.astype(np.int32) - q)),
    case("MatMulInteger", (10,), A[0], B, scalar(7, np.uint8), label="vector"),
    case("QLinearMatMul", (10, 21), A, scalar(0.02), scalar(120, np.uint8), B, scalar(0.03), scalar(2, np.int8),
         scalar(0.4), scalar(110, np.uint8)),
]  # fmt: skip
CONVOLUTIONS = [
    case("ConvInteger", (10,), X, W, pads=[1, 1, 0, 1], label="no zero points"),
    case("ConvInteger", (10,), X, W.view(np.uint8), scalar(9, np.uint8), scalar(128, np.uint8), const=(1, 2, 3),
         pads=[1, 1, 0, 1]),
    case("ConvInteger", (10,), X, W, scalar(9, np.uint8), auto_pad="SAME_UPPER", strides=[2, 1], label="dynamic"),
    case("ConvInteger", (10,), X, W[:, :2], scalar(9, np.uint8), group=2, label="groups"),
    case("ConvInteger", (10,), X, W, scalar(9, np.uint8), integers(6, np.int8), label="filters",
         expected=lambda x, w, p, q: convolution(x - np.float32(p), w - np.float32(q)[:, None, None, None])),
    case("ConvInteger", (10,), X, W.view(np.uint8), scalar(9, np.uint8), scalar(121, np.uint8), const=(1, 3),
         pads=[1, 1, 0, 1], strides=[1, 2], label="beside the middle"),
    case("ConvInteger", (10,), X, W[:, :2].view(np.uint8), scalar(9, np.uint8), scalar(7, np.uint8), const=(1, 2, 3),
         group=2, label="groups beside the middle"),
    case("ConvInteger", (10,), X, W, scalar(9, np.uint8), integers(6, np.int8), const=(1, 3), label="known filters",
         expected=lambda x, w, p, q: convolution(x - np.float32(p), w - np.float32(q)[:, None, None, None])),
    case("QLinearConv", (10,), X, scalar(0.02), scalar(120, np.uint8), W, floats(6, low=0.01, high=0.03),
         np.zeros(6, np.int8), scalar(0.5), scalar(110, np.uint8), integers(6, np.int16).astype(np.int32),
         const=(2, 3, 5, 8), pads=[1, 1, 1, 1]),
]  # fmt: skip
CASES = [*CONVERSIONS, *PRODUCTS, *CONVOLUTIONS]


def convolution(x, w):
    return ReferenceEvaluator(model_of(case("Conv", (11,), x, w), 11)).run(None, {"x0": x, "x1": w})[0].astype(np.int32)


@each_version(CASES)
def test_an_operator_gives_what_the_reference_gives(case, version):
    check(case, version)


def test_bytes_chosen_while_it_runs_are_multiplied_as_bytes():
    """The scale and zero point of DynamicQuantizeLinear depend on the data."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["a", "scale", "zero"]),
        helper.make_node("MatMulInteger", ["a", "b", "zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["real"], to=1),
        helper.make_node("Mul", ["real", "scale"], ["y"]),
    ]
    x = floats(3, 20)
    model = make_model(nodes, {"x": x}, ["y"], 13, {"b": B})
    library = lw.compile(lw.from_onnx(model))
    assert any("matmul" in f.name for f in library.functions)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(run(model, {"x": x})[0], wanted, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("shape", [(3, 4), (1,), (), (0, 4)])
def test_nothing_but_zeros_has_the_scale_1(shape):
    nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["a", "scale", "zero"])]
    x = np.zeros(shape, np.float32)
    a, scale, zero = run(make_model(nodes, {"x": x}, ["a", "scale", "zero"], 13), {"x": x})
    np.testing.assert_array_equal(a, np.zeros(shape, np.uint8))
    assert (scale, zero) == (1.0, 0)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (case("QuantizeLinear", (21,), floats(2), scalar(1.0), output_dtype=1), "quantization to float32"),
    ],
)
def test_what_has_no_conversion_is_told(made, message):
    with pytest.raises(lw.ModelError, match=message):
        lw.from_onnx(model_of(made, made.versions[0]))


def products_of(model):
    """The dtypes of what is multiplied in a model as it was imported."""
    found = (node for node in post_order(lw.from_onnx(model).body) if isinstance(node, Call))
    products = [
        node for node in found if node.op.name.startswith(("nn.conv", "nn.dense", "nn.matmul", "nn.batch_matmul"))
    ]
    return {str(tensor_of(argument).dtype) for product in products for argument in product.args}


@pytest.mark.parametrize("filters", [(), (6,)], ids=["one", "each"])
@pytest.mark.parametrize(("kind", "zero"), [(np.int8, 0), (np.uint8, 128), (np.int8, -9), (np.uint8, 121)])
def test_known_weights_of_convolutions_stay_bytes(kind, zero, filters):
    """Also where each filter has a zero point, whatever shape that is given."""
    zero = np.full(filters, zero, kind)
    made = case("ConvInteger", (10,), X, W.view(kind), scalar(9, np.uint8), zero, const=(1, 2, 3))
    assert products_of(model_of(made, 10)) == {"uint8", "int8"}


@pytest.mark.parametrize("rows", [40, 400])
def test_known_weights_that_are_turned_stay_signed_bytes(rows):
    """QGemm has them column by column; large ones are turned when the model is compiled, not imported."""
    weights = np.random.default_rng(0).integers(0, 256, (rows, 200), np.uint8)
    x = np.random.default_rng(1).integers(0, 256, (3, 200), np.uint8)
    scales = scalar(0.01), scalar(0.02)
    made = case(
        "QGemm", (1,), x, scales[0], scalar(7, np.uint8), weights, scales[1], scalar(128, np.uint8),
        const=(1, 2, 3, 4, 5), domain="com.microsoft", transB=1,
    )  # fmt: skip
    model = model_of(made, 1)
    assert products_of(model) == {"uint8", "int8"}
    wanted = (x.astype(np.float64) - 7) @ (weights.T.astype(np.float64) - 128) * 0.01 * 0.02
    np.testing.assert_allclose(lw.Engine(lw.compile(model))(made.fed)[0], wanted, rtol=1e-5)
