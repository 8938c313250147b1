"""onnxruntime's elementwise operators, products and normalisations, against onnxruntime."""

import numpy as np
import pytest
from contrib_cases import check_contrib, check_refused, contrib_case, each_extents
from onnx_cases import floats, integers
from scipy.special import erf

HALF = np.float16
X, ROW = floats(2, 5, 16), floats(16, seed=3)
ACTIVATIONS = [
    ("Relu", {}),
    ("Tanh", {}),
    ("Sigmoid", {}),
    ("LeakyRelu", {"activation_alpha": 0.2}),
    ("Elu", {"activation_alpha": 0.7}),
    ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
    ("Softplus", {}),
    ("Softsign", {}),
    ("Selu", {"activation_alpha": 1.6, "activation_gamma": 1.05}),
    ("ThresholdedRelu", {"activation_alpha": 0.5}),
]
IMAGE, FILTERS = floats(2, 4, 6, 7), floats(6, 4, 3, 3)


def gelu(x):
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def group_norm(x, gamma, beta, groups, silu=False, last=True):
    first = np.moveaxis(x, -1, 1) if last else x
    grouped = first.reshape(len(x), groups, -1).astype(np.float64)
    normal = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    shape = (-1, *(1,) * (x.ndim - 2))
    y = normal.reshape(first.shape) * gamma.reshape(shape) + beta.reshape(shape)
    y = y / (1 + np.exp(-y)) if silu else y
    return (np.moveaxis(y, 1, -1) if last else y).astype(x.dtype)


def with_skip(x, gamma, beta, skip, bias=None):
    total = x + skip.reshape(len(x), *(1,) * (x.ndim - skip.ndim), *skip.shape[1:]) + (0 if bias is None else bias)
    return group_norm(total, gamma, beta, 2), total


def nhwc_conv(x, w, bias=None):
    out = np.zeros((len(x), x.shape[1] - 2, x.shape[2] - 2, len(w)), x.dtype)
    for i in range(3):
        for j in range(3):
            out += x[:, i : i + out.shape[1], j : j + out.shape[2]] @ w[:, i, j].T
    return out if bias is None else out + bias


def same_upper(x, stride, taps=3):
    """Images [batch, height, width, channels] with zeros around them, for ceil(extent / stride) windows."""
    totals = [max((-(-n // stride) - 1) * stride + taps - n, 0) for n in x.shape[1:3]]
    return np.pad(x, [(0, 0), *((total // 2, total - total // 2) for total in totals), (0, 0)])


ELEMENTWISE = [
    contrib_case("Gelu", X, opened={0: "BS."}),
    contrib_case("FastGelu", X, opened={0: "BS."}),
    contrib_case("FastGelu", X, ROW, label="bias", const=(1,), opened={0: "BS."}),
    contrib_case("FastGelu", X.astype(HALF), label="half", tolerance=2e-3),
    contrib_case("BiasGelu", X, ROW, opened={0: "BS."}),
    contrib_case("QuickGelu", X, label="default"),
    contrib_case("QuickGelu", X, alpha=1.3, opened={0: "BSH"}),
    contrib_case(
        "BiasSplitGelu",
        X,
        ROW,
        opened={0: "BS."},
        expected=lambda x, b: ((x + b)[..., :8] * gelu((x + b)[..., 8:])).astype(np.float32),
    ),
]
PRODUCTS = [
    contrib_case("FusedMatMul", X, floats(16, 7), alpha=0.5, label="matrix", opened={0: "BS."}),
    contrib_case("FusedMatMul", X, floats(7, 16), transB=1, const=(1,), label="constant", opened={0: "BS."}),
    contrib_case(
        "FusedMatMul", X, floats(2, 6, 16), alpha=-2.0, transB=1, label="batches", opened={0: "BS.", 1: "BT."}
    ),
    contrib_case("FusedMatMul", floats(2, 3, 5, 4), floats(2, 3, 5, 6), transA=1, label="swapped"),
    contrib_case("FusedMatMul", floats(5, 3, 4), floats(3, 4, 6), transBatchA=1, label="batches of a"),
    contrib_case("FusedMatMul", floats(5, 3, 4), floats(6, 3, 4), transBatchA=1, transBatchB=1, transB=1, label="both"),
    contrib_case("FusedMatMul", floats(5, 3, 4), floats(3, 5, 6), transBatchA=1, transA=1, label="all of a"),
    contrib_case("FusedMatMul", floats(0, 4), floats(4, 3), label="empty"),
    contrib_case("FusedMatMul", floats(4), floats(4, 3), transA=1, label="vector"),
    contrib_case("TransposeMatMul", floats(5, 4), floats(6, 5), transA=1, transB=1, alpha=3.0),
    *(
        contrib_case(
            "FusedGemm", floats(3, 8), floats(8, 5), floats(5), activation=name, label=name, opened={0: "B."}, **more
        )
        for name, more in ACTIVATIONS
    ),
    contrib_case(
        "FusedGemm", floats(8, 3), floats(5, 8), transA=1, transB=1, activation="Relu", alpha=0.5, label="no C"
    ),
    contrib_case("FusedConv", IMAGE, FILTERS, floats(6), activation="Relu", pads=[1, 1, 1, 1], opened={0: "B.HW"}),
    contrib_case("FusedConv", IMAGE, FILTERS, activation="LeakyRelu", activation_params=[0.3], label="leaky"),
    contrib_case(
        "FusedConv",
        IMAGE,
        FILTERS,
        None,
        floats(2, 6, 4, 5),
        activation="Clip",
        activation_params=[-1.0, 6.0],
        label="sum",
    ),
    contrib_case(
        "FusedConv",
        IMAGE,
        FILTERS,
        floats(6),
        floats(2, 6, 3, 3),
        activation="Tanh",
        strides=[2, 2],
        kernel_shape=[3, 3],
        pads=[1, 1, 0, 0],
        label="strides",
    ),
    contrib_case(
        "FusedConv",
        IMAGE,
        FILTERS[:, :2],
        activation="HardSigmoid",
        activation_params=[0.2, 0.4],
        group=2,
        label="groups",
    ),
    contrib_case(
        "NhwcConv", floats(2, 6, 7, 4), floats(6, 3, 3, 4), floats(6), kernel_shape=[3, 3], expected=nhwc_conv
    ),
    contrib_case("NhwcConv", floats(2, 6, 7, 4), floats(6, 3, 3, 4), label="no bias", expected=nhwc_conv),
    contrib_case(
        "NhwcConv",
        floats(2, 6, 7, 4),
        floats(6, 3, 3, 4),
        floats(6),
        auto_pad="SAME_UPPER",
        strides=[2, 2],
        opened={0: "BHW."},
        label="same",
        expected=lambda x, w, bias: nhwc_conv(same_upper(x, 2), w, bias)[:, ::2, ::2],
    ),
]
NORMALIZATIONS = [
    contrib_case("LayerNormalization", X, ROW, ROW + 1, domain="", model_opset=13, opened={0: "BS."}),
    contrib_case("LayerNormalization", X, floats(5, 16), domain="", model_opset=16, axis=1, wanted=3, label="axis"),
    contrib_case("SimplifiedLayerNormalization", X, ROW, domain="", opened={0: "BS."}),
    contrib_case(
        "SimplifiedLayerNormalization", X, floats(5, 16), domain="", axis=1, epsilon=0.1, wanted=2, label="axis"
    ),
    contrib_case(
        "SimplifiedLayerNormalization", X.astype(HALF), ROW.astype(HALF), domain="", label="half", tolerance=2e-3
    ),
    contrib_case("SkipLayerNormalization", X, X[::-1], ROW, opened={0: "BS.", 1: "BS."}),
    contrib_case(
        "SkipLayerNormalization",
        X,
        X[:1],
        ROW,
        -ROW,
        ROW + 1,
        epsilon=0.01,
        wanted=(0, 3),
        label="one skip",
        opened={0: "BS.", 1: ".S."},
    ),
    contrib_case(
        "SkipLayerNormalization", X, X[0], ROW, None, ROW, wanted=(0, 3), label="no beta", opened={0: "BS.", 1: "S."}
    ),
    contrib_case(
        "SkipLayerNormalization", X.astype(HALF), X.astype(HALF), ROW.astype(HALF), label="half", tolerance=4e-3
    ),
    contrib_case("SkipLayerNormalization", X[:, :0], X[:, :0], ROW, label="empty"),
    contrib_case("SkipSimplifiedLayerNormalization", X, X[::-1], ROW, opened={0: "BS.", 1: "BS."}),
    contrib_case("SkipSimplifiedLayerNormalization", X, X[0], ROW, ROW + 1, wanted=(0, 3), label="bias"),
    contrib_case(
        "GroupNorm",
        floats(2, 3, 5, 8),
        floats(8),
        floats(8, seed=1),
        groups=2,
        activation=0,
        opened={0: "BHW."},
        expected=lambda *x: group_norm(*x, 2),
    ),
    contrib_case(
        "GroupNorm",
        floats(2, 3, 5, 8),
        floats(8),
        floats(8, seed=1),
        groups=4,
        activation=1,
        label="SiLU",
        expected=lambda *x: group_norm(*x, 4, silu=True),
    ),
    contrib_case(
        "GroupNorm",
        floats(2, 8, 3, 5),
        floats(8),
        floats(8),
        groups=4,
        activation=0,
        channels_last=0,
        label="channels first",
        expected=lambda *x: group_norm(*x, 4, last=False),
    ),
    contrib_case(
        "SkipGroupNorm",
        floats(2, 3, 5, 8),
        floats(8),
        floats(8),
        floats(2, 3, 5, 8),
        floats(8),
        groups=2,
        activation=0,
        wanted=2,
        expected=with_skip,
    ),
    contrib_case(
        "SkipGroupNorm",
        floats(2, 3, 5, 8),
        floats(8),
        floats(8),
        floats(2, 8),
        groups=2,
        activation=0,
        label="short skip",
        expected=lambda *x: with_skip(*x)[0],
    ),
]
IDS = integers(2, 5, low=0, high=20, kind=np.int32)
SEGMENTS = IDS % 3
TABLES = floats(20, 16), floats(8, 16), floats(3, 16), ROW, ROW[::-1]
BYTES = [integers(*t.shape, seed=k, low=0, high=255, kind=np.uint8) for k, t in enumerate(TABLES)]
SCALES, ZEROS = floats(5, low=0.01, high=0.05), integers(5, low=100, high=150, kind=np.uint8)
EMBEDDINGS = [
    contrib_case(
        "EmbedLayerNormalization",
        IDS,
        SEGMENTS,
        *TABLES,
        (IDS > 4).astype(np.int32),
        wanted=2,
        mask_index_type=1,
        const=(2, 3, 4, 5, 6),
        opened={0: "BS", 1: "BS", 7: "BS"},
    ),
    contrib_case(
        "EmbedLayerNormalization",
        IDS,
        None,
        *TABLES[:2],
        None,
        *TABLES[3:],
        None,
        IDS[::-1] % 8,
        wanted=(0, 2),
        epsilon=0.1,
        label="positions",
        opened={0: "BS", 8: "BS"},
    ),
    contrib_case(
        "EmbedLayerNormalization", IDS, SEGMENTS, *TABLES, wanted=2, label="no mask", opened={0: "BS", 1: "BS"}
    ),
    contrib_case("EmbedLayerNormalization", IDS, None, *TABLES, wanted=2, label="one segment", opened={0: "BS"}),
    contrib_case(
        "QEmbedLayerNormalization",
        IDS,
        SEGMENTS,
        *BYTES,
        (IDS > 4).astype(np.int32),
        *SCALES,
        *ZEROS,
        wanted=2,
        opened={0: "BS", 1: "BS", 7: "BS"},
    ),
    contrib_case(
        "QEmbedLayerNormalization",
        IDS,
        None,
        *BYTES[:2],
        None,
        *BYTES[3:],
        None,
        *SCALES[:2],
        None,
        *SCALES[3:],
        *ZEROS[:2],
        None,
        *ZEROS[3:],
        wanted=2,
        label="no segments",
    ),
]
CASES = [*ELEMENTWISE, *PRODUCTS, *NORMALIZATIONS, *EMBEDDINGS]


@each_extents(CASES)
def test_an_operator_gives_what_onnxruntime_gives(case, opened):
    check_contrib(case, opened)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (contrib_case("FusedGemm", floats(3, 4), floats(4, 5), activation="Cosine"), "the activation 'Cosine' is not"),
        (contrib_case("Gelu", X, approximate="tanh"), "there is no attribute approximate in operator set 1"),
        (contrib_case("Gelu", X, X), "2 inputs are given, it takes at most 1"),
        (contrib_case("BiasSplitGelu", X[..., :5], ROW[:5]), "a last axis of 5 elements, which must be known and even"),
        (contrib_case("GroupNorm", floats(1, 2, 2, 4), ROW[:4], ROW[:4], groups=2, activation=3), "activation 3"),
        (contrib_case("SkipSimplifiedLayerNormalization", X, X, ROW, wanted=(0, 1)), "the mean, which this"),
    ],
)
def test_what_has_no_conversion_is_told(case, message):
    check_refused(case, message)
