"""Stencils of images with all four borders: values against scipy, elements computed, and no gather in an inner loop."""

import numpy as np
import pytest
from scipy import ndimage

import loopwright as lw
from loopwright import te
from loopwright.ir.constants import const_int
from loopwright.ir.expr import Load, Ramp
from loopwright.ir.interpret import interpret
from loopwright.ir.stmt import For
from loopwright.ir.visit import walk
from loopwright.lowering.pipeline import realized_function

TARGET = "x86-64-v3"
BORDERS = {"constant": "constant", "edge": "nearest", "reflect": "mirror", "wrap": "wrap"}
"""The borders of ``te.pad`` by what scipy calls them."""
ROWS = 8


def taps(source, mode, weights, name):
    """The sum of the neighbours of each element by odd many weights, of a tensor that is padded where it is read."""
    up, left = weights.shape[0] // 2, weights.shape[1] // 2
    padded = te.pad(source, (up, left), mode=mode, name=f"{name}_padded")

    def element(y, x):
        found = [padded[y + i, x + j] * float(w) for (i, j), w in np.ndenumerate(weights) if w]
        return sum(found[1:], found[0])

    return te.compute(source.shape, element, name=name)


ACROSS = np.array([[0.25, 0.5, 0.25]])
JACOBI = np.array([[0, 0.25, 0], [0.25, 0, 0.25], [0, 0.25, 0]])
SOBEL = np.outer([1, 2, 1], [-1, 0, 1]) / 8.0
BOX = np.ones((3, 3))


def blur(image, mode):
    return taps(taps(image, mode, ACROSS, "across"), mode, ACROSS.T, "blur")


def unsharp(image, mode):
    blurred = blur(image, mode)
    return te.compute(image.shape, lambda y, x: image[y, x] * 2.0 - blurred[y, x], name="sharp")


def jacobi(image, mode):
    return taps(taps(image, mode, JACOBI, "once"), mode, JACOBI, "twice")


def harris(image, mode):
    dx, dy = taps(image, mode, SOBEL, "dx"), taps(image, mode, SOBEL.T, "dy")

    def summed(a, b, name):
        product = te.compute(image.shape, lambda y, x: a[y, x] * b[y, x], name=f"{name}_product")
        return taps(product, mode, BOX, name)

    xx, xy, yy = summed(dx, dx, "xx"), summed(dx, dy, "xy"), summed(dy, dy, "yy")

    def corner(y, x):
        trace = xx[y, x] + yy[y, x]
        return xx[y, x] * yy[y, x] - xy[y, x] * xy[y, x] - trace * trace * 0.04

    return te.compute(image.shape, corner, name="corner")


def scipy_of(stencil, image, mode):
    def correlate(a, weights):
        return ndimage.correlate(a, weights, mode=BORDERS[mode])

    match stencil.__name__:
        case "blur" | "unsharp":
            blurred = correlate(correlate(image, ACROSS), ACROSS.T)
            return blurred if stencil is blur else image * 2 - blurred
        case "jacobi":
            return correlate(correlate(image, JACOBI), JACOBI)
        case "harris":
            dx, dy = correlate(image, SOBEL), correlate(image, SOBEL.T)
            xx, xy, yy = (correlate(a * b, BOX) for a, b in ((dx, dx), (dx, dy), (dy, dy)))
            return xx * yy - xy * xy - 0.04 * (xx + yy) ** 2
    raise AssertionError(stencil)


STENCILS = (blur, unsharp, jacobi, harris)


def in_strips(output):
    """A schedule in strips of rows: padding is inlined, the other stages are computed for each strip, in vectors."""
    s = lw.create_schedule(output)
    y, x = s[output].loops
    strip, _ = s[output].split(y, factor=ROWS)
    s[output].vectorize(s[output].split(x, factor=8)[1])
    for stage in reversed(s.stages):
        if stage.name == s[output].name or not isinstance(stage.op, te.ComputeOp):
            continue
        if stage.name.endswith("_padded"):
            stage.compute_inline()
        else:
            stage.compute_at(s[output], strip)
            stage.vectorize(stage.split(stage.loops[-1], factor=8)[1])
    return s


def image_of(shape, open_extents=False):
    return te.placeholder((te.var("h"), te.var("w")) if open_extents else shape, name="image")


def check(schedule, image, output, reference, shape):
    pixels = np.random.default_rng(3).standard_normal(shape, dtype=np.float32)
    result = np.empty(shape, np.float32)
    lw.build(schedule, [image, output], target=TARGET)(pixels, result)
    expected = reference(pixels.astype(np.float64))
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("mode", BORDERS)
@pytest.mark.parametrize("stencil", STENCILS)
def test_the_default_schedule_computes_what_scipy_does(stencil, mode):
    for shape in ((70, 100), (5, 19)):
        image = image_of(shape)
        output = stencil(image, mode)
        schedule = lw.default_schedule(output, target=TARGET)
        check(schedule, image, output, lambda pixels: scipy_of(stencil, pixels, mode), shape)


@pytest.mark.parametrize("mode", BORDERS)
@pytest.mark.parametrize("stencil", STENCILS)
def test_strips_compute_what_scipy_does(stencil, mode):
    shape = (36, 75)
    image = image_of(shape)
    output = stencil(image, mode)
    check(in_strips(output), image, output, lambda pixels: scipy_of(stencil, pixels, mode), shape)


@pytest.mark.parametrize("mode", BORDERS)
def test_images_of_any_size(mode):
    image = image_of(None, open_extents=True)
    output = blur(image, mode)
    kernel = lw.build(lw.default_schedule(output, target=TARGET), [image, output], target=TARGET)
    for shape in ((40, 70), (9, 8), (2, 3), (1, 1)):
        pixels = np.random.default_rng(4).standard_normal(shape, dtype=np.float32)
        result = np.empty(shape, np.float32)
        kernel(pixels, result)
        expected = np.pad(pixels.astype(np.float64), 1, mode)
        across = np.pad(sum(w * expected[1:-1, j : j + shape[1]] for j, w in enumerate(ACROSS[0])), 1, mode)
        down = sum(w * across[i : i + shape[0], 1:-1] for i, w in enumerate(ACROSS[0]))
        np.testing.assert_allclose(result, down, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("stencil", [blur, jacobi, harris])
def test_strips_compute_no_row_too_many(stencil, mode, stores):
    height, width = 4 * ROWS, 24
    image = image_of((height, width))
    output = stencil(image, mode)
    run = interpret(realized_function(in_strips(output), [image, output]))
    run(np.ones((height, width), np.float32), np.empty((height, width), np.float32))
    assert stores.pop(output.name) == height * width
    border = {"dx": 2, "dy": 2}
    for name, count in stores.items():
        assert height * width <= count <= 4 * (ROWS + 2 * border.get(name, 1)) * width, name


def lanes_apart(func):
    """The loads in innermost loops whose lanes are neither neighbours nor one element."""
    loops = [node for node in walk(func.body) if isinstance(node, For)]
    innermost = [loop for loop in loops if not any(isinstance(node, For) for node in walk(loop.body))]
    loads = [node for loop in innermost for node in walk(loop.body) if isinstance(node, Load)]
    vectors = [load for load in loads if load.indices[-1].dtype.lanes > 1]
    return [v for v in vectors if not (isinstance(v.indices[-1], Ramp) and const_int(v.indices[-1].stride) == 1)]


@pytest.mark.parametrize("mode", BORDERS)
@pytest.mark.parametrize("stencil", STENCILS)
def test_no_inner_loop_gathers(stencil, mode):
    image = image_of((240, 320))
    output = stencil(image, mode)
    schedules = [lw.default_schedule(output, target=TARGET)]
    if mode != "wrap":
        schedules.append(in_strips(output))
    for schedule in schedules:
        assert not lanes_apart(lw.lower(schedule, [image, output], target=TARGET))
