"""onnxruntime's operators on integers, and those that are as ONNX's, against onnxruntime."""

import numpy as np
from contrib_cases import check_contrib, check_refused, contrib_case, each_extents
from onnx_cases import bools, floats, integers, ints

rng = np.random.default_rng(0)


def whole(*shape, kind=np.uint8):
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, kind, endpoint=True)


def number(value, kind=np.float32):
    return np.array(value, kind)


def byte(value):
    return number(value, np.uint8)


def signed(value):
    return number(value, np.int8)


def weights(*shape):
    """Signed bytes so small that no pair of products is beyond int16: where a processor has no better instruction,
    onnxruntime adds them so, and saturates."""
    return rng.integers(-64, 64, shape, np.int8, endpoint=True)


A, B, IMAGE = whole(2, 5, 8), whole(8, 6), whole(2, 5, 7, 4)
SIGNED = weights(8, 6)
AT = (number(0.02), byte(120))
POOLED = (IMAGE, *AT, number(0.01), byte(110))
ROWS = {0: "BS."}


def one_step(op, *inputs, **options):
    return contrib_case(op, *inputs, steps=1, **options)


ELEMENTWISE = [
    *(
        one_step(op, A, *AT, A[::-1], number(0.03), byte(9), number(0.05), byte(100), opened={0: "BS.", 3: "BS."})
        for op in ("QLinearAdd", "QLinearMul")
    ),
    one_step("QLinearAdd", A, *AT, A[0, 0], number(0.03), byte(9), number(0.05), byte(100), label="row", const=(3,)),
    one_step(
        "QLinearMul",
        SIGNED,
        number(0.02),
        signed(3),
        signed(7),
        number(0.3),
        signed(0),
        number(0.05),
        signed(-4),
        label="signed",
    ),
    one_step(
        "QLinearAdd",
        A,
        number(0.02),
        None,
        A[::-1],
        number(0.03),
        None,
        number(0.05),
        label="no zero points",
        expected=lambda a, p, _z, b, q, _y, s: np.rint((a * p + b * q) / s).clip(0, 255).astype(np.uint8),
    ),
    one_step("QLinearSigmoid", A, *AT, number(1 / 256), byte(0), opened=ROWS, const=(1, 2, 3, 4)),
    one_step("QLinearLeakyRelu", A, *AT, number(0.03), byte(20), alpha=0.3, const=(1, 2, 3, 4)),
    one_step("QLinearSoftmax", A, *AT, number(1 / 256), byte(0), opset=13, opened=ROWS, const=(1, 2, 3, 4)),
    one_step("QLinearSoftmax", A, *AT, number(1 / 256), byte(0), opset=11, axis=1, label="flat", const=(1, 2, 3, 4)),
    one_step(
        "QLinearSoftmax",
        SIGNED,
        number(0.02),
        signed(3),
        number(1 / 256),
        signed(-128),
        opset=13,
        axis=0,
        label="axis",
        const=(1, 2, 3, 4),
    ),
    one_step(
        "QLinearConcat",
        number(0.05),
        byte(100),
        A,
        *AT,
        A[:, :2],
        number(0.07),
        byte(3),
        axis=1,
        const=(0, 1, 3, 4, 6, 7),
        opened={2: "BS.", 5: "BT."},
    ),
    one_step("QLinearWhere", bools(2, 5, 8), A, *AT, A[::-1], number(0.03), byte(9), number(0.04), byte(80)),
    one_step(
        "QLinearAveragePool",
        *POOLED,
        kernel_shape=[2, 3],
        pads=[1, 0, 0, 1],
        opened={0: "B.HW"},
        const=(1, 2, 3, 4),
    ),
    one_step(
        "QLinearAveragePool",
        *POOLED,
        kernel_shape=[3, 3],
        strides=[2, 2],
        label="last",
        pads=[1, 1, 1, 1],
        count_include_pad=1,
        channels_last=1,
        const=(1, 2, 3, 4),
    ),
    *(
        one_step(
            "QLinearAveragePool",
            *POOLED,
            kernel_shape=[2, 3],
            strides=[2, 2],
            auto_pad=same,
            channels_last=last,
            opened={0: "BHW." if last else "B.HW"},
            const=(1, 2, 3, 4),
            label=f"{same} {last}",
        )
        for same, last in (("SAME_UPPER", 0), ("SAME_LOWER", 1))
    ),
    one_step("QLinearGlobalAveragePool", *POOLED, opened={0: "B.HW"}),
    one_step("QLinearGlobalAveragePool", *POOLED, channels_last=1, label="last"),
    contrib_case("NhwcMaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], opened={0: "BHW."}),
    contrib_case("NhwcMaxPool", IMAGE.view(np.int8), kernel_shape=[3, 2], ceil_mode=1, strides=[2, 2], label="signed"),
    contrib_case(
        "NhwcMaxPool",
        IMAGE.view(np.int8),
        kernel_shape=[3, 2],
        strides=[2, 3],
        auto_pad="SAME_UPPER",
        opened={0: "BHW."},
        label="same",
    ),
]
W = weights(6, 4, 3, 3)
CONV = (np.moveaxis(IMAGE, -1, 1), *AT, W, floats(6, low=0.01, high=0.03), np.zeros(6, np.int8), number(0.5), byte(110))
LAST = (IMAGE, *CONV[1:])
BIAS = integers(6, low=-900, high=900, kind=np.int32)
PRODUCTS = [
    contrib_case(
        "MatMulIntegerToFloat", A, B, number(0.02), number(0.03), byte(7), byte(130), opened=ROWS, const=(1, 3, 5)
    ),
    contrib_case(
        "MatMulIntegerToFloat",
        A,
        SIGNED,
        number(0.02),
        floats(6),
        byte(7),
        None,
        floats(6, seed=1),
        label="columns",
        const=(1, 3, 6),
    ),
    contrib_case("MatMulIntegerToFloat", A, SIGNED, number([0.02]), number([0.03]), label="no zero points"),
    contrib_case("DynamicQuantizeMatMul", floats(2, 5, 8), B, number(0.03), byte(130), opened=ROWS, const=(1, 2, 3)),
    contrib_case(
        "DynamicQuantizeMatMul",
        floats(2, 5, 8),
        SIGNED,
        floats(6, low=0.01),
        whole(6, kind=np.int8),
        floats(6, seed=2),
        label="columns",
        const=(1, 2, 3, 4),
        tolerance=1e-4,
    ),
    contrib_case("DynamicQuantizeMatMul", floats(3, 8, low=1), SIGNED, number(0.03), label="positive", const=(1, 2)),
    contrib_case(
        "DynamicQuantizeMatMul", np.zeros((3, 8), np.float32), SIGNED, number(0.03), label="zeros", const=(1, 2)
    ),
    one_step("QGemm", A[0], *AT, B, number(0.03), byte(130), BIAS, number(2.0), byte(99), opened={0: "B."}),
    one_step(
        "QGemm",
        A[0].T,
        *AT,
        SIGNED.T,
        floats(6, low=0.01),
        np.zeros(6, np.int8),
        BIAS,
        transA=1,
        transB=1,
        alpha=0.5,
        label="real",
    ),
    one_step("QGemm", A[0], *AT, B, number(0.03), byte(130), None, number(2.0), byte(99), label="no bias"),
    contrib_case("QGemm", A[0], *AT, B, number(0.03), byte(130), BIAS, number(2.0), label="a scale, no zero point"),
    contrib_case("MatMulInteger16", whole(2, 4, 5, kind=np.int16), whole(5, 3, kind=np.int16)),
    one_step("QLinearConv", *CONV, BIAS, pads=[1, 1, 1, 1], const=(3, 4, 5, 8), opened={0: "B.HW"}),
    one_step("QLinearConv", *LAST, BIAS, pads=[1, 1, 1, 1], channels_last=1, const=(3, 4, 5, 8), label="last"),
    one_step("QLinearConv", *LAST, strides=[2, 2], channels_last=1, const=(3, 4, 5), label="no bias"),
    one_step(
        "QLinearConv",
        *LAST,
        strides=[2, 2],
        channels_last=1,
        auto_pad="SAME_LOWER",
        opened={0: "BHW."},
        const=(3, 4, 5),
        label="same",
    ),
]
GRID = floats(2, 3, 4, 2, low=-1.2, high=1.2)
MATRICES = floats(2, 3, 5, 5)
PERMUTED = np.eye(4, dtype=np.float32)[[2, 0, 3, 1]] * 3
STANDARD = [
    contrib_case("QuantizeLinear", floats(2, 5, low=-9, high=9), number(0.01), number(20, np.uint16), label="uint16"),
    contrib_case("QuantizeLinear", floats(4, 5, low=-9, high=9), floats(5, low=0.1), whole(5, kind=np.int8), axis=1),
    contrib_case(
        "QuantizeLinear",
        floats(4, 5, low=-9, high=9, kind=np.float16),
        number(0.1, np.float16),
        byte(128),
        label="half",
        steps=1,
    ),
    contrib_case("DequantizeLinear", whole(4, 5, kind=np.int16), number(0.01), number(-3, np.int16), label="int16"),
    contrib_case("DequantizeLinear", whole(4, 5), floats(4), whole(4), axis=0, opened={0: ".S"}),
    contrib_case("DequantizeLinear", A, number(0.01, np.float16), byte(9), label="half", tolerance=2e-3),
    contrib_case("ExpandDims", floats(2, 3), number(-1, np.int32), const=(1,), opened={0: "BS"}),
    contrib_case("GatherND", floats(2, 3, 4), ints([0, 1], [1, 2])),
    contrib_case("GridSample", floats(2, 3, 5, 6), GRID, opened={0: "B.HW", 1: "BMN."}),
    contrib_case(
        "GridSample",
        floats(2, 3, 5, 6),
        GRID,
        mode="bicubic",
        padding_mode="reflection",
        align_corners=1,
        label="cubic",
        tolerance=1e-4,
    ),
    contrib_case("Pad", floats(2, 3), ints(0, 1, 2, 0), number(1.5), const=(1, 2), opened={0: "BS"}),
    contrib_case("Pad", floats(4, 3), ints(1, 1, 2, 0), mode="reflect", label="run time"),
    contrib_case("Trilu", floats(2, 4, 5), ints(1).reshape(()), upper=0, const=(1,), opened={0: "BST"}),
    contrib_case("Trilu", floats(2, 4, 5), label="no diagonal"),
    contrib_case("Range", ints(2).reshape(()), ints(9).reshape(()), const=(0, 1), label="no step"),
    contrib_case("Range", number(1.0), number(3.0), number(0.3), label="run time"),
    contrib_case("CDist", floats(4, 8), floats(6, 8), tolerance=1e-4, opened={0: "M.", 1: "N."}),
    contrib_case("CDist", floats(4, 8, kind=np.float64), floats(6, 8, kind=np.float64), metric="euclidean"),
    contrib_case("Unique", np.array([4, 1, 4, 3, 1, 1], np.float32), wanted=3, opened={0: "N"}),
    contrib_case("Inverse", MATRICES, tolerance=1e-4, opened={0: "BN.."}),
    contrib_case("Inverse", MATRICES[0, 0].astype(np.float64), label="one matrix"),
    contrib_case("Inverse", PERMUTED, label="pivots", tolerance=1e-4),
    contrib_case("Inverse", MATRICES[:0], label="empty"),
]
CASES = [*ELEMENTWISE, *PRODUCTS, *STANDARD]


@each_extents(CASES)
def test_an_operator_gives_what_onnxruntime_gives(case, opened):
    check_contrib(case, opened)


def test_what_has_no_conversion_is_told():
    check_refused(
        contrib_case("CDist", floats(4, 8), floats(6, 8), metric="cosine"), "the metric 'cosine' is not supported"
    )
    check_refused(contrib_case("Inverse", floats(4, 8)), "whose matrices are not square")
