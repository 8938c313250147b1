"""Products, convolutions, pools, normalisations and softmax of ONNX, in each version, against the reference."""

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx_cases import case, check, each_version, floats, integers, model_of

import loopwright as lw
from loopwright.graph import Call
from loopwright.graph.visit import post_order

X = floats(2, 4, 7, 6)
COLUMN, WIDE = floats(2, 4, 9, 1), floats(2, 4, 9, 5)
WEIGHT = floats(6, 2, 3, 3, seed=1)
BACK = floats(4, 3, 3, 3, seed=2)
A, B, C = floats(3, 4), floats(4, 5, seed=1), floats(5, seed=2)
CHANNEL = [floats(4, seed=k, low=0.5) for k in range(4)]
ELEMENT = [floats(4, 7, 6, seed=k, low=0.5) for k in range(4)]
HEADS = [floats(1, 4, 5, 8), *(floats(1, 2, 6, 8, seed=k) for k in (1, 2))]
JOINT = [floats(2, 5, 12), *(floats(2, 6, 6, seed=k) for k in (1, 2))]
HIDDEN = np.where(floats(5, 6) < -1, -np.inf, 0).astype(np.float32)
CONV, POOL = (1, 11, 22), (1, 8, 10, 11, 12, 22)


def batch_norm(x, scale, bias, mean, variance, epsilon=1e-5):
    axes = (slice(None), *(None,) * (x.ndim - 2)) if scale.ndim == 1 else ()
    s, b, m, v = (p[axes] for p in (scale, bias, mean, variance))
    return (x - m) / np.sqrt(v + np.float32(epsilon)) * s + b


def flat_softmax(x, axis, log=False):
    flat = x.reshape(int(np.prod(x.shape[:axis], dtype=int)), -1)
    e = np.exp(flat - flat.max(1, keepdims=True))
    made = e / e.sum(1, keepdims=True)
    return (np.log(made) if log else made).reshape(x.shape)


def hardmax(x, axis):
    flat = x.reshape(int(np.prod(x.shape[:axis], dtype=int)), -1)
    return (np.arange(flat.shape[1]) == flat.argmax(1)[:, None]).astype(x.dtype).reshape(x.shape)


def group_norm(x, scale, bias):
    """Version 18: a scale and a bias for each of two groups."""
    groups = x.reshape(x.shape[0], 2, -1)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + np.float32(1e-5))
    return (normal * scale[:, None] + bias[:, None]).reshape(x.shape)


def grouped(x, weight):
    """A transposed convolution of each of two groups of channels."""
    parts = [case("ConvTranspose", (11,), a, b, dilations=[2, 1]) for a, b in
             zip(np.split(x, 2, 1), np.split(weight, 2), strict=True)]  # fmt: skip
    return np.concatenate([ReferenceEvaluator(model_of(part, 11)).run(None, part.fed)[0] for part in parts], 1)


def cropped(x, weight):
    """The odd row that output_shape leaves out is the first."""
    part = case("ConvTranspose", (11,), x, weight, strides=[2, 2])
    return ReferenceEvaluator(model_of(part, 11)).run(None, part.fed)[0][:, :, 1:]


def same_lower(x):
    """Windows of 3 at every second place; of the rows, which need two more, one is added on each side."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 0)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return windows[:, :, ::2, ::2].max((4, 5))


def average(x):
    """Pads do not count."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 1)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))
    return np.nanmean(windows[:, :, ::2], (4, 5))


def lrn(x):
    padded = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return x / (1.5 + 0.5 / 3 * (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:])) ** np.float32(0.6)


PRODUCTS = [
    case("MatMul", (1, 9, 13), A, B),
    case("MatMul", (9, 13), floats(2, 1, 3, 4), floats(5, 4, 3), label="batches"),
    case("MatMul", (13,), floats(4), floats(2, 4, 3), label="vector"),
    case("MatMul", (13,), floats(2, 3, 4), B, const=(1,), label="weight"),
    case("Gemm", (7, 9, 11, 13), A, B, C),
    case("Gemm", (1, 6), A, B, C, broadcast=1, expected=lambda a, b, c: a @ b + c),
    case("Gemm", (1, 6), A, B, floats(3, 5), expected=lambda a, b, c: a @ b + c, label="full"),
    case("Gemm", (9, 11, 13), integers(4, 3), integers(3, 5), integers(5), alpha=0.25, beta=0.35, label="of integers",
         expected=lambda a, b, c: np.trunc(0.25 * (a @ b) + np.float64(np.float32(0.35)) * c).astype(np.int64)),
    case("Gemm", (7, 9, 11, 13), A.T.copy(), B.T.copy(), C, alpha=0.5, beta=2.0, transA=1, transB=1, label="all"),
    case("Gemm", (1, 6), A.T.copy(), B.T.copy(), C, broadcast=1, alpha=0.5, beta=2.0, transA=1, transB=1, label="all",
         expected=lambda a, b, c: 0.5 * a.T @ b.T + 2 * c),
    case("Gemm", (11, 13), A, B, label="no C"),
    *(case("Einsum", (12, 28), *x, equation=e, label=e.replace("->", " to ")) for e, x in (
        ("ij,jk->ik", (A, B)),
        ("bij,bjk", (floats(2, 3, 4), floats(2, 4, 2))),
        ("...ij,...kj->...ik", (floats(2, 3, 4), floats(1, 5, 4))),
        ("ij->ji", (A,)),
        ("ii->i", (floats(4, 4),)),
        ("bhid,bhjd->bhij", (floats(2, 2, 3, 4), floats(2, 2, 5, 4))),
    )),
]  # fmt: skip

CONVOLUTIONS = [
    case("Conv", CONV, X, floats(6, 4, 3, 3)),
    case("Conv", CONV, X, WEIGHT, floats(6), group=2, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2], label="all"),
    case("Conv", CONV, X, floats(6, 4, 3, 3), kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2], label="same"),
    case("Conv", CONV, floats(1, 2, 9), floats(3, 2, 4), label="1d"),
    case("Conv", CONV, COLUMN, floats(4, 1, 5, 1), floats(4), group=4, pads=[2, 0, 1, 0], label="column"),
    case("Conv", CONV, COLUMN, floats(8, 1, 3, 1), group=4, strides=[2, 3], dilations=[3, 2], label="strided column"),
    case("Conv", CONV, COLUMN, floats(4, 1, 3, 1), group=4, auto_pad="SAME_LOWER", strides=[2, 2], label="same column"),
    case("Conv", CONV, COLUMN, floats(4, 1, 3, 1), group=4, pads=[0, 1, 0, 0], label="padded column"),
    case("Conv", CONV, COLUMN, floats(6, 4, 3, 1), floats(6), pads=[2, 0, 1, 0], strides=[2, 1], label="dense column"),
    case("Conv", CONV, WIDE, floats(6, 4, 3, 5), floats(6), pads=[1, 0, 2, 0], strides=[2, 3], label="as wide"),
    case("Conv", CONV, WIDE, floats(6, 2, 3, 5), group=2, label="as wide, in groups"),
    case("Conv", CONV, WIDE, floats(6, 4, 3, 5), dilations=[2, 1], label="as wide, dilated"),
    case("Conv", CONV, WIDE, floats(6, 4, 3, 5), auto_pad="SAME_UPPER", label="as wide, same"),
    case("Conv", CONV, WIDE, floats(6, 4, 9, 5), label="whole"),
    case("Conv", CONV, floats(1, 2, 5, 4, 6), floats(3, 2, 2, 3, 2), label="3d"),
    case("ConvTranspose", CONV, X, BACK),
    case(
        "ConvTranspose", CONV, X, BACK, floats(3), strides=[2, 3], pads=[1, 0, 1, 2], output_padding=[1, 0], label="all"
    ),
    case("ConvTranspose", CONV, X, BACK, strides=[2, 2], output_shape=[14, 13], label="shape", expected=cropped),
    case("ConvTranspose", CONV, X, floats(4, 3, 3, 3), group=2, dilations=[2, 1], label="groups", expected=grouped),
    case("MaxPool", POOL, X, kernel_shape=[3, 2]),
    case("MaxPool", POOL, X, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], label="pads"),
    case("MaxPool", POOL[1:], X, kernel_shape=[2, 2], strides=[2, 2], outputs=2, label="indices"),
    case("MaxPool", POOL[2:], X, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, label="ceil"),
    case("MaxPool", POOL[2:], X, kernel_shape=[2, 2], dilations=[2, 3], label="dilations"),
    case(
        "MaxPool",
        POOL,
        X,
        kernel_shape=[3, 3],
        strides=[2, 2],
        auto_pad="SAME_LOWER",
        label="same",
        expected=same_lower,
    ),
    case(
        "AveragePool",
        (1, 7, 10, 11, 19, 22),
        X,
        kernel_shape=[3, 2],
        strides=[2, 1],
        pads=[1, 0, 1, 1],
        expected=average,
    ),
    case(
        "AveragePool",
        (7, 10, 11, 19, 22),
        X,
        kernel_shape=[3, 2],
        pads=[1, 0, 1, 1],
        count_include_pad=1,
        label="include",
    ),
    case("AveragePool", (10, 11, 19, 22), X, kernel_shape=[2, 2], strides=[2, 4], ceil_mode=1, label="ceil"),
    case("AveragePool", (19, 22), X, kernel_shape=[2, 2], dilations=[2, 2], label="dilations"),
    case("LpPool", (2, 11, 18, 22), X, kernel_shape=[3, 2], p=3),
    case("LpPool", (1,), X, kernel_shape=[7, 6], p=2.0, expected=lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
    case("LpPool", (18, 22), X, kernel_shape=[2, 2], dilations=[2, 2], label="dilations"),
    case("GlobalAveragePool", (1, 22), X),
    case("GlobalMaxPool", (1, 22), X),
    case("GlobalLpPool", (2, 22), X, p=2, expected=lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
    case("GlobalLpPool", (1,), X, p=2.0, expected=lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
]

NORMALIZATIONS = [
    case("BatchNormalization", (9, 14, 15), X, *CHANNEL, expected=batch_norm),
    case(
        "BatchNormalization",
        (9, 14, 15),
        X,
        *CHANNEL,
        const=(1, 2, 3, 4),
        epsilon=0.1,
        label="constants",
        expected=lambda *p: batch_norm(*p, epsilon=0.1),
    ),
    case("BatchNormalization", (1,), X, *CHANNEL, consumed_inputs=[0] * 5, is_test=1, expected=batch_norm),
    case("BatchNormalization", (6,), X, *CHANNEL, is_test=1, expected=batch_norm),
    case("BatchNormalization", (7,), X, *CHANNEL, expected=batch_norm),
    case("BatchNormalization", (1, 6, 7), X, *ELEMENT, spatial=0, expected=batch_norm, label="spatial"),
    case(
        "BatchNormalization",
        (15,),
        X.astype(np.float16),
        *CHANNEL,
        label="mixed",
        tolerance=5e-3,
        expected=lambda x, *p: batch_norm(x.astype(np.float32), *p).astype(np.float16),
    ),
    case("InstanceNormalization", (1, 6, 22), X, *CHANNEL[:2]),
    case("LRN", (1, 13), X, size=3, alpha=0.5, beta=0.6, bias=1.5, expected=lrn),
    case("LpNormalization", (1, 22), X, axis=1, p=1, expected=lambda x: x / abs(x).sum(1, keepdims=True)),
    case("LpNormalization", (1, 22), X, label="defaults"),
    case("LayerNormalization", (17,), X, floats(6), floats(6, seed=1)),
    case("LayerNormalization", (17,), X, floats(7, 6), axis=2, epsilon=0.1, label="no bias"),
    case("LayerNormalization", (17,), X, floats(6), floats(6, seed=1), outputs=3, label="statistics"),
    case("RMSNormalization", (23,), X, floats(6)),
    case("RMSNormalization", (23,), X, floats(7, 6), axis=2, epsilon=0.1, label="two axes"),
    case("GroupNormalization", (18,), X, floats(2), floats(2, seed=1), num_groups=2, expected=group_norm),
    case("GroupNormalization", (21,), X, *CHANNEL[:2], num_groups=2),
]

SOFTMAX = [
    case(op, versions, X, **more)
    for op, f in (
        ("Softmax", flat_softmax),
        ("LogSoftmax", lambda x, axis: flat_softmax(x, axis, log=True)),
        ("Hardmax", hardmax),
    )
    for versions, more in (
        ((1, 11), {"expected": lambda x, f=f: f(x, 1)}),
        ((1, 11), {"expected": lambda x, f=f: f(x, 2), "axis": 2, "label": "axis"}),
        ((11,), {"expected": lambda x, f=f: f(x, 3), "axis": -1, "label": "negative"}),
        ((13,), {}),
        ((13,), {"axis": 1, "label": "axis"}),
    )
]

ATTENTION = [
    case("Attention", (24, 25), *HEADS, HIDDEN, scale=0.5, label="masked"),
    case("Attention", (23,), *HEADS, HIDDEN == 0, is_causal=1, label="causal"),
    case("Attention", (24,), *JOINT, q_num_heads=4, kv_num_heads=2, label="joint"),
]

CASES = [*PRODUCTS, *CONVOLUTIONS, *NORMALIZATIONS, *SOFTMAX, *ATTENTION]


@each_version(ATTENTION)
def test_attention_is_one_operator(case, version):
    imported = lw.from_onnx(model_of(case, version))
    names = [node.op.name for node in post_order(imported.body) if isinstance(node, Call)]
    assert sum(name.endswith("attention") for name in names) == 1
    assert not {"softmax", "transpose"} & {*names}


@each_version(CASES)
def test_an_operator_gives_what_the_reference_gives(case, version):
    check(case, version)


def test_windows_as_wide_as_the_image_move_along_one_row():
    """As filters along time, and along the words of a text: the positions of a column are no vectors."""
    for x, weight, columns in ((COLUMN, floats(6, 4, 3, 1), 9), (WIDE, floats(6, 4, 3, 5), 45)):
        imported = lw.from_onnx(model_of(case("Conv", CONV, x, weight), 11))
        convolutions = [n for n in post_order(imported.body) if isinstance(n, Call) and n.op.name == "nn.conv2d"]
        assert [c.args[0].type.static_shape for c in convolutions] == [(2, 4, 1, columns)]
    whole = lw.from_onnx(model_of(case("Conv", CONV, WIDE, floats(6, 4, 9, 5)), 11))
    assert [n.op.name for n in post_order(whole.body) if isinstance(n, Call)] == ["nn.conv2d"]


def test_the_mean_beside_a_layer_norm_is_that_of_its_rows_however_large_they_are():
    """Where sums are finite, it has the bits of a mean by itself."""
    x = floats(6, 50)
    x[0], x[1], x[2, ::3] = 3e38, -3e38, 2e38
    scale, bias = floats(50), floats(50, seed=1)
    norm = model_of(case("LayerNormalization", (17,), x, scale, bias, const=(1, 2), outputs=3), 17)
    alone = model_of(case("ReduceMean", (13,), x, axes=[1], keepdims=1), 13)
    y, mean, _ = lw.Engine(lw.compile(norm))(x)
    assert np.isfinite(y).all()
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(1, keepdims=True), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(mean[3:], lw.Engine(lw.compile(alone))(x)[0][3:])
