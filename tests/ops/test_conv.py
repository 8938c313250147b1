"""Convolutions, also transposed ones: types, misuse, values against slow numpy and onnx's reference evaluator."""

import numpy as np
import onnx
import pytest
import windows
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator
from pairs import each_value

import loopwright as lw
from loopwright import te
from loopwright.base.errors import TypeInferenceError
from loopwright.graph.types import tensor_type
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.conv.attrs import Conv1DAttrs, Conv2DAttrs, Conv3DAttrs
from loopwright.ops.families.conv.conv import CONV2D, conv, conv1d, conv2d, conv3d
from loopwright.ops.families.conv.transpose import conv2d_transpose, conv_transpose
from loopwright.te import var as dimension

rng = np.random.default_rng(0)
SMALL = ((2, 3, 5, 6), (4, 3, 3, 3))
# x, weight, strides, padding, dilations, groups
CASES = {
    "1d": ((2, 3, 11), (4, 3, 3), (1,), (0, 0), (1,), 1),
    "1d strided, padded unevenly": ((1, 2, 12), (5, 2, 4), (3,), (2, 1), (2,), 1),
    "pointwise": ((2, 5, 6, 7), (9, 5, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "pointwise strided": ((1, 5, 7, 6), (3, 5, 1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "3x3 padded": ((1, 4, 9, 7), (6, 4, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "3x3 strided": ((1, 3, 13, 14), (8, 3, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    "7x7 strided": ((1, 3, 21, 20), (8, 3, 7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1),
    "uneven all over": ((1, 3, 10, 17), (7, 3, 2, 5), (3, 2), (0, 3, 1, 2), (2, 1), 1),
    "dilated": ((1, 2, 12, 12), (3, 2, 3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 1),
    "grouped": ((2, 6, 8, 8), (9, 2, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    "depthwise": ((1, 5, 9, 18), (5, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5),
    "depthwise strided, multiplied": ((1, 4, 9, 9), (8, 1, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 4),
    "depthwise 5x5, dilated": ((1, 3, 14, 20), (3, 1, 5, 5), (1, 1), (4, 4, 4, 4), (2, 2), 3),
    "depthwise 7x7": ((1, 3, 14, 14), (3, 1, 7, 7), (1, 1), (3, 3, 3, 3), (1, 1), 3),
    "depthwise 7x7, column by column": ((1, 2, 38, 33), (2, 1, 7, 7), (1, 1), (3, 2, 1, 3), (1, 1), 2),
    "depthwise 7x7 strided, 22 rows": ((1, 2, 43, 37), (2, 1, 7, 7), (2, 2), (3, 2, 3, 3), (1, 1), 2),
    "depthwise 5x5, every third, dilated": ((1, 3, 27, 57), (3, 1, 5, 5), (2, 3), (4, 3, 2, 4), (2, 2), 3),
    "depthwise, too large to copy at once": ((1, 2, 110, 80), (2, 1, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 2),
    "depthwise, 1d": ((2, 3, 40), (6, 1, 4), (2,), (1, 2), (1,), 3),
    "depthwise, 3d": ((1, 3, 4, 5, 9), (3, 1, 3, 3, 3), (1, 2, 1), (1,) * 6, (1, 1, 1), 3),
    "3d": ((1, 2, 5, 6, 7), (4, 2, 2, 3, 3), (1, 2, 1), (0, 1, 1, 1, 1, 1), (1, 1, 1), 1),
    "3d grouped": ((1, 4, 4, 4, 5), (4, 2, 3, 1, 2), (1, 1, 2), (1, 0, 1, 1, 0, 0), (1, 1, 1), 2),
}


def check_conv(ops, x, w, strides, padding, dilations, groups, native):
    a, b = rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)
    found = ops.apply(conv, a, b, native=native, strides=strides, padding=padding, dilation=dilations, groups=groups)
    wanted = windows.conv(a, b, strides, padding, dilations, groups)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize("case", CASES)
def test_convolutions_are_right(ops, case, native):
    check_conv(ops, *CASES[case], native)


@st.composite
def conv_cases(draw):
    rank = draw(st.integers(1, 3))
    many = {1: 20, 2: 12, 3: 6}[rank]

    def numbers(low, high, count=rank):
        return tuple(draw(st.integers(low, high)) for _ in range(count))

    window, strides, dilations = numbers(1, 4), numbers(1, 3), numbers(1, 2)
    padding = numbers(0, 2, 2 * rank)
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    extents = [draw(st.integers(max(1, r - padding[d] - padding[d + rank]), max(r, many))) for d, r in enumerate(reach)]
    groups, per_group, filters = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 9))
    x = (draw(st.integers(1, 2)), groups * per_group, *extents)
    return x, (groups * filters, per_group, *window), strides, padding, dilations, groups


@settings(max_examples=15)
@given(conv_cases())
def test_random_convolutions_are_right_native(ops, case):
    check_conv(ops, *case, native=True)


def onnx_outputs(op, arrays, **attributes):
    """What onnx's reference evaluator gives for one node."""
    names = [f"x{k}" for k in range(len(arrays))]
    values = [
        helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape) for n, a in zip(names, arrays, strict=True)
    ]
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))[0]


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_auto_pad_is_as_in_onnx(ops, auto_pad):
    a, b = rng.normal(size=(1, 2, 10, 7)).astype(np.float32), rng.normal(size=(3, 2, 4, 3)).astype(np.float32)
    found = ops.apply(conv, a, b, strides=(2, 3), auto_pad=auto_pad)
    wanted = onnx_outputs("Conv", [a, b], strides=[2, 3], auto_pad=auto_pad, kernel_shape=[4, 3])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_padding_of_infinities_cannot_come_in(ops):
    a = np.full((1, 1, 3, 3), np.inf, np.float32)
    found = ops.apply(conv, a, np.ones((1, 1, 3, 3), np.float32), padding=1, native=True)
    assert np.all(np.isposinf(found))


def test_half_precision_is_summed_in_float32(ops):
    a, b = np.ones((1, 3000, 1), np.float16), np.ones((1, 3000, 1), np.float16)
    assert ops.apply(conv, a, b)[0, 0, 0] == 3000
    a[0, -1], b[0, -1] = 0.25, 1
    wide = ops.apply(conv, a, b, out_dtype="float32", native=True)
    assert wide.dtype == np.float32
    assert wide[0, 0, 0] == 2999.25


@pytest.mark.parametrize("kinds", [(np.int8, np.int8), (np.uint8, np.int8), (np.int8, np.uint8)], ids=str)
def test_integers_of_8_bits_are_summed_in_int32(ops, kinds):
    a, b = (rng.integers(np.iinfo(k).min, np.iinfo(k).max + 1, s).astype(k) for k, s in zip(kinds, SMALL, strict=True))
    wanted = windows.conv(a, b, (1, 1), (1,) * 4, (1, 1), 1)
    for native in (False, True):
        found = ops.apply(conv, a, b, padding=1, native=native)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, wanted)


def test_attributes_are_normalised(ops):
    x, w = ops.var((1, 4, 9, 9)), ops.var((8, 4, 3, 3))
    call = conv2d(x, w, strides=2, padding=(1, 2), dilation=1, kernel_size=3)
    assert call.op.name == "nn.conv2d"
    assert call.attrs == Conv2DAttrs(strides=(2, 2), padding=(1, 2, 1, 2), kernel_size=(3, 3))
    assert conv(ops.var((1, 4, 9)), ops.var((8, 4, 3)), padding=1).attrs == Conv1DAttrs(padding=(1, 1))
    assert conv(ops.var((1, 9, 4)), ops.var((8, 4, 3)), data_layout="NWC").op.name == "nn.conv1d"
    assert conv3d(ops.var((1, 4, 9, 5, 5)), ops.var((8, 4, 3, 1, 1))).attrs == Conv3DAttrs()


def test_types_symbolic_batch_and_extents(ops):
    n, h = dimension("n"), dimension("h")
    call = conv2d(ops.var((n, 3, h, 32)), ops.var((8, 3, 3, 3)), padding=1)
    assert call.type is tensor_type((n, 8, h, 32), "float32")
    x, w = ops.var((n, 3, 5, 6)), ops.var((4, 3, 3, 3))
    a, b = rng.normal(size=(2, 3, 5, 6)).astype(np.float32), rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    wanted = windows.conv(a, b, (1, 1), (1,) * 4, (1, 1), 1)
    for native in (False, True):
        found = ops.evaluate(conv(x, w, padding=1), {x: a, w: b}, native=native)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "w", "groups", "name"),
    [
        (conv, (8, 4, 3, 3), 1, "conv.shifted"),
        (conv, (8, 4, 1, 1), 1, "conv.pointwise"),
        (conv, (4, 1, 3, 3), 4, "conv.depthwise"),
        (conv_transpose, (4, 3, 3, 3), 1, "conv_transpose.phased"),
    ],
)
def test_a_symbolic_batch_keeps_the_fast_implementations(ops, make, w, groups, name):
    x, weight = ops.var((dimension("n"), 4, 7, 9)), ops.var(w)
    call = make(x, weight, groups=groups)
    assert ops.implement(call)[0].name == name
    a, b = rng.normal(size=(3, 4, 7, 9)).astype(np.float32), rng.normal(size=w).astype(np.float32)
    if make is conv:
        wanted = windows.conv(a, b, (1, 1), (0,) * 4, (1, 1), groups)
    else:
        wanted = windows.conv_transpose(a, b, (1, 1), (0,) * 4, (1, 1), (0, 0), groups)
    for batch in (1, 3):
        found = ops.evaluate(call, {x: a[:batch], weight: b}, native=True)
        np.testing.assert_allclose(found, wanted[:batch], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("channels", "filters", "window", "dilation", "stride"),
    [(240, 64, 3, 12, 1), (64, 64, 5, 12, 1), (64, 32, 5, 6, 2), (240, 21, 3, 12, 2)],
)
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
def test_windows_that_reach_far_have_a_schedule(channels, filters, window, dilation, stride, target):
    x = lw.var("x", (1, channels, 33, 33))
    weight = lw.const(np.zeros((filters, channels, window, window), np.float32))
    pad = dilation * (window - 1) // 2
    made = lw.nn.relu(conv(x, weight, strides=(stride,) * 2, padding=(pad,) * 4, dilation=(dilation,) * 2))
    explained = lw.explain(lw.Function([x], made), target)
    verdicts = [c.verdict for f in explained.functions for choice in f.choices for c in choice.candidates]
    assert "refused" not in verdicts, explained


# x, weight, strides, padding, dilations, output_padding, groups
TRANSPOSED = {
    "1d": ((1, 2, 5), (2, 3, 3), (1,), (0, 0), (1,), (0,), 1),
    "1d strided": ((2, 3, 6), (3, 2, 4), (3,), (1, 2), (1,), (1,), 1),
    "doubling": ((1, 4, 5, 6), (4, 3, 2, 2), (2, 2), (0, 0, 0, 0), (1, 1), (0, 0), 1),
    "3x3 strided": ((1, 3, 5, 4), (3, 4, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "dilated": ((1, 2, 5, 5), (2, 3, 3, 2), (1, 1), (0, 1, 1, 0), (2, 3), (0, 0), 1),
    "dilated and strided": ((1, 2, 5, 5), (2, 3, 3, 2), (2, 3), (0, 1, 1, 0), (2, 3), (1, 0), 1),
    "grouped": ((1, 6, 4, 5), (6, 2, 3, 3), (2, 1), (1, 0, 0, 1), (1, 1), (0, 0), 3),
    "3d": ((1, 2, 3, 3, 4), (2, 2, 2, 3, 2), (1, 2, 2), (0, 0, 1, 0, 1, 0), (1, 1, 1), (0, 1, 0), 1),
    "larger than the windows reach": ((1, 1, 3), (1, 1, 2), (2,), (0, -3), (1,), (0,), 1),
}


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolutions_are_right(ops, case, native):
    x, w, strides, padding, dilations, extra, groups = TRANSPOSED[case]
    a, b = rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)
    found = ops.apply(
        conv_transpose,
        a,
        b,
        native=native,
        strides=strides,
        padding=padding,
        dilation=dilations,
        output_padding=extra,
        groups=groups,
    )
    wanted = windows.conv_transpose(a, b, strides, padding, dilations, extra, groups)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "attributes",
    [
        {"auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER"},
        {"output_shape": [10, 8]},
        {"output_shape": [9, 8], "auto_pad": "SAME_UPPER"},
    ],
    ids=str,
)
def test_transposed_padding_is_chosen_as_in_onnx(ops, attributes):
    a, b = rng.normal(size=(1, 2, 4, 4)).astype(np.float32), rng.normal(size=(2, 3, 4, 3)).astype(np.float32)
    found = ops.apply(conv_transpose, a, b, strides=2, **attributes)
    if "auto_pad" in attributes:
        wanted = onnx_outputs("ConvTranspose", [a, b], strides=[2, 2], **attributes)
    else:  # the evaluator takes pads of 0 then; the standard: the odd element is cut off at the beginning
        wanted = windows.conv_transpose(a, b, (2, 2), (0, 1, 0, 0), (1, 1), (0, 0), 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_transposed_convolution_reads_no_zero_times_infinity(ops):
    a, b = np.full((1, 1, 2), np.inf, np.float32), np.ones((1, 1, 3), np.float32)
    found = ops.apply(conv_transpose, a, b, strides=4, native=True)
    np.testing.assert_array_equal(found[0, 0], [np.inf] * 3 + [0] + [np.inf] * 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: conv(v((1, 3)), v((4, 3))), "at least one spatial axis"),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3, 3))), "weight: the layout OIW has 3 axes, the shape (4, 3, 3, 3) 4"),
        (
            lambda v: conv(v((1, 4, 8)), v((4, 3, 3))),
            "x has 4 channels, but a weight of 3 channels in 1 groups needs 3",
        ),
        (lambda v: conv(v((1, 4, 8)), v((3, 2, 3)), groups=2), "3 filters do not fall into 2 groups"),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3), "float64")), "x is float32, but weight is float64"),
        (lambda v: conv(v((1, 3, 8), "bool"), v((4, 3, 3), "bool")), "a product is of numbers, not of bool"),
        (lambda v: conv(v((1, 3, 2)), v((4, 3, 3))), "is larger than the extent 2"),
        (
            lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), strides=0),
            "Conv1DAttrs.strides must be positive integers",
        ),
        (
            lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), padding=-1),
            "Conv1DAttrs.padding must be integers of 0 or more",
        ),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), strides=(1, 1)), "strides needs a number for each of the 1"),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), auto_pad="SAME"), "auto_pad must be"),
        (lambda v: conv(v((1, 3, dimension())), v((4, 3, 3)), strides=2, auto_pad="SAME_UPPER"), "known extent"),
        (
            lambda v: conv2d(v((1, 3, 8)), v((4, 3, 3))),
            "nn.conv2d: x: the layout NCHW has 4 axes",
        ),
        (lambda v: conv(v((1, 2, 3, 4, 5, 6)), v((1,) * 6)), "nn.conv: there may be 1 to 3 spatial axes, found 4"),
        (
            lambda v: conv1d(v((1, 3, 8)), v((4, 3, 3)), data_layout="NHWC"),
            "nn.conv1d: data_layout must have the axes",
        ),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), kernel_layout="OHWI"), "kernel_layout must have the axes O, I, W"),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), out_layout="NCHW"), "out_layout must have the axes N, C, W"),
        (lambda v: conv(v((1, 3, 8, 2)), v((4, 3, 3)), data_layout="NCW2w"), "may have blocks of C only, found NCW2w"),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), out_layout="NCW8c"), "needs C in blocks of 8, which 4 is not"),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), channels=5), "channels is 5, but weight has 4 filters"),
        (
            lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), kernel_size=2),
            "kernel_size is (2,), but the window of weight",
        ),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, dimension()))), "the window of weight must have known extents"),
        (
            lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), out_dtype="float16"),
            "sums of products of float32 and float32 are float32; cast them",
        ),
        (
            lambda v: conv(v((1, 3, 8), "int8"), v((4, 3, 3), "uint8"), out_dtype="int8"),
            "sums of products of int8 and uint8 are int32; cast them",
        ),
        (lambda v: conv(v((1, 3, 8)), v((4, 3, 3)), out_dtype="f3"), "nn.conv1d(x: float32[1, 3, 8], weight: float32"),
        (lambda v: CONV2D(v((1, 3, 8, 8)), v((4, 3, 3, 3)), attrs=Conv2DAttrs(strides=(1,))), "strides must have 2"),
        (lambda v: conv2d_transpose(v((1, 3, 8)), v((4, 3, 3))), "nn.conv2d_transpose: x needs the axes N, C, H, W"),
        (lambda v: conv_transpose(v((1, 3, 8)), v((4, 3, 3))), "x has 3 channels, but the weight is for 4"),
        (lambda v: conv_transpose(v((1, 3, 8)), v((3, 3, 3)), groups=2), "3 channels do not fall into 2 groups"),
        (lambda v: conv_transpose(v((1, 3, 1)), v((3, 3, 1)), padding=1), "cuts off more than there is"),
        (lambda v: conv_transpose(v((1, 3, 4)), v((3, 3, 1)), output_shape=[3, 3, 3, 3]), "output_shape needs the 1"),
        (lambda v: conv_transpose(v((1, 3, 4), "int8"), v((3, 3, 1), "int8")), "is of floats, not of int8"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)


TARGETS = ["native", *(["x86-64-v3", "x86-64"] if lw.resolve_target("native").has("avx2") else [])]
FUSED = {
    "pointwise": ((1, 40, 9, 10), (24, 40, 1, 1), 1, 0, 1),
    "pointwise, wide": ((2, 8, 40, 40), (30, 8, 1, 1), 1, 0, 1),
    "pointwise strided": ((1, 8, 21, 21), (16, 8, 1, 1), 2, 0, 1),
    "3x3": ((2, 6, 15, 17), (16, 6, 3, 3), 1, 1, 1),
    "3x3 strided": ((1, 6, 15, 17), (16, 6, 3, 3), 2, 1, 1),
    "5x5 grouped": ((1, 6, 15, 17), (15, 2, 5, 5), 1, 2, 3),
    "depthwise": ((1, 7, 15, 17), (7, 1, 3, 3), 1, 1, 7),
    "depthwise strided": ((1, 7, 15, 17), (14, 1, 3, 3), 2, 1, 7),
}


@each_value(case=FUSED, target=TARGETS)
def test_what_follows_is_computed_in_the_same_nest(ops, case, target):
    """Bias, residual and activation in one function; then the sums as an output of their own besides."""
    x, w, stride, pad, groups = FUSED[case]
    resolved = lw.resolve_target(target)
    call = conv(ops.var(x), ops.var(w), stride, pad, 1, groups)
    chosen, tensors, computed = ops.implement(call, resolved)
    (sums,) = outputs_of(computed)
    assert chosen.name in ("conv.pointwise", "conv.shifted", "conv.depthwise")
    bias = te.placeholder((w[0],), name="bias")
    residual = te.placeholder(sums.shape, name="residual")
    biased = te.compute(sums.shape, lambda n, k, *o: sums[(n, k, *o)] + bias[k], name="biased")
    out = te.compute(sums.shape, lambda *i: te.maximum(biased[i] + residual[i], 0.0), name="out")
    arrays = [rng.normal(size=[int(e) for e in t.shape]).astype(np.float32) for t in (*tensors, bias, residual)]
    wanted_sums = windows.conv(*arrays[:2], (stride,) * 2, (pad,) * 4, (1, 1), groups)
    wanted = np.maximum(wanted_sums + arrays[2][:, None, None] + arrays[3], 0)
    for outputs in ([out], [sums, out], [biased, out]):
        schedule = chosen.schedule(call.attrs, computed, tuple(outputs), resolved)
        args = [*tensors, bias, residual, *outputs]
        found = [np.empty(wanted.shape, np.float32) for _ in outputs]
        lw.build(schedule, args, target=resolved)(*arrays, *found)
        np.testing.assert_allclose(found[-1], wanted, rtol=1e-4, atol=1e-4)
        if outputs[0] is sums:
            np.testing.assert_allclose(found[0], wanted_sums, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", ["doubling", "3x3 strided", "grouped"])
def test_what_follows_a_transposed_convolution_is_computed_in_the_same_nest(ops, case):
    x, w, strides, padding, dilations, extra, groups = TRANSPOSED[case]
    call = conv_transpose(ops.var(x), ops.var(w), strides, padding, dilations, extra, groups)
    target = lw.resolve_target("native")
    chosen, tensors, computed = ops.implement(call, target)
    (sums,) = outputs_of(computed)
    assert chosen.name == "conv_transpose.phased"
    bias = te.placeholder((sums.shape[1],), name="bias")
    out = te.compute(sums.shape, lambda n, k, *o: te.maximum(sums[(n, k, *o)] + bias[k], 0.0), name="out")
    arrays = [rng.normal(size=[int(e) for e in t.shape]).astype(np.float32) for t in (*tensors, bias)]
    wanted = windows.conv_transpose(*arrays[:2], strides, padding, dilations, extra, groups)
    for outputs in ([out], [sums, out]):
        found = [np.empty(wanted.shape, np.float32) for _ in outputs]
        schedule = chosen.schedule(call.attrs, computed, tuple(outputs), target)
        lw.build(schedule, [*tensors, bias, *outputs], target=target)(*arrays, *found)
        np.testing.assert_allclose(found[-1], np.maximum(wanted + arrays[2][:, None, None], 0), rtol=1e-4, atol=1e-4)
        if outputs[0] is sums:
            np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-4)


@st.composite
def transposed_cases(draw):
    rank = draw(st.integers(1, 2))

    def numbers(low, high, count=rank):
        return tuple(draw(st.integers(low, high)) for _ in range(count))

    window, strides, dilations = numbers(1, 4), numbers(1, 3), numbers(1, 3)
    extra = tuple(draw(st.integers(0, max(s, d) - 1)) for s, d in zip(strides, dilations, strict=True))
    extents = numbers(1, 9)
    full = [
        (n - 1) * s + (w - 1) * d + 1 + e
        for n, s, w, d, e in zip(extents, strides, window, dilations, extra, strict=True)
    ]
    begins = tuple(draw(st.integers(0, min(2, f - 1))) for f in full)
    ends = tuple(draw(st.integers(-1, min(2, f - b - 1))) for f, b in zip(full, begins, strict=True))
    groups, per_group, filters = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    x = (draw(st.integers(1, 2)), groups * per_group, *extents)
    return x, (groups * per_group, filters, *window), strides, (*begins, *ends), dilations, extra, groups


@settings(max_examples=15)
@given(transposed_cases())
def test_random_transposed_convolutions_are_right_native(ops, case):
    x, w, strides, padding, dilations, extra, groups = case
    a, b = rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32)
    attrs = {"strides": strides, "padding": padding, "dilation": dilations, "output_padding": extra, "groups": groups}
    found = ops.apply(conv_transpose, a, b, native=True, **attrs)
    wanted = windows.conv_transpose(a, b, strides, padding, dilations, extra, groups)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
