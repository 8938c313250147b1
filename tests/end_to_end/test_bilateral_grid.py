"""The bilateral grid (Chen, Paris and Durand 2007), whose last stage reads where the data says: values and bounds."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.interpret import interpret
from loopwright.lowering.pipeline import realized_function

TARGET = "x86-64-v3"
BLOCK, LEVELS = 8, 10
"""Pixels a side of a block, and steps of intensity between 0 and 1."""
BINS = LEVELS + 2
"""Bin ``LEVELS`` holds the brightest pixels; the interpolation reads the one after it, too."""
TAPS = (1, 4, 6, 4, 1)


def blocks_of(extent):
    """The blocks that the interpolation reads along an axis: they are centred on every eighth pixel."""
    return (extent - 1) // BLOCK + 2


def histogram_of(image):
    """Element ``[c, y, x, z]`` of a block is the sum (c is 0) or the number (1) of its pixels in the bin ``z``.

    There are two blocks more at each side, for the blur; beyond the image its edge is repeated.
    """
    (h, w), i, j = image.shape, te.reduce_axis((0, BLOCK), name="i"), te.reduce_axis((0, BLOCK), name="j")

    def start(block):
        return (block - 2) * BLOCK - BLOCK // 2

    def element(c, y, x, z):
        pixel = image[te.clamp(start(y) + i, 0, h - 1), te.clamp(start(x) + j, 0, w - 1)]
        bin_of_pixel = te.cast(pixel * float(LEVELS) + 0.5, "int32")
        added = te.if_then_else(c == 0, pixel, te.const(1, "float32"))
        return te.sum(te.if_then_else(bin_of_pixel == te.cast(z, "int32"), added, te.const(0, "float32")), axis=[i, j])

    return te.compute((2, blocks_of(h) + 4, blocks_of(w) + 4, BINS), element, name="histogram")


def blurred(source, axis, name):
    """The five taps along one axis, which is shorter by four."""
    shape = [extent - 4 * (k == axis) for k, extent in enumerate(source.shape)]

    def element(*at):
        found = [source[tuple(a + t * (k == axis) for k, a in enumerate(at))] * float(w) for t, w in enumerate(TAPS)]
        return sum(found[1:], found[0])

    return te.compute(shape, element, name=name)


def sliced(image, grid):
    """The grid between its eight elements around each pixel and its intensity: the sum over the number."""

    def element(y, x):
        level = image[y, x] * float(LEVELS)
        z = te.clamp(te.cast(level, "int32"), 0, LEVELS)
        dy, dx = (te.cast(a % BLOCK, "float32") * (1 / BLOCK) for a in (y, x))
        dz = level - te.cast(z, "float32")

        def between(low, high, t):
            return low + (high - low) * t

        def along_z(c, block_y, block_x):
            return between(grid[c, block_y, block_x, z], grid[c, block_y, block_x, z + 1], dz)

        def along_x(c, block_y):
            return between(along_z(c, block_y, x // BLOCK), along_z(c, block_y, x // BLOCK + 1), dx)

        total, number = (between(along_x(c, y // BLOCK), along_x(c, y // BLOCK + 1), dy) for c in (0, 1))
        return total / number

    return te.compute(image.shape, element, name="filtered")


def bilateral_grid(image):
    padded = te.pad(histogram_of(image), (0, 0, 0, 2), name="bins_padded")
    along_x = blurred(blurred(padded, 3, "blur_z"), 2, "blur_x")
    return sliced(image, blurred(along_x, 1, "blur_y"))


def by_hand(output):
    """The histogram of a row of blocks where it is blurred; the blur down the blocks for a strip of eight rows."""
    s = lw.create_schedule(output)
    stages = {stage.name: stage for stage in s.stages}
    y, x = s[output].loops
    strip, _ = s[output].split(y, factor=BLOCK)
    s[output].vectorize(s[output].split(x, factor=BLOCK)[1])
    stages["blur_y"].compute_at(s[output], strip)
    stages["bins_padded"].compute_inline()
    stages["histogram"].compute_at(stages["blur_z"], stages["blur_z"].loops[1])
    for name in ("blur_y", "blur_x", "blur_z"):
        stages[name].vectorize(stages[name].split(stages[name].loops[-1], factor=4)[1])
    histogram = stages["histogram"]
    c, block_y, block_x, z = histogram.loops[:4]
    i, j = histogram.loops[4:]
    many, lane = histogram.split(z, factor=4)
    histogram.reorder(c, block_y, block_x, i, j, many, lane)
    histogram.vectorize(lane)
    return s


SCHEDULES = {"by_default": lambda output: lw.default_schedule(output, target=TARGET), "by_hand": by_hand}


def reference(pixels):
    """The same in numpy, in float64: pixels are scattered into the grid, one by one."""
    h, w = pixels.shape
    rows, columns = blocks_of(h) + 4, blocks_of(w) + 4
    grid = np.zeros((2, rows, columns, BINS + 4))
    apron = np.pad(pixels, 20, "edge")
    apron = np.pad(apron, ((0, max(0, rows * BLOCK - h - 40)), (0, max(0, columns * BLOCK - w - 40))), "edge")
    for y, x in np.ndindex(rows * BLOCK, columns * BLOCK):
        value = apron[y, x]
        grid[:, y // BLOCK, x // BLOCK, 2 + int(value * LEVELS + 0.5)] += (value, 1)
    for axis in (1, 2, 3):
        grid = np.apply_along_axis(np.convolve, axis, grid, TAPS, mode="valid")
    result = np.empty_like(pixels)
    for y, x in np.ndindex(h, w):
        place = np.array([y / BLOCK, x / BLOCK, pixels[y, x] * LEVELS])
        first = place.astype(int)
        total = np.zeros(2)
        for corner in np.ndindex(2, 2, 2):
            share = np.prod(np.where(corner, place - first, 1 - (place - first)))
            total += share * grid[(slice(None), *(first + corner))]
        result[y, x] = total[0] / total[1]
    return result


def photograph(shape):
    """Pixels of 8 bits between 0 and 1, both of which occur: float32 counts them in the same bins as float64."""
    levels = np.random.default_rng(6).integers(0, 257, shape)
    levels[shape[0] // 2 :] //= 3
    levels.flat[:2] = 0, 256
    return (levels / 256).astype(np.float32)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", [(40, 52), (17, 9)])
def test_the_bilateral_grid_is_what_numpy_computes(schedule, shape):
    image = te.placeholder(shape, name="image")
    output = bilateral_grid(image)
    pixels, result = photograph(shape), np.empty(shape, np.float32)
    lw.build(SCHEDULES[schedule](output), [image, output], target=TARGET)(pixels, result)
    np.testing.assert_allclose(result, reference(pixels.astype(np.float64)), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_stage_of_the_bilateral_grid_computes_a_row_too_many(schedule, stores):
    shape = height, width = 16, 24
    image = te.placeholder(shape, name="image")
    output = bilateral_grid(image)
    filled = np.empty(shape, np.float32)
    run = interpret(realized_function(SCHEDULES[schedule](output), [image, output]))
    run(photograph(shape), filled)
    rows, columns = blocks_of(height), blocks_of(width)
    histogram = 2 * (rows + 4) * (columns + 4) * BINS
    expected = {"histogram": histogram * (1 + BLOCK * BLOCK), "filtered": height * width}  # zero, then the pixels
    if schedule == "by_default":  # blurs along z and x are inlined, and the last, which is read where data say, is not
        expected["blur_y"] = 2 * rows * columns * BINS
    else:
        expected |= {"blur_z": histogram, "blur_x": 2 * (rows + 4) * columns * BINS}
        expected["blur_y"] = 2 * 2 * (height // BLOCK) * columns * BINS
    assert stores == expected
