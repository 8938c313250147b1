"""The interpreter agrees with numpy on every operator of the registry, at small shapes: for each implementation, on
the naive loop nest and by its own schedule. An operator or an implementation without a case here is a failure."""

import math
import re
from functools import partial

import coupling
import detection
import ml_dtypes
import numpy as np
import pytest
import recurrences
import sampling
import scattering
import string_cases
import walked_trees
import windows

import loopwright as lw
from loopwright import te
from loopwright.graph.types import TupleType
from loopwright.lowering.pipeline import realized_function
from loopwright.ops import nn
from loopwright.ops.definition import strategy
from loopwright.ops.definition.evaluate import definition_of
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.definition.registry import all_ops, get_op
from loopwright.ops.families.assume_extent import ASSUME_EXTENT, AssumeExtentAttrs
from loopwright.ops.families.born_extents import known_extents
from loopwright.ops.families.conv.winograd_weights import WinogradPlanes
from loopwright.ops.families.cumsum import cumsum
from loopwright.ops.families.fourier.fft import FFT, FftAttrs
from loopwright.ops.families.fourier.open_fft import OPEN_FFT, OpenFftAttrs
from loopwright.ops.families.fourier.plan import root_table
from loopwright.ops.families.matmul.quarters import Planes
from loopwright.ops.families.nms import BOX_INDICES, CHOSEN_BOXES, ChosenBoxesAttrs
from loopwright.ops.families.nonzero import NONZERO
from loopwright.ops.families.norm import batch_norm
from loopwright.ops.families.open_extents import (
    EXTENTS,
    OPEN_SLICE,
    POSITIONS,
    ExtentsAttrs,
    OpenSliceAttrs,
    PositionsAttrs,
)
from loopwright.ops.families.repeat import repeat
from loopwright.ops.families.resample import resample
from loopwright.ops.families.resize_tables import INDICES, WEIGHTS, ResizeTableAttrs
from loopwright.ops.families.split_part import split_evenly
from loopwright.ops.families.tree_ensemble import TREE_ENSEMBLE, TreeEnsembleAttrs
from loopwright.ops.families.unique import UNIQUE_ROWS, UniqueRowsAttrs
from loopwright.te.vectorized import UnvectorizedError, VectorizedProgram

TARGETS = {name: lw.resolve_target(name) for name in ("x86-64", "x86-64-v3")}
MATRIX_TARGETS = {
    "cblas": lw.resolve_target("llvm -mcpu=x86-64-v3 -libs=cblas"),
    "bf16": lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4"),
}
PRODUCTS = ("nn.batch_matmul", "nn.dense", "nn.matmul")
TILED = ("nn.conv2d", "nn.packed_byte_matmul")
TILE_TARGETS = {"tiles": lw.resolve_target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=sapphirerapids")}
rng = np.random.default_rng(0)


def assumed(x, y):
    """x with the extent of y for its own."""
    return ASSUME_EXTENT(x, y, attrs=AssumeExtentAttrs(1, "x1_0"))


def floats(*shape):
    """Numbers that no float32 rounding puts beside a step of a step function."""
    return rng.uniform(-3, 3, shape).astype(np.float32)


def integers(*shape, low=-9, high=10, kind="int32"):
    return rng.integers(low, high, shape).astype(kind)


def counts(*shape):
    return integers(*shape, low=1, high=7, kind="uint8")


def halves(*shape):
    """Numbers of which bfloat16 holds the sums of a few products."""
    return integers(*shape, low=-3, high=4).astype(ml_dtypes.bfloat16)


def bools(*shape):
    return rng.integers(0, 2, shape).astype(bool)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def attention(query, key, value, mask):
    """Of query heads in groups that share those of keys and values."""
    key, value = (np.repeat(x, query.shape[1] // x.shape[1], axis=1) for x in (key, value))
    return softmax(query @ key.swapaxes(-1, -2) * query.shape[-1] ** -0.5 + mask, -1) @ value


def along_channels(v, x):
    return v.astype(np.float64).reshape(1, -1, *[1] * (x.ndim - 2))


def normalised(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def scaled_to_1(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def local_response(x, size=3, alpha=0.3, beta=0.6, bias=2.0):
    sums = [(x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2).sum(axis=1) for c in range(x.shape[1])]
    return x / (bias + alpha / size * np.stack(sums, axis=1)) ** beta


def depth_to_space(x, size):
    batch, channels, height, width = x.shape
    blocks = x.reshape(batch, size, size, channels // size**2, height, width)
    return blocks.transpose(0, 3, 4, 1, 5, 2).reshape(batch, channels // size**2, height * size, width * size)


def space_to_depth(x, size):
    batch, channels, height, width = x.shape
    blocks = x.reshape(batch, channels, height // size, size, width // size, size)
    return blocks.transpose(0, 3, 5, 1, 2, 4).reshape(batch, channels * size**2, height // size, width // size)


def quantized(x, scale, zero, kind):
    """As QuantizeLinear says, with NaN as 0."""
    limits = np.iinfo(kind)
    whole = np.rint(x.astype(np.float32) / scale.astype(np.float32)) + zero.astype(np.float64)
    return np.clip(np.nan_to_num(whole, nan=0.0, posinf=1e30, neginf=-1e30), limits.min, limits.max).astype(kind)


def one_hot(indices, off, on, depth):
    return np.where(np.arange(depth) == indices[..., None] % depth, on, off)


SPARSE = integers(3, 4, 5, low=-1, high=2)


def chosen(boxes, scores, limit, threshold, least, attrs):
    """A row for each class of a sample, filled up with -1."""
    count = scores.shape[2]
    made = np.full((*scores.shape[:2], count if attrs.most < 0 else min(count, attrs.most)), -1)
    for place in np.ndindex(scores.shape[:2]):
        found = detection.chosen_boxes(
            boxes[place[0]],
            scores[place],
            limit[0],
            threshold[0],
            None if attrs.every_score else least[0],
            attrs.center_point_box,
        )
        made[place][: len(found)] = found
    return made


def product_of_bytes(a, b):
    return a.astype(np.int32) @ b


def pairs(z):
    """Complex numbers as a real and an imaginary part each."""
    return np.stack([z.real, z.imag], axis=-1)


def open_fft_tables(length, longer):
    """The roots and the chirp of nn.open_fft."""
    turns = (np.arange(longer) / longer, np.arange(length) ** 2 / (2 * length))
    return [np.stack([np.cos(2 * np.pi * t), -np.sin(2 * np.pi * t)]).astype("f4") for t in turns]


def complex_of(x):
    return x[..., 0] + 1j * x[..., 1]


def unpacked_words(panels):
    """The matrix of signed bytes whose columns stand in panels of words."""
    tiles, words, width = panels.shape
    by_bytes = panels.astype("<i4").view(np.int8).reshape(tiles, words, width, 4)
    return by_bytes.transpose(1, 3, 0, 2).reshape(4 * words, tiles * width).astype(np.int32)


def words_of_halves(*shape):
    """Words of two bfloat16 each."""
    return halves(*shape[:-1], 2 * shape[-1]).view("<i4")


def blockwise_weight(codes, zeros, scales, block):
    """The real numbers of a weight [N, K] whose blocks along K have a zero point and a scale each."""
    spread = [np.repeat(np.asarray(a, np.float64), block, axis=1)[:, : codes.shape[1]] for a in (zeros, scales)]
    return (codes - spread[0]) * spread[1]


def blockwise_panels(words, zeros, scales, bits, block):
    """The real numbers of a weight that stands in panels of words, as rows of terms."""
    shifts = np.arange(0, 32, bits)[:, None]
    codes = (words[:, :, None] >> shifts & (1 << bits) - 1).reshape(words.shape[0], -1, words.shape[2])
    codes, zeros, scales = (a.swapaxes(0, 1).reshape(a.shape[1], -1).T for a in (codes, zeros, scales))
    return blockwise_weight(codes[:, : zeros.shape[1] * block], zeros, scales, block).T


def unpacked_pairs(panels):
    """The matrix of panels of words of two bfloat16."""
    tiles, words, width = panels.shape
    by_terms = panels.astype("<i4").view(ml_dtypes.bfloat16).reshape(tiles, words, width, 2)
    return by_terms.transpose(1, 3, 0, 2).reshape(2 * words, tiles * width)


def product_of_halves(a, b):
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(ml_dtypes.bfloat16)


def window_case(make, oracle, x, w, strides, padding, dilations, *rest, **attrs):
    """A convolution."""
    return (
        lambda a, b: make(a, b, strides=strides, padding=padding, dilation=dilations, **attrs),
        lambda a, b: oracle(a, b, strides, padding, dilations, *rest),
        floats(*x),
        floats(*w),
    )


def conv_case(x, w, strides=(1, 1), padding=(0,) * 4, dilations=(1, 1), groups=1):
    return window_case(nn.conv, windows.conv, x, w, strides, padding, dilations, groups, groups=groups)


def byte_conv_case(x, w, kinds="int8 int8", **attrs):
    make, oracle, *_ = conv_case(x, w, **attrs)
    values = [integers(*shape, kind=kind) for shape, kind in zip((x, w), kinds.split(), strict=True)]
    return (make, oracle, *values)


def word_conv_case(x, w, strides, padding):
    """A convolution of bytes whose weight has the words of four channels of a tap side by side."""
    values = integers(*x, kind="uint8", low=0), windows.rearranged(integers(*w, kind="int8"), "OIHW", "OHWI4i")
    layouts = ("NCHW", "OHWI4i", "NCHW")
    return (
        lambda *given: nn.conv(*given, strides, padding, kernel_layout=layouts[1]),
        lambda *given: windows.conv_in(*given, strides, padding, (1, 1), 1, layouts),
        *values,
    )


def layout_case(x, w, layouts, strides=(1, 1), padding=(0,) * 4, groups=1, dilations=(1, 1)):
    """A convolution in other layouts: of x, of the weight, of the result."""
    data, kernel, out = layouts.split()
    attrs = {"groups": groups, "data_layout": data, "kernel_layout": kernel, "out_layout": out}
    return window_case(
        nn.conv, windows.conv_in, x, w, strides, padding, dilations, groups, (data, kernel, out), **attrs
    )


def winograd_case(x, w, size, width, padding, data="NCHW2c", out="NCHW2c", group=None):
    """A convolution of x and w, both of which are rearranged before: so its arguments are what it takes. That of open
    images, which has a ``group``, takes the weight also as it is but for its layout.

    The numbers are small: transforms round as the largest of a tile."""
    weight = floats(*w) / 3
    planes = np.ascontiguousarray(WinogradPlanes(size, width)(weight))
    arguments = [windows.rearranged(floats(*x) / 3, "NCHW", data), planes]

    def oracle(a, *_):
        plain = windows.conv(windows.rearranged(a, data, "NCHW"), weight, (1, 1), padding, (1, 1), 1)
        return windows.rearranged(plain, "NCHW", out)

    if group is None:
        return lambda a, u: nn.winograd_conv2d(a, u, size, padding, data, out), oracle, *arguments
    kernel = windows.rearranged(weight, "OIHW", "OIHW2i2o")
    call = partial(nn.open_winograd_conv2d, size=size, group=group, padding=padding, data_layout=data, out_layout=out)
    return call, oracle, *arguments, kernel


def strassen_conv_case(x, filters, width, strides=(1, 1), data="NCHW2c", out="NCHW2c"):
    weight = floats(filters, x[1], 1, 1)
    blocked = windows.rearranged(floats(*x), "NCHW", data)
    return (
        lambda a, u: nn.strassen_conv2d(a, u, strides, data, out),
        lambda a, u: windows.rearranged(
            windows.conv(windows.rearranged(a, data, "NCHW"), weight, strides, (0,) * 4, (1, 1), 1), "NCHW", out
        ),
        blocked,
        Planes(width, transposed=True)(weight),
    )


def strassen_case(a, columns, width):
    b = floats(a[-1], columns)
    return nn.strassen_matmul, lambda a, planes: a @ b, floats(*a), Planes(width, transposed=False)(b)


def best(x, k, axis, largest):
    """The first elements in a stable order, and their places."""
    places = np.argsort(-x if largest else x, axis, kind="stable")
    places = np.take(places, np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places


def recurrence_cases(name, oracle, gates, more=lambda hidden: (), states=1, **attrs):
    """Recurrences of one sample and of several, of units that fill their panels and not."""
    op = get_op(name)
    for time, batch, hidden in ((3, 1, 5), (2, 4, 18), (0, 1, 3), (2, 3, 16)):
        weights = recurrences.panels(floats(gates * hidden, hidden) / 3, gates, name != "nn.gru_steps")
        first = [floats(batch, hidden) for _ in range(states)]
        yield (
            lambda *x: op(*x, attrs=op.attrs(clip=2.5, **attrs)),
            lambda *x: recurrences.of_panels(oracle)(*x, clip=2.5),
            floats(time, batch, gates * hidden),
            weights,
            *first,
            *more(hidden),
        )


OF_GATES = {"activations": ("Sigmoid", "Tanh", "Tanh"), "alphas": (0.0,) * 3, "betas": (0.0,) * 3}
OF_UPDATE = {"activations": ("Sigmoid", "Tanh"), "alphas": (0.0,) * 2, "betas": (0.0,) * 2}
OF_STATE = {"activations": ("Tanh",), "alphas": (0.0,), "betas": (0.0,)}


def blocks_there_and_back(lanes):
    """Channels to blocks of so many, and the other way; the places are no multiple of them."""
    blocked = f"NCHW{lanes}c"
    yield (
        lambda x: nn.layout_transform(x, "NCHW", blocked),
        lambda x: x.reshape(2, 2, lanes, 3, 5).transpose(0, 1, 3, 4, 2),
        floats(2, 2 * lanes, 3, 5),
    )
    yield (
        lambda x: nn.layout_transform(x, blocked, "NCHW"),
        lambda x: x.transpose(0, 1, 4, 2, 3).reshape(1, 2 * lanes, 3, 5),
        floats(1, 2, 3, 5, lanes),
    )


def append_rows(x, rows):
    return get_op("append_rows")(x, rows, attrs=get_op("append_rows").attrs())


def write_rows(x, rows, starts, *attrs):
    return get_op("write_rows")(x, rows, starts, attrs=get_op("write_rows").attrs(*attrs))


def transposed_case(x, w, strides=(1, 1), padding=(0,) * 4, extra=(0, 0), groups=1):
    attrs = {"output_padding": extra, "groups": groups}
    ones = (1,) * len(strides)
    return window_case(nn.conv_transpose, windows.conv_transpose, x, w, strides, padding, ones, extra, groups, **attrs)


def pool_case(make, fold, x=(1, 2, 7, 6), window=(3, 2), strides=(2, 1), padding=(1, 0, 1, 1), ceil=False, **attrs):
    return (
        lambda a: make(a, window=window, strides=strides, padding=padding, ceil_mode=ceil, **attrs),
        lambda a: windows.pool(a, window, strides, padding, (1, 1), ceil, fold),
        floats(*x),
    )


def pool_indices(x):
    window = ((3, 2), (2, 1), (1, 0, 1, 1), (1, 1), False)
    return windows.pool(x, *window, lambda v, padded: v.max(-1)), windows.max_pool_indices(x, *window)


# Operators with one argument and no attributes, and the range in which they have a value.
UNARY = {
    "abs": np.abs, "negative": np.negative, "sign": np.sign, "relu": lambda x: np.maximum(x, 0), "exp": np.exp,
    "reciprocal": lambda x: 1 / x, "erf": np.vectorize(math.erf, otypes=[float]), "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.rint, "sin": np.sin, "cos": np.cos, "tan": np.tan, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "sigmoid": sigmoid, "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)), "mish": lambda x: x * np.tanh(softplus(x)), "identity": lambda x: x,
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
}  # fmt: skip
UNARY_WITHIN = {
    "sqrt": (np.sqrt, 0, 9), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9), "log": (np.log, 0.1, 9),
    "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "acosh": (np.arccosh, 1, 9),
    "atanh": (np.arctanh, -0.9, 0.9),
}  # fmt: skip
WITH_ATTRIBUTES = {
    "leaky_relu": ({"alpha": 0.1}, lambda x: np.where(x > 0, x, 0.1 * x)),
    "thresholded_relu": ({"alpha": 0.5}, lambda x: np.where(x > 0.5, x, 0)),
    "elu": ({"alpha": 2.0}, lambda x: np.where(x > 0, x, 2 * np.expm1(x))),
    "selu": ({"alpha": 1.5, "gamma": 1.2}, lambda x: 1.2 * np.where(x > 0, x, 1.5 * np.expm1(x))),
    "celu": ({"alpha": 2.0}, lambda x: np.maximum(x, 0) + np.minimum(0, 2 * np.expm1(x / 2))),
    "hard_sigmoid": ({"alpha": 0.3, "beta": 0.4}, lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    "swish": ({"alpha": 1.5}, lambda x: x * sigmoid(1.5 * x)),
    "gelu": ({}, lambda x: x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))),
    "shrink": ({"lambd": 1.0, "bias": 0.5}, lambda x: np.where(x < -1, x + 0.5, np.where(x > 1, x - 0.5, 0))),
    "clip": ({"min": -1.0, "max": 2.0}, lambda x: np.clip(x, -1, 2)),
    "cast": ({"to": "int32"}, np.trunc),
    "bitcast": ({"to": "int32"}, lambda x: x.astype(np.float32).view(np.int32)),
    "broadcast_to": ({"shape": (2, 1, 4, 3)}, lambda x: np.broadcast_to(x, (2, 5, 4, 3))),
    "expand_dims": ({"axes": (0, 2)}, lambda x: np.expand_dims(x, (0, 2))),
    "reshape": ({"shape": (4, -1)}, lambda x: x.reshape(4, -1)),
    "tile": ({"repeats": (2, 1, 5)}, lambda x: np.tile(x, (2, 1, 5))),
    "trilu": ({"k": 1, "upper": False}, lambda x: np.tril(x, 1)),
    "strided_slice": ({"starts": [4, 1], "ends": [-6, 9], "axes": [0, 2], "steps": [-2, 1]}, lambda x: x[4::-2, :, 1:]),
    "pad": ({"before": (1, 0, 2), "after": (0, 3, 1), "value": 7.0},
            lambda x: np.pad(x, ((1, 0), (0, 3), (2, 1)), constant_values=7)),
}  # fmt: skip
ARITHMETIC = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "greater": np.greater,
    "less_equal": np.less_equal, "greater_equal": np.greater_equal,
}  # fmt: skip
OF_BITS = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "mod": np.mod,
    "left_shift": np.left_shift, "right_shift": np.right_shift,
}  # fmt: skip
OF_BOOLS = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
REDUCTIONS = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min,
    "l1": lambda x, **k: np.abs(x).sum(**k), "l2": lambda x, **k: np.sqrt((x**2).sum(**k)),
    "sum_square": lambda x, **k: (x**2).sum(**k), "log_sum": lambda x, **k: np.log(x.sum(**k)),
    "log_sum_exp": lambda x, **k: np.log(np.exp(x).sum(**k)),
}  # fmt: skip
POOLS = {
    "nn.max_pool": (nn.max_pool, lambda v, padded: v.max(-1)),
    "nn.avg_pool": (nn.avg_pool, lambda v, padded: v.mean(-1)),
    "nn.lp_pool": (nn.lp_pool, lambda v, padded: np.sqrt((v**2).sum(-1))),
}

CASES = {
    # An operator's cases: a function from variables to the call, one from arrays (float64 for floats) to what numpy
    # gives, and the arrays.
    **{name: [(getattr(nn, name), oracle, floats(5, 4, 3))] for name, oracle in UNARY.items()},
    **{
        name: [(getattr(nn, name), oracle, rng.uniform(low, high, (3, 7)).astype(np.float32))]
        for name, (oracle, low, high) in UNARY_WITHIN.items()
    },
    **{
        name: [(lambda x, name=name, attrs=attrs: getattr(nn, name)(x, **attrs), oracle, floats(5, 4, 3))]
        for name, (attrs, oracle) in WITH_ATTRIBUTES.items()
    },
    **{
        name: [
            (getattr(nn, name), oracle, floats(2, 1, 5), floats(3, 1)),
            (getattr(nn, name), oracle, np.array([1.5, -2, 0.25], "f4"), np.array([1.5, 3, -0.5], "f4")),
        ]
        for name, oracle in ARITHMETIC.items()
    },
    **{
        name: [(getattr(nn, name), oracle, counts(4, 5), counts(5))]
        for name, oracle in OF_BITS.items()
    },
    **{
        name: [(getattr(nn, name), oracle, bools(4, 5), bools(5))]
        for name, oracle in OF_BOOLS.items()
    },
    **{
        name: [
            (
                lambda x, name=name, axes=axes, keep=keep: getattr(nn, name)(x, axes, keepdims=keep),
                lambda x, oracle=oracle, axes=axes, keep=keep: oracle(x, axis=axes, keepdims=keep),
                np.abs(floats(*shape)) + 0.1,
            )
            for axes, keep, shape in (
                *((axes, keep, (2, 3, 9)) for axes, keep in (((2,), False), ((0, 1), True), ((0, 1, 2), False))),
                ((1,), False, (2, 65)),
                ((1,), False, (5, 18)),
            )
        ]
        for name, oracle in REDUCTIONS.items()
    },
    "any": [(lambda x: nn.any(x, (1,)), lambda x: x.any(1), bools(*shape)) for shape in ((4, 3), (2, 65), (5, 18))],
    "all": [
        (lambda x, d=d: nn.all(x, (d,)), lambda x, d=d: x.all(d), bools(2, extent))
        for d, extent in ((0, 9), (1, 65), (1, 18))
    ],
    "argmax": [
        (lambda x: nn.argmax(x, axis=1), lambda x: x.argmax(1), integers(3, 8, 2)),
        (lambda x: nn.argmax(x, axis=1), lambda x: x.argmax(1), integers(2, 70)),
        (lambda x: nn.argmax(x, axis=1), lambda x: x.argmax(1), integers(5, 18)),
    ],
    "argmin": [
        (lambda x: nn.argmin(x, axis=-1), lambda x: x.argmin(-1), integers(3, 2, 8)),
        (lambda x: nn.argmin(x, axis=-1), lambda x: x.argmin(-1), floats(2, 70)),
        (lambda x: nn.argmin(x, axis=-1), lambda x: x.argmin(-1), floats(5, 18)),
    ],
    "isnan": [(nn.isnan, np.isnan, np.array([np.nan, 1, np.inf], "f4"))],
    "isinf": [(nn.isinf, np.isinf, np.array([np.nan, 1, np.inf, -np.inf], "f4"))],
    "isfinite": [(nn.isfinite, np.isfinite, np.array([np.nan, 1, np.inf, -np.inf], "f4"))],
    "bitwise_not": [(nn.bitwise_not, np.bitwise_not, integers(7, kind="int8"))],
    "logical_not": [(nn.logical_not, np.logical_not, bools(7))],
    "power": [(nn.power, np.power, np.abs(floats(4, 3)), floats(3))],
    "prelu": [(nn.prelu, lambda x, s: np.where(x < 0, s * x, x), floats(2, 3, 4), floats(3, 1))],
    "where": [(nn.where, np.where, bools(4, 1), floats(4, 3), floats(3))],
    "quantize": [
        (
            lambda x, s, z, kind=kind: nn.quantize(x, s, z, kind),
            lambda x, s, z, kind=kind: quantized(x, s, z, kind),
            np.append(floats(3, 7) * 99, [[np.nan], [np.inf], [-1e30]], axis=1).astype(np.float32),
            np.array([[0.5], [1.0], [0.3]], np.float32),
            np.asarray(zero, kind),
        )
        for kind, zero in (("uint8", 130), ("int8", -7), ("int16", 5))
    ],
    "dequantize": [
        (
            nn.dequantize,
            lambda x, s, z: (x.astype(np.int64) - z) * s.astype(np.float64),
            integers(3, 7, low=low, high=high, kind=kind),
            np.array([[0.5], [1.0], [0.3]], np.float32),
            np.array([[3], [0], [9]], kind),
        )
        for kind, low, high in (("uint8", 0, 256), ("int8", -128, 128), ("int32", -(1 << 20), 1 << 20))
    ],
    "byte_table": [
        (
            nn.byte_table,
            lambda x, table: table[x.view(np.uint8)],
            integers(3, 90, low=low, high=low + 256, kind=kind),
            integers(256, low=-128, high=128, kind="int8"),
        )
        for kind, low in (("uint8", 0), ("int8", -128))
    ],
    "full": [(lambda: nn.full((2, 3), 1.5), lambda: np.full((2, 3), 1.5))],
    "arange": [(lambda: get_op("arange")(attrs=get_op("arange").attrs(2, 3, 5)), lambda: np.arange(2, 17, 3))],
    "one_hot": [
        (
            lambda i, off, on: nn.one_hot(i, off, on, depth=4),
            lambda i, off, on: one_hot(i, off, on, 4),
            integers(2, 3, low=-4, high=4),
            np.float32(-1.0),
            np.float32(5.0),
        )
    ],
    "concatenate": [
        (lambda *x: nn.concatenate(x, 1), lambda *x: np.concatenate(x, 1), floats(2, 3), floats(2, 4)),
        (lambda *x: nn.concatenate(x, 1), lambda *x: np.concatenate(x, 1), floats(2, 9), floats(2, 0), floats(2, 16)),
        (
            lambda *x: nn.concatenate(x, 1),
            lambda *x: np.concatenate(x, 1),
            *(floats(3, 1 + k % 3, 2) for k in range(20)),
        ),
    ],
    "cumsum": [(lambda x: cumsum(x, 1, exclusive=True), lambda x: np.cumsum(x, 1) - x, floats(3, 5, 2))],
    "nn.tree_ensemble": [
        (
            lambda *x, targets=targets, fold=fold: TREE_ENSEMBLE(
                *x, attrs=TreeEnsembleAttrs(targets, fold, uneven=fold != "sum")
            ),
            lambda *x, targets=targets, fold=fold: walked_trees.scores(*x, targets, fold),
            floats(rows, 4),
            *walked_trees.tables(trees, 3, 4, targets, width),
        )
        for rows, trees, targets, width, fold in (
            (1, 13, 1, 1, "sum"), (14, 3, 2, 1, "sum"), (13, 2, 3, 3, "min"), (3, 2, 18, 18, "max")
        )
    ],
    "cumprod": [
        (
            lambda x: nn.cumprod(x, 1, exclusive=True, reverse=True),
            lambda x: np.cumprod(np.insert(x, 5, 1, 1)[:, :0:-1], 1)[:, ::-1],
            floats(3, 5, 2),
        ),
        (lambda x: nn.cumprod(x, 1), lambda x: np.cumprod(x, 1), floats(3, 5)),
    ],
    "scatter_elements": [
        (
            lambda x, i, u, r=r: nn.scatter_elements(x, i, u, 1, r),
            lambda x, i, u, r=r: scattering.elements(x, i, u, 1, r),
            floats(3, 4, 2),
            integers(2, 6, 2, low=-4, high=4),
            floats(2, 6, 2),
        )
        for r in scattering.REDUCTIONS
    ],
    "scatter_nd": [
        (
            lambda x, i, u, r=r: nn.scatter_nd(x, i, u, r),
            lambda x, i, u, r=r: scattering.nd(x, i, u, r),
            floats(3, 3, 5),
            integers(4, 2, low=-3, high=3),
            floats(4, 5),
        )
        for r in scattering.REDUCTIONS
    ],
    "append_rows": [
        (append_rows, lambda x, u: np.concatenate([x, u]), floats(2, 3, 5), floats(4, 3, 5)),
        (append_rows, lambda x, u: np.concatenate([x, u]), floats(0, 7), floats(1, 7)),
    ],
    "write_rows": [
        (
            lambda x, u, n, circular=circular: write_rows(x, u, n, 1, circular),
            lambda x, u, n, circular=circular: scattering.tensor(x, u, n, 1, circular),
            floats(2, 5, 3),
            floats(2, 3, 3),
            np.array([1, 4], "i8"),
        )
        for circular in (False, True)
    ],
    "tensor_scatter": [
        (
            lambda x, u, n, circular=circular: nn.tensor_scatter(x, u, n, 1, circular),
            lambda x, u, n, circular=circular: scattering.tensor(x, u, n, 1, circular),
            floats(2, 5, 3),
            floats(2, 3, 3),
            np.array([1, 4], "i8"),
        )
        for circular in (False, True)
    ],
    "nn.fft": [
        (
            lambda x, roots: FFT(x, roots, attrs=FftAttrs(37)),
            lambda x, roots: pairs(np.fft.fft(x[..., 0])[..., :37]),
            floats(2, 72, 1),
            root_table(72, is_packed=True, inverse=False).astype("f4"),
        ),
        (
            lambda x, roots: FFT(x, roots, attrs=FftAttrs(30, inverse=True)),
            lambda x, roots: pairs(np.fft.ifft(complex_of(x))),
            floats(3, 2, 30, 2),
            root_table(30, is_packed=False, inverse=True).astype("f4"),
        ),
    ],
    "nn.open_fft": [
        (
            lambda x, roots, chirp: OPEN_FFT(x, roots, chirp, attrs=OpenFftAttrs(onesided=True)),
            lambda x, roots, chirp: pairs(np.fft.rfft(x[..., 0], axis=1)),
            floats(2, 60, 1, 1),
            *open_fft_tables(60, 60),
        ),
        (
            lambda x, roots, chirp: OPEN_FFT(x, roots, chirp, attrs=OpenFftAttrs(inverse=True)),
            lambda x, roots, chirp: pairs(np.fft.ifft(complex_of(x), axis=1)),
            floats(1, 11, 3, 2),
            *open_fft_tables(11, 24),
        ),
        (
            lambda x, roots, chirp: OPEN_FFT(x, roots, chirp, attrs=OpenFftAttrs()),
            lambda x, roots, chirp: np.full((1, 5, 1, 2), np.nan, "f4"),
            floats(1, 5, 1, 2),
            *open_fft_tables(5, 7),
        ),
    ],
    "coupled_probabilities": [
        (
            lambda x: nn.coupled_probabilities(x, 4),
            lambda x: coupling.coupled_probabilities(x, 4),
            rng.uniform(0.01, 0.99, (5, 6)).astype(np.float32),
        )
    ],
    "det": [(nn.det, np.linalg.det, floats(2, 3, 4, 4))],
    "nn.frames": [
        (
            lambda x: nn.frames(x, 4, 3),
            lambda x: np.stack([x[:, k : k + 4] for k in (0, 3)], axis=1),
            floats(2, 9, 1),
        )
    ],
    "complex_multiply": [
        (nn.complex_multiply, lambda x, y: pairs(complex_of(x) * complex_of(y)), floats(3, 4, 2), floats(4, 2)),
        (nn.complex_multiply, lambda x, y: x * y, floats(3, 4, 1), floats(4, 2)),
    ],
    "col2im": [
        (
            lambda x: nn.col2im(x, (5, 4), (2, 3), (2, 1), (1, 0, 0, 1), (1, 1)),
            lambda x: windows.added_up(x, (5, 4), (2, 3), (2, 1), (1, 0, 0, 1), (1, 1)),
            floats(2, 12, 9),
        )
    ],
    "topk": [
        (
            lambda x, k=k, axis=axis, largest=largest: get_op("topk")(x, attrs=get_op("topk").attrs(k, axis, largest)),
            lambda x, k=k, axis=axis, largest=largest: best(x, k, axis, largest),
            integers(*shape, low=-3, high=4).astype("f4"),
        )
        for shape, k, axis, largest in (
            ((3, 9, 2), 1, 1, True),
            ((3, 9, 2), 4, 1, False),
            ((3, 9, 2), 9, 1, True),
            ((3, 9, 2), 2, 2, True),
            ((3, 9, 2), 0, 0, True),
            ((2, 5, 11), 3, 1, True),  # rows side by side in lanes
            ((9, 4), 2, 1, False),
        )
    ],
    "grid_sample": [
        (
            lambda x, g, mode=mode, padding=padding, align=align: nn.grid_sample(x, g, mode, padding, align),
            lambda x, g, mode=mode, padding=padding, align=align: sampling.sampled(x, g, mode, padding, align),
            floats(2, 2, 4, 5),
            floats(2, 3, 3, 2) / 2,
        )
        for mode, padding, align in zip(sampling.MODES, sampling.PADDINGS, (False, True, False), strict=True)
    ],
    "squeeze": [(lambda x: nn.squeeze(x, (1,)), lambda x: x.squeeze(1), floats(3, 1, 4))],
    "einsum": [
        (
            lambda *x: nn.einsum("bij,bjk->ki", x),
            lambda *x: np.einsum("bij,bjk->ki", *x),
            floats(2, 3, 4),
            floats(2, 4, 5),
        )
    ],
    "take": [
        (lambda x, i: nn.take(x, i, 1), lambda x, i: x.take(i, 1), floats(3, 4, 2), integers(2, 2, low=-4, high=4))
    ],
    "split_part": [
        (lambda x, k=k: split_evenly(x, 3, 1)[k], lambda x, k=k: x[:, 2 * k :][:, :2], floats(3, 5, 2))
        for k in range(3)
    ],
    "repeat": [(lambda x, k=k: repeat(x, 3, k), lambda x, k=k: np.repeat(x, 3, k), floats(2, 3, 4)) for k in range(3)],
    "assume_extent": [(assumed, lambda x, y: x, floats(2, 3), floats(3))],
    "positions": [(lambda x: POSITIONS(x, attrs=PositionsAttrs("x0_1 * 2")), lambda x: np.arange(6), floats(2, 3))],
    "extents": [
        (
            lambda x: EXTENTS(x, attrs=ExtentsAttrs(("x0_1", 7, "x0_0 + 1"))),
            lambda x: np.array([3, 7, 3]),
            floats(2, 3),
        )
    ],
    "born_extents": [
        (lambda x: known_extents(lw.const(np.array([5])), "five"), lambda x: np.zeros(5, bool), np.array([5]))
    ],
    "chosen_boxes": [
        (
            lambda *x, attrs=attrs: CHOSEN_BOXES(*x, attrs=attrs),
            lambda *x, attrs=attrs: chosen(*x, attrs),
            detection.random_boxes(rng, 2, 40, center=attrs.center_point_box),
            floats(2, 3, 40),
            np.array([12]),
            np.array([0.3], "f4"),
            np.array([-1], "f4"),
        )
        for attrs in (ChosenBoxesAttrs(), ChosenBoxesAttrs(12, True), ChosenBoxesAttrs(-1, False, True))
    ],
    "box_indices": [
        (
            BOX_INDICES,
            lambda chosen, n: np.stack([*np.nonzero(chosen >= 0)[:2], chosen[chosen >= 0]], 1),
            np.array([[[5, 0, -1], [-1, -1, -1]], [[3, 2, 1], [7, -1, -1]]], "i4"),
            np.zeros(6, "f4"),
        )
    ],
    "nn.roi_align": [
        (
            lambda x, boxes, batch, options=options: nn.roi_align(x, boxes, batch, *options),
            lambda x, boxes, batch, options=options: detection.roi_aligned(x, boxes, batch, *options),
            floats(2, 19, 9, 7),
            detection.random_rois(rng, 5, 8),
            np.array([1, 0, 1, 3, 0]),
        )
        for options in (((3, 2),), ((2, 2), 0.5, 2, "max", False))
    ],
    "nn.max_roi_pool": [
        (
            lambda x, boxes: nn.max_roi_pool(x, boxes, (3, 2), 0.6),
            lambda x, boxes: detection.roi_pooled(x, boxes, (3, 2), np.float32(0.6)),
            floats(2, 19, 9, 7),
            np.concatenate([np.array([[1], [0], [2], [-1], [0]], "f4"), detection.random_rois(rng, 5, 12)], 1),
        )
    ],
    "unique_rows": [
        (
            lambda x, ascending=ascending: UNIQUE_ROWS(x, attrs=UniqueRowsAttrs(ascending)),
            lambda x, ascending=ascending: detection.unique_rows(x, ascending),
            integers(23, columns, high=-4).astype(kind),
        )
        for ascending, columns, kind in ((True, 1, "f4"), (False, 2, "i4"), (True, 3, "i8"))
    ],
    **string_cases.CASES,
    "nonzero": [(NONZERO, lambda x, n: np.array(np.nonzero(x)), SPARSE, SPARSE[SPARSE != 0])],
    "open_slice": [
        (
            lambda x, y, k=k: OPEN_SLICE(x, y, attrs=OpenSliceAttrs(k, 1, "x1_0 - 1")),
            lambda x, y, k=k: x[(slice(None),) * k + (slice(1, 3),)],
            floats(3, 4, 5),
            floats(3),
        )
        for k in range(3)
    ],
    "resize_indices": [
        (
            lambda x: INDICES(x, attrs=ResizeTableAttrs("x0_1", "x0_1 * 2", 2.0, "linear", "asymmetric")),
            lambda x: np.clip(np.array([[-1, 0, 0, 1, 1, 2], [0, 1, 1, 2, 2, 3]]), 0, 2),
            floats(2, 3),
        )
    ],
    "resize_weights": [
        (
            lambda x: WEIGHTS(x, attrs=ResizeTableAttrs("x0_1", "x0_1 * 2", 0.0, "linear", "asymmetric")),
            lambda x: np.array([[0, 0.5] * 3, [1, 0.5] * 3]),
            floats(2, 3),
        )
    ],
    "nn.resample": [
        (
            lambda x, i, w: resample(x, i, w, 1),
            lambda x, i, w: (x[:, i] * w[..., None]).sum(1),
            floats(2, 5, 3),
            integers(2, 4, low=-5, high=5),
            floats(2, 4),
        )
    ],
    "gather_elements": [
        (
            lambda x, i: nn.gather_elements(x, i, axis=1),
            lambda x, i: np.take_along_axis(x, i, 1),
            floats(3, 4),
            integers(3, 2, low=-4, high=4),
        )
    ],
    "gather_nd": [
        (nn.gather_nd, lambda x, i: x[tuple(np.moveaxis(i, -1, 0))], floats(3, 3, 2), integers(4, 2, low=-3, high=3))
    ],
    "nn.attention": [
        (
            lambda q, k, v: nn.attention(q, k, v, causal=True),
            lambda q, k, v: attention(q, k, v, np.where(np.tri(9, 7), 0, -np.inf)),
            floats(1, 2, 9, 3),
            floats(1, 1, 7, 3),
            floats(1, 1, 7, 2),
        )
    ],
    "nn.masked_attention": [
        (nn.attention, attention, floats(1, 2, 5, 3), floats(1, 2, 7, 3), floats(1, 2, 7, 2), floats(*mask))
        for mask in ((1, 1, 1, 7), (5, 7))
    ],
    "nn.lstm_steps": [*recurrence_cases("nn.lstm_steps", recurrences.lstm, 4, states=2, **OF_GATES)],
    "nn.peephole_lstm_steps": [
        *recurrence_cases(
            "nn.peephole_lstm_steps", recurrences.lstm, 4, lambda n: (floats(3, n),), states=2, **OF_GATES
        )
    ],
    "nn.gru_steps": [*recurrence_cases("nn.gru_steps", recurrences.gru, 3, **OF_UPDATE)],
    "nn.reset_after_gru_steps": [
        *recurrence_cases("nn.reset_after_gru_steps", recurrences.gru, 3, lambda n: (floats(n),), **OF_UPDATE)
    ],
    "nn.rnn_steps": [*recurrence_cases("nn.rnn_steps", recurrences.rnn, 1, **OF_STATE)],
    "reverse_sequence": [
        (
            lambda x, n: nn.reverse_sequence(x, n, 0, 1),
            recurrences.backwards,
            floats(5, 3, 2),
            np.array([5, 0, 3], "i4"),
        )
    ],
    "softmax": [
        (lambda x: nn.softmax(x, -1), lambda x: softmax(x, -1), floats(2, 3, 19)),
        (lambda x: nn.softmax(x, -1), lambda x: softmax(x, -1), floats(2, 65)),
        (lambda x: nn.softmax(x, 0), lambda x: softmax(x, 0), floats(4, 3)),
    ],
    "log_softmax": [
        (lambda x: nn.log_softmax(x, -1), lambda x: np.log(softmax(x, -1)), floats(3, n)) for n in (19, 65)
    ],
    "nn.batch_norm": [
        (
            batch_norm,
            lambda x, scale, bias, mean, variance: (x - along_channels(mean, x))
            / np.sqrt(along_channels(variance, x) + 1e-5)
            * along_channels(scale, x)
            + along_channels(bias, x),
            floats(2, 3, 4),
            floats(3),
            floats(3),
            floats(3),
            np.abs(floats(3)) + 0.5,
        )
    ],
    "nn.instance_norm": [
        (
            nn.instance_norm,
            lambda x, scale, bias: normalised(x, (2, 3)) * along_channels(scale, x) + along_channels(bias, x),
            floats(2, 3, *spatial),
            floats(3),
            floats(3),
        )
        for spatial in ((4, 5), (8, 9))
    ],
    "nn.rms_norm": [
        (nn.rms_norm, lambda x, s: scaled_to_1(x) * s, floats(3, 19), floats(19)),
        (nn.rms_norm, lambda x, s: scaled_to_1(x) * s, floats(2, 70), floats(70)),
    ],
    "nn.layer_norm": [
        (nn.layer_norm, lambda x, s, b: normalised(x, (-1,)) * s + b, floats(3, 19), floats(19), floats(19)),
        (nn.layer_norm, lambda x, s, b: normalised(x, (-1,)) * s + b, floats(2, 70), floats(70), floats(70)),
    ],
    "nn.lp_normalize": [
        (
            lambda x: nn.lp_normalize(x, axis=1, p=2),
            lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
            floats(2, 5, 3),
        )
    ],
    "transpose": [(lambda x: nn.transpose(x, (1, 0)), np.transpose, floats(*shape)) for shape in ((17, 18), (3, 20))],
    "layout_transform": [
        (lambda x: nn.layout_transform(x, "NCW", "WCN"), np.transpose, floats(2, 3, 4)),
        *(case for lanes in (4, 8) for case in blocks_there_and_back(lanes)),
    ],
    "nn.lrn": [
        (lambda x: nn.lrn(x, 3, alpha=0.3, beta=0.6, bias=2.0), local_response, floats(1, 5, 3, 2)),
        (
            lambda x: nn.lrn(x, 3, alpha=0.3, beta=0.6, bias=2.0, layout="NHWC"),
            lambda x: np.moveaxis(local_response(np.moveaxis(x, 3, 1)), 1, 3),
            floats(1, 3, 2, 5),
        ),
    ],
    "nn.depth_to_space": [(lambda x: nn.depth_to_space(x, 2), lambda x: depth_to_space(x, 2), floats(1, 8, 2, 3))],
    "nn.space_to_depth": [(lambda x: nn.space_to_depth(x, 2), lambda x: space_to_depth(x, 2), floats(1, 2, 4, 6))],
    "nn.global_avg_pool": [
        (nn.global_avg_pool, lambda x: x.mean((2, 3), keepdims=True), floats(2, 3, *plane))
        for plane in ((4, 5), (9, 15))
    ],
    "nn.global_max_pool": [
        (nn.global_max_pool, lambda x: x.max((2, 3), keepdims=True), floats(2, 3, *plane))
        for plane in ((4, 5), (9, 15))
    ],
    "nn.global_lp_pool": [
        (nn.global_lp_pool, lambda x: np.sqrt((x**2).sum((2, 3), keepdims=True)), floats(2, 3, *plane))
        for plane in ((4, 5), (9, 15))
    ],
    **{
        name: [
            pool_case(make, fold),
            pool_case(make, fold, ceil=True),
            pool_case(make, fold, window=(17, 20), strides=(17, 20), ceil=True),  # the image is in one window
        ]
        for name, (make, fold) in POOLS.items()
    },
    "nn.max_pool_with_indices": [
        (
            lambda x: nn.max_pool_with_indices(x, window=(3, 2), strides=(2, 1), padding=(1, 0, 1, 1)),
            pool_indices,
            floats(1, 2, 5, 6),
        )
    ],
    "nn.matmul": [
        (nn.matmul, np.matmul, floats(3, 5), floats(5, 7)),
        (nn.matmul, np.matmul, floats(2, 3, 4), floats(4, 9)),
        (nn.matmul, product_of_bytes, integers(2, 3, kind="int8"), integers(3, 2, kind="int8")),
        (nn.matmul, product_of_bytes, counts(2, 3, 6), integers(6, 5, kind="int8")),
        (nn.matmul, np.matmul, floats(5, 18), floats(18, 1)),
        (nn.matmul, np.matmul, integers(2, 3, kind="int16"), integers(3, 2, kind="int16")),
        (nn.matmul, product_of_halves, halves(3, 5), halves(5, 7)),
    ],
    "nn.batch_matmul": [
        (nn.batch_matmul, np.matmul, floats(2, 3, 4), floats(2, 4, 9)),
        (
            lambda a, b: nn.batch_matmul(a, b, transpose_a=True, transpose_b=True),
            lambda a, b: np.matmul(a.swapaxes(1, 2), b.swapaxes(1, 2)),
            floats(2, 4, 3),
            floats(1, 9, 4),
        ),
        (nn.batch_matmul, product_of_bytes, integers(2, 2, 3, kind="int8"), integers(2, 3, 2, kind="int8")),
    ],
    "nn.packed_matmul": [
        (
            lambda a, panels: nn.packed_matmul(a, panels, columns=37),
            lambda a, panels: a @ panels.swapaxes(0, 1).reshape(6, 48)[:, :37],
            floats(5, 6),
            floats(3, 6, 16),
        ),
    ],
    "nn.strassen_matmul": [strassen_case((5, 6), 12, 3), strassen_case((2, 4, 8), 16, 4), strassen_case((1, 4), 4, 1)],
    "nn.strassen_conv2d": [
        strassen_conv_case((2, 8, 3, 5), 16, 4),
        strassen_conv_case((1, 4, 5, 4), 8, 4, (2, 1), out="NCHW4c"),
    ],
    "nn.packed_byte_matmul": [
        (
            lambda a, panels: nn.packed_byte_matmul(a, panels, columns=37, dtype="int8"),
            lambda a, panels: product_of_bytes(a, unpacked_words(panels)[: a.shape[1], :37]),
            integers(*a, kind=sign),
            integers(3, math.ceil(a[1] / 4), 16, low=-(1 << 31), high=1 << 31),
        )
        for a, sign in (((19, 64), "uint8"), ((5, 6), "int8"))
    ],
    "nn.blockwise_dense": [
        (
            lambda x, codes, zeros, scales: nn.blockwise_dense(x, codes, zeros, scales, bits=4, block=3),
            lambda x, codes, zeros, scales: x @ blockwise_weight(codes, zeros, scales, 3).T,
            floats(5, 8),
            integers(7, 8, low=0, high=16, kind="uint8"),
            integers(7, 3, low=0, high=16, kind="uint8"),
            floats(7, 3),
        ),
    ],
    "nn.packed_blockwise": [
        (
            lambda x, words, zeros, scales: nn.packed_blockwise(x, words, zeros, scales, 37, bits=4, block=8),
            lambda x, words, zeros, scales: x @ blockwise_panels(words, zeros, scales, 4, 8)[:20, :37],
            floats(rows, 20),
            integers(3, 3, 16, low=-(1 << 31), high=1 << 31),
            integers(3, 3, 16, low=0, high=16, kind="uint8"),
            floats(3, 3, 16),
        )
        for rows in (2, 14)
    ],
    "nn.packed_pair_matmul": [
        (
            lambda a, panels: nn.packed_pair_matmul(a, panels, columns=37),
            lambda a, panels: product_of_halves(a, unpacked_pairs(panels)[:5, :37]),
            halves(4, 5),
            words_of_halves(3, 3, 16),
        ),
    ],
    "nn.dense": [
        (nn.dense, lambda x, w: x @ w.T, floats(3, 5), floats(7, 5)),
        (nn.dense, lambda x, w: x @ w.T, floats(3, 18), floats(4, 18)),
        (lambda x, w: nn.dense(x, w, transposed=False), np.matmul, floats(3, 5), floats(5, 9)),
    ],
    "nn.expert_dense": [
        (
            nn.expert_dense,
            lambda x, experts, w: np.einsum("rk,rnk->rn", x, w[experts]),
            floats(4, columns),
            integers(4, low=0, high=3, kind="int64"),
            floats(3, 5, columns),
        )
        for columns in (6, 70)
    ],
    "nn.conv1d": [
        conv_case((2, 3, 9), (4, 3, 2), (1,), (1, 0), (2,)),
        layout_case((2, 9, 3), (2, 3, 4), "NWC WIO NCW", (2,), (0, 1), dilations=(1,)),
    ],
    "nn.conv2d": [
        conv_case((1, 2, 5, 6), (3, 2, 3, 3), padding=(1, 1, 1, 1)),
        conv_case((2, 3, 4, 3), (5, 3, 1, 1)),
        conv_case((1, 2, 7, 6), (2, 2, 3, 2), strides=(2, 1), dilations=(1, 2), padding=(0, 1, 1, 0)),
        conv_case((1, 4, 5, 4), (4, 1, 3, 3), padding=(1, 1, 1, 1), groups=4),
        conv_case((1, 2, 17, 16), (2, 1, 3, 3), padding=(1, 1, 1, 1), groups=2),
        conv_case((1, 4, 4, 5), (6, 2, 2, 2), groups=2),
        byte_conv_case((1, 5, 4, 5), (3, 5, 2, 2), padding=(1, 0, 0, 1)),
        byte_conv_case((1, 8, 2, 5), (3, 8, 1, 1)),
        byte_conv_case((1, 4, 4, 5), (4, 1, 3, 3), padding=(1, 1, 1, 1), groups=4),
        word_conv_case((1, 32, 3, 4), (16, 32, 2, 3), strides=(1, 2), padding=(1, 1, 0, 1)),
        word_conv_case((2, 64, 3, 7), (16, 64, 1, 1), strides=(1, 1), padding=(0, 0, 0, 0)),
        layout_case((2, 5, 4, 3), (3, 2, 3, 7), "NHWC HWIO NHWC", padding=(1, 0, 1, 2)),
        layout_case((5, 4, 4, 3), (2, 2, 2, 6), "HWCN HWIO HWCN", strides=(2, 1), groups=2),
        layout_case((1, 3, 4, 6), (2, 3, 1, 6), "NHWC HWIO NHWC", padding=(1, 1, 0, 1), groups=6),
        layout_case((1, 2, 4, 5, 2), (3, 2, 2, 2, 2, 2), "NCHW2c OIHW2i2o NCHW3c"),
        layout_case((1, 1, 4, 5, 8), (2, 1, 2, 3, 8, 4), "NCHW8c OIHW8i4o NCHW4c", padding=(0, 1, 1, 0)),
        layout_case((2, 1, 3, 5, 8), (1, 1, 1, 1, 8, 8), "NCHW8c OIHW8i8o NCHW8c"),
        layout_case((1, 4, 5, 5), (2, 2, 3, 3, 4), "NCHW OIHW4o NCHW4c", strides=(2, 2), groups=2),
        layout_case((2, 4, 5, 7), (5, 4, 1, 1, 4), "NCHW OIHW4o NCHW"),
        layout_case((1, 2, 6, 7), (1, 2, 2, 3, 8), "NCHW OIHW8o NCHW", strides=(2, 1), padding=(0, 1, 1, 0)),
        layout_case((1, 4, 5, 7), (2, 2, 1, 1, 2), "NCHW OIHW2o NCHW", strides=(2, 1), groups=2),
        layout_case((1, 2, 4, 5, 4), (2, 1, 3, 3, 4), "NCHW4c OIHW4o NCHW4c", padding=(1, 1, 1, 1), groups=8),
    ],
    "nn.conv3d": [
        conv_case((1, 2, 3, 4, 4), (3, 2, 2, 2, 3), (1, 2, 1), (0, 1, 0, 1, 0, 1), (1, 1, 1)),
        layout_case((1, 3, 4, 4, 2), (2, 2, 3, 2, 3), "NDHWC DHWIO NDHWC", (1, 1, 1), (0, 1, 0, 1, 0, 1), 1, (1, 1, 1)),
    ],
    "nn.winograd_conv2d": [
        winograd_case((1, 2, 5, 6), (4, 2, 3, 3), 2, 4, (1, 1, 1, 1)),
        winograd_case((1, 4, 5, 3), (4, 4, 3, 3), 4, 2, (0, 1, 2, 1)),
        winograd_case((1, 2, 5, 6), (4, 2, 3, 3), 2, 4, (1, 1, 1, 1), out="NCHW"),
    ],
    "nn.open_winograd_conv2d": [
        winograd_case((1, 2, 5, 6), (4, 2, 3, 3), 2, 4, (1, 1, 1, 1), group=2),
        winograd_case((1, 8, 12, 12), (8, 8, 3, 3), 4, 4, (0, 1, 2, 1), group=4),
    ],
    "nn.conv1d_transpose": [transposed_case((1, 2, 5), (2, 3, 3), (2,), (1, 0), (0,))],
    "nn.conv3d_transpose": [transposed_case((1, 2, 2, 3, 2), (2, 1, 2, 2, 3), (1, 2, 1), (0, 1, 0) * 2, (0, 0, 0))],
    "nn.conv2d_transpose": [
        transposed_case((1, 2, 3, 4), (2, 3, 3, 2)),
        transposed_case((1, 2, 3, 3), (2, 2, 3, 3), strides=(2, 2), padding=(1, 1, 1, 1), extra=(1, 0)),
        transposed_case((1, 4, 3, 2), (4, 1, 2, 2), groups=2),
    ],
}  # fmt: skip


def candidates(call, target):
    """The implementations that a target has for a call, and which of them serve it."""
    for condition, implementation in strategy.strategy_of(
        call.op, call.attrs, [a.type for a in call.args], call.type, target
    ).candidates():
        yield implementation, condition is None or all(holds for _, holds in condition.verdicts())


def implement(call, implementation):
    tensors = tuple(te.placeholder(a.type.shape, a.type.dtype, name=f"x{k}") for k, a in enumerate(call.args))
    return tensors, implementation.computed(call.op.name, call.attrs, tensors, call.type)


def programs(call, target):
    """By name, the nests to interpret: of each implementation the naive one, and its schedule's before and after the
    passes; with the shapes of the outputs."""
    for implementation, serves in candidates(call, target):
        if not serves:
            continue
        tensors, computed = implement(call, implementation)
        outputs = strategy.outputs_of(computed)
        args = [*tensors, *outputs]
        s = implementation.schedule(call.attrs, computed, outputs, target)
        yield f"{implementation.name}, naive", realized_function(lw.create_schedule(list(outputs)), args), outputs
        yield f"{implementation.name}, scheduled", realized_function(s, args), outputs
        yield f"{implementation.name}, lowered", lw.lower(s, args, target=target), outputs


def same(found, wanted):
    assert found.shape == np.shape(wanted)
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
    else:
        np.testing.assert_array_equal(found, np.asarray(wanted).astype(found.dtype))


def exact(array):
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def targets_of(name):
    """The targets for which an operator may have implementations of its own."""
    return {**TARGETS, **(MATRIX_TARGETS if name in PRODUCTS else TILE_TARGETS if name in TILED else {})}


CALLS = [
    pytest.param(name, k, target, id=f"{name}-{k}-{label}", marks=pytest.mark.slow if k and (k + at) % 2 else ())
    for name in sorted(CASES)
    for k in range(len(CASES[name]))
    for at, (label, target) in enumerate(targets_of(name).items())
]
"""Of each operator the first case for all targets; of others every second target is among the slow tests."""


@pytest.mark.parametrize(("name", "number", "target"), CALLS)
def test_the_interpreter_agrees_with_numpy(ops, name, number, target):
    make, oracle, *arrays = CASES[name][number]
    arrays = [np.asarray(a) for a in arrays]
    call = make(*(ops.var(a.shape, a.dtype.name, f"x{k}") for k, a in enumerate(arrays)))
    assert call.op.name == name
    wanted = oracle(*map(exact, arrays))
    wanted = wanted if isinstance(call.type, TupleType) else (wanted,)
    for title, func, outputs in programs(call, target):
        results = [np.zeros([int(e) for e in o.shape], o.dtype.to_numpy()) for o in outputs]
        lw.interpret(func)(*arrays, *results)
        for found, expected in zip(results, wanted, strict=True):
            try:
                same(found, expected)
            except AssertionError as error:
                raise AssertionError(f"{title}: {error}\n{func}") from None


NOT_BY_NUMPY = [
    "append_rows",
    "box_indices",
    "chosen_boxes",
    "count_pieces",
    "coupled_probabilities",
    "cumprod",
    "cumsum",
    "det",
    "ngram_counts",
    "nn.gru_steps",
    "nn.lstm_steps",
    "nn.max_roi_pool",
    "nn.open_fft",
    "nn.peephole_lstm_steps",
    "nn.reset_after_gru_steps",
    "nn.rnn_steps",
    "nn.roi_align",
    "nn.tree_ensemble",
    "nonzero",
    "number_strings",
    "scatter_elements",
    "scatter_nd",
    "string_case",
    "string_concat",
    "string_equal",
    "string_index",
    "string_matches",
    "string_numbers",
    "string_pieces",
    "topk",
    "unique_rows",
    "write_rows",
]
"""Operators whose definition has a scan, an extern, or bounds that differ from element to element."""


@pytest.mark.parametrize(("name", "number"), [(name, k) for name in sorted(CASES) for k in range(len(CASES[name]))])
def test_definitions_run_by_numpy_agree_as_well(ops, name, number):
    make, oracle, *arrays = CASES[name][number]
    arrays = [np.asarray(a) for a in arrays]
    call = make(*(ops.var(a.shape, a.dtype.name, f"x{k}") for k, a in enumerate(arrays)))
    tensors, computed = implement(call, definition_of(call))
    try:
        program = VectorizedProgram(outputs_of(computed))
        found = program(dict(zip(tensors, arrays, strict=True)), {})
    except UnvectorizedError:
        assert name in NOT_BY_NUMPY
        return
    assert name not in NOT_BY_NUMPY
    wanted = oracle(*map(exact, arrays))
    wanted = wanted if isinstance(call.type, TupleType) else (wanted,)
    for result, expected in zip(found, wanted, strict=True):
        same(result, expected)


def test_every_operator_has_a_case():
    assert set(CASES) == {op.name for op in all_ops()}


OTHER_LEVELS = r"conv\.direct|packed_(.*_)?(matmul|blockwise)\..*|.*\.cblas"
"""Implementations whose priority is not that of all others: what serves if nothing else does, what packed factors are
multiplied by, of which lower tiles serve few rows, and BLAS."""


def other_levels(call):
    """The implementations of a call whose priority is not the usual one, though it should be."""
    offered = [made for target in targets_of(call.op.name).values() for made, _ in candidates(call, target)]
    unusual = {made.name for made in offered if made.plevel != strategy.DEFAULT_LEVEL}
    return [name for name in unusual if not re.fullmatch(OTHER_LEVELS, name)]


def test_costs_rather_than_priorities_decide_among_our_implementations(ops):
    for cases in CASES.values():
        for make, _, *arrays in cases:
            assert not other_levels(make(*(ops.var(np.shape(a), np.asarray(a).dtype.name) for a in arrays)))


@pytest.mark.parametrize("axis", [0, -1, -2])
def test_costs_rather_than_priorities_decide_where_an_extent_is_open(ops, axis):
    looked_at = 0
    for cases in CASES.values():
        for make, _, *arrays in cases:
            shapes = [list(np.shape(a)) for a in arrays]
            if not arrays or not -len(shapes[0]) <= axis < len(shapes[0]):
                continue
            shapes[0][axis] = te.var("n")
            try:
                call = make(*(ops.var(s, np.asarray(a).dtype.name) for s, a in zip(shapes, arrays, strict=True)))
            except (lw.LoopwrightError, TypeError):  # some want to know this extent
                continue
            looked_at += 1
            assert not other_levels(call)
    assert looked_at > 200


def test_every_implementation_serves_a_case(ops):
    offered, served = set(), set()
    for cases in CASES.values():
        for make, _, *arrays in cases:
            call = make(*(ops.var(np.shape(a), np.asarray(a).dtype.name) for a in arrays))
            for target in targets_of(call.op.name).values():
                for implementation, serves in candidates(call, target):
                    offered.add(implementation.name)
                    served |= {implementation.name} if serves else set()
    assert offered == served
