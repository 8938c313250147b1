"""A 3×3 convolution from its plain definition to near the peak of the machine, one idea of a schedule after the other.

The definition never changes. After each step stands the share of the fma peak that it reaches, which a kernel that does
nothing else measures in the same rounds. docs/convolution.md explains the steps.
"""

from collections.abc import Callable

import numpy as np
from fast_matmul import alternating_medians, peak_kernel

import loopwright as lw
from loopwright import te

CHANNELS, FILTERS, SIZE = 64, 64, 56
WIDTH = SIZE + 2
ROUNDS = 5

Step = Callable[[lw.Tensor, int], lw.Schedule]


def definition() -> tuple[lw.Tensor, lw.Tensor, lw.Tensor]:
    """y[k, p, q] = Σ padded x[c, p + u, q + v] · w[k, c, u, v] over c, u, v."""
    x = te.placeholder((CHANNELS, SIZE, SIZE), name="x")
    w = te.placeholder((FILTERS, CHANNELS, 3, 3), name="w")
    padded = te.pad(x, (0, 1, 1), name="padded")
    c, u, v = (te.reduce_axis((0, extent), name=name) for name, extent in (("c", CHANNELS), ("u", 3), ("v", 3)))
    y = te.compute(
        (FILTERS, SIZE, SIZE),
        lambda k, p, q: te.sum(padded[c, p + u, q + v] * w[k, c, u, v], axis=[c, u, v]),
        name="y",
    )
    return x, w, y


def plain(y: lw.Tensor, lanes: int) -> lw.Schedule:
    """One sum after the other."""
    return lw.create_schedule(y)


def vectors(y: lw.Tensor, lanes: int) -> lw.Schedule:
    """As many sums of a row at once as a vector holds."""
    s = lw.create_schedule(y)
    s["y"].split("q", lanes)
    s["y"].reorder("k", "p", "q_outer", "c", "u", "v", "q_inner")
    s["y"].vectorize("q_inner")
    return s


def register_tile(y: lw.Tensor, lanes: int) -> lw.Schedule:
    """The sums of four filters and three vectors in registers: what is loaded is used four times, or three."""
    s = lw.create_schedule(y)
    s["y"].split("k", 4)
    s["y"].split("q", 3 * lanes)
    s["y"].split("q_inner", lanes)
    s["y"].reorder("k_outer", "p", "q_outer", "c", "u", "v", "k_inner", "q_inner_outer", "q_inner_inner")
    s["y"].vectorize("q_inner_inner")
    s["y"].unroll("q_inner_outer")
    s["y"].unroll("k_inner")
    return s


def one_row(y: lw.Tensor, lanes: int) -> lw.Schedule:
    """All positions as one long row, which goes on to whole tiles: no tile is cut at the end of a row of the image."""
    s = lw.create_schedule(y)
    flat = s.cache_read("padded", "local", "y", pad=0, axes=f"lambda c, i, j: (c, i * {WIDTH} + j)")
    s["padded"].compute_inline()
    s[flat].split(s[flat].loops[1], factor=WIDTH)
    s[flat].vectorize(s[flat].split(s[flat].loops[2], factor=lanes)[1])
    sums = s.cache_write("y", "local", axes=f"lambda k, p, q: (k, p * {WIDTH} + q)")
    s["y"].split("k", 4)
    s["y"].vectorize(s["y"].split("q", lanes)[1])
    s[sums].compute_at("y", "k_outer")
    k, positions, c, u, v = s[sums].loops
    tile, position = s[sums].split(positions, factor=3 * lanes, tail="round_up")
    vector, lane = s[sums].split(position, factor=lanes)
    s[sums].reorder(tile, c, u, v, k, vector, lane)
    s[sums].vectorize(lane)
    s[sums].unroll(vector)
    s[sums].unroll(k)
    return s


def filters_in_vectors(y: lw.Tensor, lanes: int) -> lw.Schedule:
    """Vectors of filters in place of positions: weights come as one stream, and x, channels last, in order."""
    panel = 2 * lanes
    s = lw.create_schedule(y)
    flat = s.cache_read("padded", "local", "y", pad=0, axes=f"lambda c, i, j: (i * {WIDTH} + j, c)")
    s["padded"].compute_inline()
    row, column = s[flat].split(s[flat].loops[0], factor=WIDTH)
    s[flat].reorder(row, s[flat].loops[-1], column)
    s.cache_read("w", "local", "y", pad=0, axes=f"lambda k, c, u, v: (k // {panel}, u, v, c, k % {panel})")
    sums = s.cache_write("y", "local", axes=f"lambda k, p, q: (k // {panel}, p * {WIDTH} + q, k % {panel})")
    s["y"].split("k", panel)
    s["y"].split("q", lanes)
    s["y"].reorder("k_outer", "p", "k_inner", "q_outer", "q_inner")
    s["y"].vectorize("q_inner")
    s[sums].compute_at("y", "k_outer")
    block, positions, filters, c, u, v = s[sums].loops
    tile, position = s[sums].split(positions, factor=6, tail="round_up")
    vector, lane = s[sums].split(filters, factor=lanes)
    s[sums].reorder(block, tile, u, v, c, position, vector, lane)
    s[sums].vectorize(lane)
    s[sums].unroll(vector)
    s[sums].unroll(position)
    return s


STEPS: tuple[Step, ...] = (plain, vectors, register_tile, one_row, filters_in_vectors)


def main() -> None:
    target = lw.resolve_target("native")
    x, w, y = definition()
    rng = np.random.default_rng(0)
    image = rng.standard_normal((CHANNELS, SIZE, SIZE), np.float32)
    weights = rng.standard_normal((FILTERS, CHANNELS, 3, 3), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(image, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
    expected = np.tensordot(weights, windows, axes=((1, 2, 3), (0, 3, 4)))
    found = np.empty_like(expected)

    peak, peak_operations = peak_kernel(target)
    sums = np.empty(peak.func.outputs[0].shape, np.float32)
    calls = [peak.bind(np.zeros(target.lanes("float32"), np.float32), sums, threads=1)]
    for step in STEPS:
        kernel = lw.build(step(y, target.lanes("float32")), [x, w, y], target=target, name=step.__name__)
        kernel(image, weights, found)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
        calls.append(kernel.bind(image, weights, found, threads=1))

    operations = 2 * FILTERS * CHANNELS * 9 * SIZE * SIZE
    peak_seconds, *seconds = alternating_medians(calls, ROUNDS)
    peak_rate = peak_operations / peak_seconds
    for step, spent in zip(STEPS, seconds, strict=True):
        rate = operations / spent
        print(f"{step.__name__:20}{spent * 1e3:9.2f} ms{rate / 1e9:9.1f} GFLOP/s{rate / peak_rate:8.1%} of the peak")


if __name__ == "__main__":
    main()
