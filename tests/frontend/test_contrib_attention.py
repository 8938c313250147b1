"""onnxruntime's operators for attention, against onnxruntime."""

from itertools import pairwise

import numpy as np
import pytest
from contrib_cases import check_contrib, check_refused, contrib_case, each_extents
from onnx_cases import floats, integers

BATCH, QUERIES, PAST, HEADS, SIZE = 2, 5, 3, 4, 8
WIDTH = HEADS * SIZE
X, W, BIAS = floats(BATCH, QUERIES, 12), floats(12, 3 * WIDTH), floats(3 * WIDTH)
ROWS = np.arange(BATCH)[:, None]
LENGTHS = np.array([4, 2], np.int32)
RAW = (np.arange(QUERIES) < LENGTHS[:, None]).astype(np.int32)
SQUARE = (np.arange(QUERIES) <= np.arange(QUERIES)[:, None]).astype(np.int32) * RAW[:, None]
CACHE = floats(2, BATCH, HEADS, PAST, SIZE)
SCORES = floats(1, HEADS, QUERIES, QUERIES)
OPEN = {0: "BS."}


def attention(*inputs, label="", **options):
    return contrib_case(
        "Attention", *inputs, label=label, **({"const": (1, 2), "num_heads": HEADS, "tolerance": 1e-4} | options)
    )


ATTENTION = [
    attention(X, W, BIAS, opened=OPEN),
    attention(X, W, BIAS, RAW, label="mask", opened=OPEN | {3: "BS"}),
    attention(X, W, BIAS, LENGTHS, label="lengths", opened=OPEN | {3: "B"}),
    attention(X, W, BIAS, np.array([4, 5, 1, 2], np.int32), label="ends and beginnings"),
    attention(X, W, BIAS, SQUARE, label="square mask", opened=OPEN | {3: "BSS"}),
    attention(X, W, BIAS, RAW * 0, label="nothing counts", mask_filter_value=-3000.0),
    attention(
        *(x.astype(np.float16) for x in (X, W, BIAS)),
        RAW * 0,
        label="nothing counts, halves",
        mask_filter_value=-3000.0,
        tolerance=5e-2,
    ),
    attention(X, W, BIAS, unidirectional=1, scale=0.3, label="causal", opened=OPEN),
    attention(X, W, BIAS, RAW, None, SCORES, label="bias", opened=OPEN | {3: "BS", 5: "..SS"}),
    attention(X, W, BIAS, None, CACHE, wanted=2, unidirectional=1, label="past", opened=OPEN | {4: ".B.P."}),
    attention(
        X,
        W,
        BIAS,
        np.pad(RAW, ((0, 0), (PAST, 0)), constant_values=1),
        CACHE,
        wanted=2,
        unidirectional=1,
        label="past and mask",
        opened=OPEN | {3: "BT", 4: ".B.P."},
    ),
    attention(
        X, W, BIAS, None, CACHE[:, :, :, :0], wanted=2, unidirectional=1, label="empty past", opened=OPEN | {4: ".B.P."}
    ),
    attention(X, W, BIAS, wanted=2, label="present"),
    attention(
        X, floats(12, 2 * WIDTH + 16), floats(2 * WIDTH + 16), qkv_hidden_sizes=[WIDTH, WIDTH, 16], label="sizes"
    ),
    attention(X, W, label="no bias", const=(1,)),
]
PROJECTED = [floats(BATCH, length, WIDTH, seed=k) for k, length in enumerate((QUERIES, 7, 7))]
KEYS = floats(BATCH, HEADS, 7, SIZE, seed=1), floats(BATCH, HEADS, 7, SIZE, seed=2)
SELF = [floats(BATCH, QUERIES, WIDTH, seed=k) for k in range(3)]
CROSS = {0: "BS.", 1: "BT.", 2: "BT."}


def attended(query, key, value):
    """Attention of [batch, sequence, heads, size], which onnxruntime has not where they are packed."""
    scores = np.einsum("bshd,bthd->bhst", query, key, dtype=np.float64) / np.sqrt(SIZE)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhst,bthd->bshd", weights, value).reshape(*query.shape[:2], -1).astype(np.float32)


def multi_head(*inputs, label="", **options):
    return contrib_case("MultiHeadAttention", *inputs, label=label, tolerance=1e-4, num_heads=HEADS, **options)


MULTI_HEAD = [
    multi_head(*PROJECTED, opened=CROSS),
    multi_head(*PROJECTED, BIAS, const=(3,), label="bias", opened=CROSS),
    multi_head(*PROJECTED, None, np.pad(RAW, ((0, 0), (2, 0))), label="mask", opened=CROSS | {4: "BT"}),
    multi_head(*PROJECTED, None, LENGTHS, label="lengths", opened=CROSS | {4: "B"}),
    multi_head(*PROJECTED, None, None, floats(1, 1, QUERIES, 7), label="scores", opened=CROSS | {5: "..ST"}),
    multi_head(*PROJECTED[:2], floats(BATCH, 7, 24), label="wide values"),
    multi_head(
        *SELF,
        None,
        None,
        None,
        *CACHE,
        wanted=3,
        unidirectional=1,
        label="past",
        opened={0: "BS.", 1: "BS.", 2: "BS.", 6: "B.P.", 7: "B.P."},
    ),
    multi_head(
        *SELF,
        None,
        None,
        None,
        *CACHE[:, :, :, :0],
        wanted=3,
        unidirectional=1,
        label="empty past",
        opened={0: "BS.", 1: "BS.", 2: "BS.", 6: "B.P.", 7: "B.P."},
    ),
    *(
        multi_head(*parts, label=f"causal, {label}", unidirectional=1, opened=CROSS)
        for label, parts in {
            "more keys": PROJECTED,
            "fewer keys": [PROJECTED[1], PROJECTED[0], PROJECTED[0]],
            "scores": [*PROJECTED, None, None, floats(1, 1, QUERIES, 7)],
        }.items()
    ),
    multi_head(*SELF, None, None, None, *CACHE[:, :, :, :1], unidirectional=1, wanted=3, label="short past"),
    multi_head(SELF[0], *KEYS, unidirectional=1, label="causal cache", opened={0: "BS.", 1: "B.T.", 2: "B.T."}),
    multi_head(SELF[0], *KEYS, BIAS, const=(3,), label="cross cache", opened={0: "BS.", 1: "B.T.", 2: "B.T."}),
    multi_head(
        floats(BATCH, QUERIES, HEADS, 3, SIZE),
        label="packed",
        opened={0: "BS..."},
        expected=lambda x: attended(x[:, :, :, 0], x[:, :, :, 1], x[:, :, :, 2]),
    ),
    multi_head(
        SELF[0],
        floats(BATCH, 7, HEADS, 2, SIZE),
        label="packed keys",
        opened={0: "BS.", 1: "BT..."},
        expected=lambda q, x: attended(q.reshape(BATCH, -1, HEADS, SIZE), x[:, :, :, 0], x[:, :, :, 1]),
    ),
    multi_head(*SELF, unidirectional=1, wanted=3, label="present", opened={0: "BS.", 1: "BS.", 2: "BS."}),
]
BYTES, WEIGHTS = (
    integers(BATCH, QUERIES, 12, low=0, high=255, kind=np.uint8),
    integers(12, 3 * WIDTH, low=-64, high=64, kind=np.int8),  # onnxruntime may add pairs of products in int16
)


def number(value, kind=np.float32):
    return np.array(value, kind)


def quantized(*inputs, label="", **options):
    given = (BYTES, WEIGHTS, BIAS, number(0.02), *inputs)
    return contrib_case(
        "QAttention", *given, label=label, tolerance=1e-3, num_heads=HEADS, const=(1, 2, 3, 4), **options
    )


QUANTIZED = [
    quantized(number(0.01), RAW, number(120, np.uint8), number(3, np.int8), opened=OPEN | {5: "BS"}),
    quantized(
        floats(3 * WIDTH, low=0.01, high=0.02),
        None,
        number(120, np.uint8),
        np.zeros(3 * WIDTH, np.int8),
        CACHE,
        wanted=2,
        unidirectional=1,
        label="columns",
    ),
]
COS, SIN = floats(16, SIZE // 2), floats(16, SIZE // 2, seed=1)
PLACES = integers(BATCH, QUERIES, low=0, high=16)
BY_HEADS = floats(BATCH, HEADS, QUERIES, SIZE)
FIRST = np.array([4])
ROTARY = [
    contrib_case("RotaryEmbedding", SELF[0], PLACES, COS, SIN, const=(2, 3), opened={0: "BS.", 1: "BS"}),
    contrib_case("RotaryEmbedding", SELF[0], FIRST, COS, SIN, const=(2, 3), label="offset", opened={0: "BS."}),
    contrib_case("RotaryEmbedding", BY_HEADS, PLACES, COS, SIN, interleaved=1, label="heads first", opened={0: "B.S."}),
    contrib_case(
        "RotaryEmbedding",
        SELF[0],
        PLACES,
        COS[:, :2],
        SIN[:, :2],
        num_heads=HEADS,
        rotary_embedding_dim=4,
        label="part",
    ),
]
SHARED = 2 * SIZE
STEP = [floats(BATCH, 1, WIDTH), *(floats(BATCH, 1, SHARED, seed=k) for k in range(2))]
PROMPT = [SELF[0], *(floats(BATCH, QUERIES, SHARED, seed=k) for k in range(2))]
PASTS = [floats(BATCH, 2, 6, SIZE, seed=k) for k in range(2)]
OPEN_STEP = {0: "BS.", 1: "BS.", 2: "BS.", 3: "B.P.", 4: "B.P.", 5: "B"}
TURNED = {"do_rotary": 1, "const": (7, 8), "num_heads": 2, "kv_num_heads": 1}
WIDE = [p.reshape(BATCH, 1, 6, 2 * SIZE) for p in PASTS]
ANGLES = [floats(16, SIZE, seed=k) for k in range(2)]


def grouped(*inputs, label="", **options):
    options = {"num_heads": HEADS, "kv_num_heads": 2, "wanted": 3} | options
    return contrib_case("GroupQueryAttention", *inputs, label=label, tolerance=1e-4, **options)


def lengths(*last):
    return np.array(last, np.int32)


def total(count):
    return np.array(count, np.int32)


GROUPED = [
    grouped(
        *PROMPT, None, None, lengths(4, 4), total(5), label="prompt", opened={0: "BS.", 1: "BS.", 2: "BS.", 5: "B"}
    ),
    grouped(
        *PROMPT,
        *(p[:, :, :0] for p in WIDE),
        lengths(4, 4),
        total(5),
        *ANGLES,
        label="empty past",
        opened=OPEN_STEP,
        **TURNED,
    ),
    grouped(*STEP, *PASTS, lengths(6, 6), total(7), label="step", opened=OPEN_STEP),
    grouped(
        *STEP,
        *WIDE,
        lengths(6, 6),
        total(7),
        *ANGLES,
        rotary_interleaved=1,
        label="rotary",
        opened=OPEN_STEP,
        **TURNED,
    ),
    grouped(*STEP, *PASTS, lengths(6, 6), total(7), local_window_size=3, scale=0.2, label="window", opened=OPEN_STEP),
    grouped(np.concatenate(STEP, -1), None, None, *PASTS, lengths(6, 6), total(7), label="packed"),
    grouped(*STEP, *PASTS, lengths(6, 6), total(7), None, None, None, floats(1, HEADS, 1, 7), label="bias"),
]
BIAS_OF_HEADS, SINK = floats(1, HEADS, 1, 7), floats(HEADS, seed=4, low=0.0)
for cap in ({}, {"softcap": 2.0}):
    one_each = {"opened": OPEN_STEP, **cap}
    GROUPED += [
        grouped(*PROMPT, None, None, lengths(4, 4), total(5), label=f"{cap} prompt, smooth", smooth_softmax=1, **cap),
        grouped(*STEP, *PASTS, lengths(6, 6), total(7), label=f"{cap} smooth", smooth_softmax=1, **one_each),
        grouped(*STEP, *PASTS, lengths(6, 6), total(7), *[None] * 4, SINK, label=f"{cap} sink", **one_each),
        grouped(*STEP, *PASTS, lengths(6, 6), total(7), *[None] * 3, BIAS_OF_HEADS, label=f"{cap} bias", **one_each),
        grouped(*STEP, *PASTS, lengths(6, 6), total(7), *[None] * 3, BIAS_OF_HEADS, SINK, label=f"{cap} both", **cap),
    ]


def packed_attention(x, weights, bias, offsets, ends, scores=None, scale=SIZE**-0.5):
    """Each sequence by itself, in float64."""
    y = np.zeros((len(x), WIDTH))
    projected = x.astype(np.float64) @ weights + bias
    for sample, (start, end) in enumerate(pairwise(ends)):
        if start == end:
            continue
        rows = projected[start:end].reshape(end - start, 3, HEADS, SIZE).transpose(1, 2, 0, 3)
        logits = rows[0] @ rows[1].transpose(0, 2, 1) * scale
        if scores is not None:
            logits = logits + scores[sample % len(scores), :, : end - start, : end - start]
        p = np.exp(logits - logits.max(-1, keepdims=True))
        y[start:end] = (p / p.sum(-1, keepdims=True) @ rows[2]).transpose(1, 0, 2).reshape(end - start, WIDTH)
    return y.astype(x.dtype)


def packed(lengths, longest, scores=None, **options):
    places = np.arange(len(lengths))[:, None] * longest + np.arange(longest)
    counts = np.arange(longest) < np.array(lengths)[:, None]
    offsets = np.concatenate([places[counts], places[~counts]]).reshape(places.shape).astype(np.int32)
    ends = np.cumsum([0, *lengths]).astype(np.int32)
    inputs = floats(sum(lengths), 12), W, BIAS, offsets, ends, *([] if scores is None else [scores])
    return contrib_case(
        "PackedAttention", *inputs, num_heads=HEADS, const=(1, 2), expected=packed_attention, tolerance=1e-4,
        opened={0: "T.", 3: "BS", 4: "E", **({} if scores is None else {5: "..SS"})}, **options,
    )  # fmt: skip


PACKED = [
    packed([1, 2, 4], 4, label="three"),
    packed([4, 4], 4, label="whole"),
    packed([3, 0, 5], 6, label="with an empty one and room"),
    packed([3, 4], 4, floats(1, HEADS, 4, 4, seed=8), label="bias"),
]


CASES = [*ATTENTION, *MULTI_HEAD, *QUANTIZED, *ROTARY, *GROUPED, *PACKED]


@each_extents(CASES)
def test_an_operator_gives_what_onnxruntime_gives(case, opened):
    check_contrib(case, opened)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (attention(X, W, BIAS, do_rotary=1), "a rotary embedding inside"),
        (attention(X, W, BIAS, num_heads=0), "attention of 0 heads"),
        (attention(X, W, BIAS, num_heads=5), "a width of 32, which 5 heads do not divide"),
        (attention(X, W, BIAS, np.ones((2, 1, 5, 5), np.int32)), "a mask that is"),
        (multi_head(*SELF, wanted=(0, 3)), "the output of scores"),
        (contrib_case("RotaryEmbedding", SELF[0], FIRST, COS, SIN, scale=2.0), "a scale, or sequences that are packed"),
        (grouped(*STEP, *PASTS, lengths(6, 6), total(7), causal=0), "than the default"),
        (grouped(*STEP, *PASTS, lengths(6, 6), total(7), wanted=4), "the output of scores"),
    ],
)
def test_what_has_no_conversion_is_told(case, message):
    check_refused(case, message)
