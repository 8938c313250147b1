"""Random calls of operators that go through windows, or normalise: convolutions, pools, norms."""

import math
from functools import partial

import numpy as np
import sampling
from draw import Case, Given, Input
from operators_products import CHANNELS, FAST_ERROR, within
from operators_simple import every

from loopwright.ops import nn
from loopwright.ops.families.conv.winograd_weights import WinogradPlanes
from loopwright.ops.families.matmul.quarters import Planes
from loopwright.ops.families.norm import batch_norm

windows = every.windows
IMAGES = (1, 2, 3, 5, 7, 8, 9, 13, 14, 16, 28, 33, 56, 112)


def draw_windows(d, rank, usual=False):
    """Extents, window, strides, padding and dilations that leave a result: of any kind, or as most models have them."""
    strides = d.one((1,) * rank, (2,) * rank)
    dilations = d.one((1,) * rank, (d.one(2, 3, 6, 12),) * rank)
    if usual:
        window = (d.one(1, 3, 3, 5, 7),) * rank
    else:
        window = d.ints(1, (9, 7, 3)[rank - 1], rank)
        strides, dilations = d.one(strides, d.ints(1, 3, rank)), d.one(dilations, d.ints(1, 3, rank))
    reach = [(w - 1) * k + 1 for w, k in zip(window, dilations, strict=True)]
    same = [r // 2 for r in reach]
    padding = d.one((0,) * (2 * rank), (*same, *same), tuple(d.int(0, s) for s in (*same, *same)))
    images = [i for i in IMAGES if i <= (7, 16, 112)[d.size] and not (usual and i < 7)]
    extents = [d.one(*images) for _ in range(rank)]
    for k in range(rank):
        extents[k] = max(extents[k], reach[k] - padding[k] - padding[rank + k], 1)
    return extents, window, strides, padding, dilations, reach


def results_of(extents, reach, padding, strides):
    rank = len(extents)
    room = zip(extents, padding[:rank], padding[rank:], reach, strides, strict=True)
    return [(e + p + q - r) // s + 1 for e, p, q, r, s in room]


def draw_conv(rank):
    def draw(d):
        usual = d.chance()
        extents, window, strides, padding, dilations, reach = draw_windows(d, rank, usual)
        groups = d.one(1, 1, 1, 0) if usual else d.one(1, 2, 3, 0)
        ins, outs = d.one(*CHANNELS), d.one(*CHANNELS, *(c for c in CHANNELS if c % 16 == 0))
        places = math.prod(results_of(extents, reach, padding, strides)) * math.prod(window)
        if groups == 0:  # depthwise, one or several filters a channel
            (ins,) = within(d, lambda c: c * places, ins)
            groups, per_group, outs = ins, 1, ins * d.one(1, 1, 2)
        else:
            ins, outs = within(d, lambda a, b: a * b * places, ins, outs)
            per_group, outs = max(ins // groups, 1), max(outs // groups, 1) * groups
            ins = per_group * groups
        kinds = [d.one("float32", "float32", "float32", "float32", "float64", "float16", "bfloat16")] * 2
        if d.chance(0.2):
            kinds = [d.one("int8", "uint8"), d.one("int8", "uint8")]
        elif usual:
            kinds = ["float32"] * 2
        x, w = (d.one(1, 1, 2), ins, *extents), (outs, per_group, *window)
        attrs = {"strides": strides, "padding": padding, "dilation": dilations, "groups": groups}
        oracle, layouts = windows.conv, {}
        more = (strides, padding, dilations, groups)
        if rank == 2 and d.chance(0.1 if usual else 0.4):
            names = ("NHWC", "HWIO", "NHWC") if d.chance(0.7) else ("HWCN", "HWIO", "HWCN")
            layouts = dict(zip(("data_layout", "kernel_layout", "out_layout"), names, strict=True))
            x = windows.rearranged(np.broadcast_to(0, x), "NCHW", names[0]).shape
            w = windows.rearranged(np.broadcast_to(0, w), "OIHW", names[1]).shape
            oracle, more = windows.conv_in, (*more, names)
        integers = "int" in kinds[0]
        low, high = (0 if "uint8" in kinds else -9, 9) if integers else (-2, 2)
        return Case(
            lambda a, b: nn.conv(a, b, **attrs, **layouts),
            lambda a, b: oracle(a, b, *more),
            (
                Input(x, kinds[0], low, high),
                Input(w, kinds[1], low, high, "large", constant=usual or d.chance()),
            ),
            None if integers else lambda a, b: oracle(a, b, *more),
            local=False,  # Winograd's and Strassen's sums
            tolerance=FAST_ERROR,
        )

    return draw


def draw_transposed(rank):
    def draw(d):
        window, strides, dilations = d.ints(1, 4, rank), d.ints(1, 3, rank), d.one((1,) * rank, d.ints(1, 3, rank))
        extra = tuple(d.int(0, max(s, k) - 1) for s, k in zip(strides, dilations, strict=True))
        extents = d.ints(1, 9 if rank < 3 else 4, rank)
        full = [
            (n - 1) * s + (w - 1) * k + 1 + e
            for n, s, w, k, e in zip(extents, strides, window, dilations, extra, strict=True)
        ]
        begins = [d.int(0, min(2, f - 1)) for f in full]
        ends = [d.int(0, min(2, f - b - 1)) for f, b in zip(full, begins, strict=True)]
        groups = d.one(1, 1, 2, 3)
        rows, filters = within(
            d, lambda a, b: a * b * math.prod(full) * math.prod(window), d.one(*CHANNELS), d.one(*CHANNELS)
        )
        attrs = {
            "strides": strides, "padding": (*begins, *ends), "dilation": dilations, "output_padding": extra,
            "groups": groups,
        }  # fmt: skip

        def oracle(a, b):
            return windows.conv_transpose(a, b, strides, (*begins, *ends), dilations, extra, groups)

        return Case(
            lambda a, b: nn.conv_transpose(a, b, **attrs),
            oracle,
            (
                Input((d.one(1, 2), groups * rows, *extents)),
                Input((groups * rows, filters, *window), outliers="large", constant=d.chance(0.7)),
            ),
            oracle,
            local=False,
            tolerance=FAST_ERROR,
        )

    return draw


def draw_winograd(d, is_open=False):
    block, size = d.one(2, 4, 8, 16), d.one(2, 4, 6)
    n, c, o, h, w = d.int(1, 2), block * d.int(1, 2), block * d.int(1, 3), d.int(3, 15), d.int(3, 15)
    padding = d.one((0,) * 4, (1,) * 4, d.ints(0, 2, 4))
    out = f"NCHW{block}c" if is_open else d.one("NCHW", f"NCHW{block}c")
    group = d.int(1, 9)
    planes = WinogradPlanes(size, block)
    weight = d.rng.uniform(-1, 1, (o, c, 3, 3)).astype(np.float32)
    shape = windows.rearranged(np.zeros((n, c, h, w)), "NCHW", f"NCHW{block}c").shape

    def oracle(a, u, w=weight):
        plain = windows.conv(windows.rearranged(a, f"NCHW{block}c", "NCHW"), w, (1, 1), padding, (1, 1), 1)
        return windows.rearranged(plain, "NCHW", out)

    if is_open:
        kernel = windows.rearranged(weight, "OIHW", f"OIHW{block}i{block}o")
        return Case(
            lambda a, u, k: nn.open_winograd_conv2d(a, u, k, size, group, padding, f"NCHW{block}c", out),
            lambda a, u, k: oracle(a, u),
            (Input(shape, outliers=None), Given(np.ascontiguousarray(planes(weight))), Given(kernel)),
            lambda a, u, k: oracle(a, u, np.abs(weight)),
            tolerance=FAST_ERROR,
        )
    return Case(
        lambda a, u: nn.winograd_conv2d(a, u, size, padding, f"NCHW{block}c", out),
        oracle,
        (Input(shape, outliers=None), Given(np.ascontiguousarray(planes(weight)))),
        lambda a, u: oracle(a, u, np.abs(weight)),
        tolerance=FAST_ERROR,
    )


def draw_strassen_conv(d):
    width = d.one(2, 4, 8)
    c, o = 2 * width * d.int(1, 3), 2 * width * d.int(1, 3)
    n, h, w = d.int(1, 2), d.int(2, 9), d.int(2, 9)
    strides = d.one((1, 1), (2, 1), (2, 2))
    weight = d.rng.uniform(-1, 1, (o, c, 1, 1)).astype(np.float32)
    name = f"NCHW{width}c"
    shape = windows.rearranged(np.zeros((n, c, h, w)), "NCHW", name).shape

    def oracle(a, u, w=weight):
        plain = windows.conv(windows.rearranged(a, name, "NCHW"), w, strides, (0,) * 4, (1, 1), 1)
        return windows.rearranged(plain, "NCHW", name)

    return Case(
        lambda a, u: nn.strassen_conv2d(a, u, strides, name, name),
        oracle,
        (Input(shape, outliers=None), Given(Planes(width, transposed=True)(weight))),
        lambda a, u: oracle(a, u, np.abs(weight)),
        tolerance=FAST_ERROR,
    )


# Pools.


def draw_pool_windows(d, rank):
    window, strides = d.ints(1, 4, rank), d.ints(1, 3, rank)
    dilated = d.chance(0.2)
    dilations = d.ints(1, 2, rank) if dilated else (1,) * rank
    padding = (0,) * (2 * rank) if dilated else tuple(d.int(0, w - 1) for w in (*window, *window))
    reach = [(w - 1) * k + 1 for w, k in zip(window, dilations, strict=True)]
    extents = [max(d.int(1, 12 if rank < 3 else 5), r) for r in reach]
    return (d.int(1, 2), d.one(1, 2, 3, 8, 16, 17), *extents), window, strides, padding, dilations


def draw_pool(name):
    def draw(d):
        shape, window, strides, padding, dilations = draw_pool_windows(d, d.int(1, 3))
        ceil = d.chance(0.4)
        fold = every.POOLS[f"nn.{name}"][1]
        attrs = {"window": window, "strides": strides, "padding": padding, "dilation": dilations, "ceil_mode": ceil}

        def oracle(x):
            return windows.pool(x, window, strides, padding, dilations, ceil, fold)

        def squares(x):
            return windows.pool(x, window, strides, padding, dilations, ceil, lambda v, padded: (v * v).sum(-1))

        magnitude = {"avg_pool": oracle, "lp_pool": squares}.get(name)
        return Case(
            lambda x: getattr(nn, name)(x, **attrs), oracle, (Input(shape, d.one("float32", "float64")),), magnitude
        )

    return draw


def draw_pool_indices(d):
    shape, window, strides, padding, dilations = draw_pool_windows(d, d.int(1, 2))
    all_of = (window, strides, padding, dilations, False)
    return Case(
        lambda x: nn.max_pool_with_indices(x, window=window, strides=strides, padding=padding, dilation=dilations),
        lambda x: (windows.pool(x, *all_of, lambda v, padded: v.max(-1)), windows.max_pool_indices(x, *all_of)),
        (Input(shape, outliers="large"),),
    )


def draw_global_pool(name):
    oracle = {
        "global_avg_pool": lambda x, axes: x.mean(axes, keepdims=True),
        "global_max_pool": lambda x, axes: x.max(axes, keepdims=True),
        "global_lp_pool": lambda x, axes: np.sqrt((x * x).sum(axes, keepdims=True)),
    }[name]

    def draw(d):
        shape = d.shape(3, 5)
        axes = tuple(range(2, len(shape)))
        magnitude = {
            "global_avg_pool": lambda x: x.sum(axes, keepdims=True),
            "global_lp_pool": lambda x: (x * x).sum(axes, keepdims=True),
        }.get(name)
        return Case(getattr(nn, name), lambda x: oracle(x, axes), (Input(shape),), magnitude)

    return draw


# Normalisations: of what is large only moderately, as squares of it overflow.


def channels_of(shape, d, positive=False):
    return Input((shape[1],), low=0.5 if positive else -2, high=2, outliers=None, constant=d.chance())


def draw_batch_norm(d):
    shape = d.shape(2, 4)
    params = [channels_of(shape, d, positive=k == 3) for k in range(4)]

    def oracle(x, scale, bias, mean, variance):
        s, b, m, v = (every.along_channels(p, x) for p in (scale, bias, mean, variance))
        return (x - m) / np.sqrt(v + 1e-5) * s + b

    return Case(batch_norm, oracle, (Input(shape), *params), lambda x, s, b, m, v: 9 * (x + 9))


def draw_instance_norm(d):
    shape = d.shape(3, 4)
    axes = tuple(range(2, len(shape)))
    return Case(
        nn.instance_norm,
        lambda x, s, b: every.normalised(x, axes) * every.along_channels(s, x) + every.along_channels(b, x),
        (Input(shape, outliers=None), channels_of(shape, d), channels_of(shape, d)),
        lambda x, s, b: np.full(x.shape, 100.0),
    )


def draw_row_norm(name):
    def draw(d):
        shape = d.shape(1, 4)
        params = [
            Input(shape[-1:], outliers=None, constant=d.chance()) for _ in range(2 if name == "layer_norm" else 1)
        ]

        def oracle(x, s, b=0.0):
            return (every.normalised(x, (-1,)) if name == "layer_norm" else every.scaled_to_1(x)) * s + b

        return Case(
            getattr(nn, name),
            oracle,
            (Input(shape, outliers=None), *params),
            lambda x, *rest: np.full(x.shape, 100.0),
        )

    return draw


def draw_lp_normalize(d):
    shape = d.shape(1, 4)
    axis, p = d.int(0, len(shape) - 1), d.one(1, 2)
    return Case(
        lambda x: nn.lp_normalize(x, axis=axis, p=p),
        lambda x: x / np.linalg.norm(x, axis=axis, keepdims=True, ord=None if p == 2 else 1),
        (Input(shape, low=0.1, outliers=None),),
    )


def draw_lrn(d):
    shape, size, beta = (*d.shape(2, 4),), d.int(1, 7), d.one(0.5, 0.75, 0.6)
    while len(shape) < 3:
        shape = (*shape, 2)
    return Case(
        lambda x: nn.lrn(x, size, alpha=0.3, beta=beta, bias=2.0),
        lambda x: every.local_response(x, size, 0.3, beta, 2.0),
        (Input(shape, outliers="moderate"),),
        lambda x: x,
    )


def draw_col2im(d):
    rank = d.int(1, 3)
    window, strides, dilation = d.ints(1, 3, rank), d.ints(1, 3, rank), d.ints(1, 2, rank)
    padding = d.ints(0, 2, 2 * rank)
    image = tuple(dilation[k] * (window[k] - 1) + d.int(1, 9) for k in range(rank))
    padded = [e + padding[k] + padding[rank + k] for k, e in enumerate(image)]
    counts = [(e - dilation[k] * (window[k] - 1) - 1) // strides[k] + 1 for k, e in enumerate(padded)]
    shape = d.int(1, 2), d.one(1, 3, 8) * int(np.prod(window)), int(np.prod(counts))
    geometry = window, strides, padding, dilation
    return Case(
        lambda x: nn.col2im(x, image, *geometry),
        lambda x: every.windows.added_up(x, image, *geometry),
        (Input(shape, d.kind()),),
        lambda x: every.windows.added_up(x, image, *geometry),
    )


def _grid_sample_of_last_channels(x, places, options):
    shape = (x[0], *x[2:], x[1])

    def expected(image, grid):
        return np.moveaxis(sampling.sampled(np.moveaxis(image, -1, 1), grid, *options), 1, -1)

    return Case(
        lambda *a: nn.grid_sample(*a, *options, channels_last=True),
        expected,
        (
            Input(shape, "float64", outliers=None),
            Input((x[0], *places, len(places)), "float64", -1.6, 1.6, outliers=None),
        ),
        lambda *a: np.full((x[0], *places, x[1]), 30.0),
    )


def draw_grid_sample(d):
    rank = d.int(1, 3)
    x, places = (d.int(1, 2), d.int(1, 3), *d.ints(1, 7, rank)), d.ints(1, 6, rank)
    options = d.one(*sampling.MODES), d.one(*sampling.PADDINGS), d.chance()
    if d.chance():
        return _grid_sample_of_last_channels(x, places, options)
    inputs = Input(x, "float64", outliers=None), Input((x[0], *places, rank), "float64", -1.6, 1.6, outliers=None)
    return Case(
        lambda *a: nn.grid_sample(*a, *options),
        lambda *a: sampling.sampled(*a, *options),
        inputs,
        lambda *a: np.full((*x[:2], *places), 30.0),
    )


DRAWS = {
    "grid_sample": draw_grid_sample,
    "col2im": draw_col2im,
    **{f"nn.conv{rank}d": draw_conv(rank) for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": draw_transposed(rank) for rank in (1, 2, 3)},
    **{f"nn.{name}": draw_pool(name) for name in ("max_pool", "avg_pool", "lp_pool")},
    **{f"nn.{name}": draw_global_pool(name) for name in ("global_avg_pool", "global_max_pool", "global_lp_pool")},
    **{f"nn.{name}": draw_row_norm(name) for name in ("layer_norm", "rms_norm")},
    "nn.max_pool_with_indices": draw_pool_indices,
    "nn.winograd_conv2d": draw_winograd,
    "nn.open_winograd_conv2d": partial(draw_winograd, is_open=True),
    "nn.strassen_conv2d": draw_strassen_conv,
    "nn.batch_norm": draw_batch_norm,
    "nn.instance_norm": draw_instance_norm,
    "nn.lp_normalize": draw_lp_normalize,
    "nn.lrn": draw_lrn,
}
