"""Our stencils, scheduled by hand in strips of rows, or by general rules."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

import loopwright as lw
from loopwright import te

from . import bilateral_grid

STRIP = 16
BLUR = np.array([[0.25, 0.5, 0.25]])
JACOBI = np.array([[0, 0.25, 0], [0.25, 0, 0.25], [0, 0.25, 0]])
SOBEL = np.outer([1, 2, 1], [-1, 0, 1]) / 8
BOX = np.ones((3, 3))


def taps(source: te.Tensor, border: str, weights: np.ndarray, name: str) -> te.Tensor:
    """The neighbours of each pixel, weighted and summed."""
    up, left = weights.shape[0] // 2, weights.shape[1] // 2
    padded = te.pad(source, (up, left), mode=border, name=f"{name}_padded")

    def pixel(y, x):
        return functools.reduce(
            lambda a, b: a + b, [padded[y + i, x + j] * float(w) for (i, j), w in np.ndenumerate(weights) if w]
        )

    return te.compute(source.shape, pixel, name=name)


def blur(image: te.Tensor, border: str) -> te.Tensor:
    return taps(taps(image, border, BLUR, "across"), border, BLUR.T, "down")


def sharpen(image: te.Tensor, border: str) -> te.Tensor:
    blurred = blur(image, border)
    return te.compute(image.shape, lambda y, x: image[y, x] * 2.0 - blurred[y, x], name="sharp")


def jacobi(image: te.Tensor, border: str) -> te.Tensor:
    return taps(image, border, JACOBI, "jacobi")


def harris(image: te.Tensor, border: str) -> te.Tensor:
    dx, dy = taps(image, border, SOBEL, "dx"), taps(image, border, SOBEL.T, "dy")

    def summed(a: te.Tensor, b: te.Tensor, name: str) -> te.Tensor:
        product = te.compute(image.shape, lambda y, x: a[y, x] * b[y, x], name=f"{name}_product")
        return taps(product, border, BOX, name)

    xx, xy, yy = summed(dx, dx, "xx"), summed(dx, dy, "xy"), summed(dy, dy, "yy")

    def corner(y, x):
        trace = xx[y, x] + yy[y, x]
        return xx[y, x] * yy[y, x] - xy[y, x] * xy[y, x] - trace * trace * 0.04

    return te.compute(image.shape, corner, name="corner")


STENCILS = {
    "blur": blur,
    "sharpen": sharpen,
    "harris": harris,
    "jacobi": jacobi,
    "bilateral": bilateral_grid.bilateral_grid,
}
KEPT = ("across", "dx", "dy")
"""The stages that are computed for a strip; the others are inlined."""


def in_strips(output: te.Tensor, lanes: int) -> lw.Schedule:
    s = lw.create_schedule(output)
    kept = [stage for stage in s.stages if stage.name in KEPT]
    for stage in s.stages:
        if stage.name not in (*KEPT, output.name) and isinstance(stage.op, te.ComputeOp):
            stage.compute_inline()
    strip, _ = s[output].split(output.op.axis[0], factor=STRIP)
    for stage in kept:
        stage.compute_at(s[output], strip)
    for stage in (*kept, s[output]):
        _, lane = stage.split(stage.loops[-1], factor=lanes)
        stage.vectorize(lane)
    s[output].parallel(strip)
    return s


def prepare(
    stencil: str, border: str, image: np.ndarray, result: np.ndarray, threads: int, kind: str
) -> Callable[[], object]:
    source = te.placeholder(image.shape, name="image")
    output = STENCILS[stencil](source, border)
    target = lw.resolve_target("native")
    by_hand = kind == "hand"
    hand = bilateral_grid.by_hand if stencil == "bilateral" else in_strips
    schedule = hand(output, target.lanes("float32")) if by_hand else lw.default_schedule(output, target)
    return lw.build(schedule, [source, output], target=target).bind(image, result, threads=threads)
