"""Our bilateral grid (Chen, Paris and Durand 2007), of pixels between 0 and 1, with the image's edge repeated."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import loopwright as lw
from loopwright import te

BLOCK, LEVELS = 8, 10
BINS = LEVELS + 2
TAPS = (1, 4, 6, 4, 1)


def histogram_of(image: te.Tensor) -> te.Tensor:
    """The sum (``c`` is 0) and the number (1) of each block's pixels in each bin, with two blocks more at each side."""
    (h, w), i, j = image.shape, te.reduce_axis((0, BLOCK), name="i"), te.reduce_axis((0, BLOCK), name="j")

    def element(c, y, x, z):
        row, column = ((block - 2) * BLOCK - BLOCK // 2 + k for block, k in ((y, i), (x, j)))
        pixel = image[te.clamp(row, 0, h - 1), te.clamp(column, 0, w - 1)]
        added = te.if_then_else(c == 0, pixel, te.const(1, "float32"))
        found = te.cast(pixel * float(LEVELS) + 0.5, "int32") == te.cast(z, "int32")
        return te.sum(te.if_then_else(found, added, te.const(0, "float32")), axis=[i, j])

    return te.compute((2, (h - 1) // BLOCK + 6, (w - 1) // BLOCK + 6, BINS), element, name="histogram")


def blurred(source: te.Tensor, axis: int, name: str) -> te.Tensor:
    def element(*at):
        terms = [source[tuple(a + t * (k == axis) for k, a in enumerate(at))] * float(w) for t, w in enumerate(TAPS)]
        return functools.reduce(lambda a, b: a + b, terms)

    return te.compute([e - 4 * (k == axis) for k, e in enumerate(source.shape)], element, name=name)


def bilateral_grid(image: te.Tensor, border: str) -> te.Tensor:
    if border != "edge":
        raise LookupError(f"nothing is written for borders that are {border}")
    padded = te.pad(histogram_of(image), (0, 0, 0, 2), name="bins_padded")
    grid = blurred(blurred(blurred(padded, 3, "blur_z"), 2, "blur_x"), 1, "blur_y")

    def between(low, high, t):
        return low + (high - low) * t

    def pixel(y, x):
        level = image[y, x] * float(LEVELS)
        z = te.clamp(te.cast(level, "int32"), 0, LEVELS)
        dz = level - te.cast(z, "float32")
        dy, dx = (te.cast(a % BLOCK, "float32") * (1 / BLOCK) for a in (y, x))

        def slope(c, row):
            left, right = (
                between(grid[c, row, column, z], grid[c, row, column, z + 1], dz)
                for column in (x // BLOCK, x // BLOCK + 1)
            )
            return between(left, right, dx)

        total, number = (between(slope(c, y // BLOCK), slope(c, y // BLOCK + 1), dy) for c in (0, 1))
        return total / number

    return te.compute(image.shape, pixel, name="filtered")


def by_hand(output: te.Tensor, lanes: int) -> lw.Schedule:
    """The histogram of a row of blocks where it is blurred along the bins; the last blur for a strip of rows."""
    s = lw.create_schedule(output)
    stages = {stage.name: stage for stage in s.stages}
    y, x = output.op.axis
    strip, _ = s[output].split(y, factor=BLOCK)
    s[output].vectorize(s[output].split(x, factor=lanes)[1])
    stages["bins_padded"].compute_inline()
    stages["blur_y"].compute_at(s[output], strip)
    histogram, blur_z, blur_x = (stages[name] for name in ("histogram", "blur_z", "blur_x"))
    c, row, column, bins, i, j = histogram.loops
    many, lane = histogram.split(bins, factor=4)
    histogram.reorder(c, row, column, i, j, many, lane)
    histogram.unroll(many)
    histogram.vectorize(lane)
    for stage in (blur_z, blur_x, stages["blur_y"]):
        stage.vectorize(stage.split(stage.loops[-1], factor=4)[1])
    for stage in (blur_z, blur_x):
        stage.reorder(*_swapped(stage.loops))
    histogram.compute_at(blur_z, blur_z.loops[0])
    for stage, loop in ((blur_z, blur_z.loops[0]), (blur_x, blur_x.loops[0]), (s[output], strip)):
        stage.parallel(loop)
    return s


def _swapped(loops: Sequence[lw.LoopView]) -> list[lw.LoopView]:
    """The rows of blocks around the sums and the numbers."""
    return [loops[1], loops[0], *loops[2:]]
