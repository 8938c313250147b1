"""The published pipelines in tensor expressions, as they are defined there."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

from stencil_peers.bilateral_grid import bilateral_grid

from loopwright import te

from .shapes import CHANNELS, COLUMNS, HEIGHT, IMAGES, INPUTS, MARGIN, ROWS, SIZE, WIDTH

GRAY = (0.299, 0.587, 0.114)
SIGMA = 1.5
GAUSSIAN = tuple(math.exp(-k * k / (2 * SIGMA * SIGMA)) / (math.sqrt(2 * math.pi) * SIGMA) for k in range(4))
SOBEL = tuple((i, side, weight * side / 12) for side in (-1, 1) for i, weight in ((-1, 1.0), (0, 2.0), (1, 1.0)))
"""Of the derivative along one axis: the step along the other, the step along it, the weight."""


def _sum(terms: list[te.Expr]) -> te.Expr:
    return functools.reduce(lambda a, b: a + b, terms)


def blur(image: te.Tensor) -> te.Tensor:
    across = te.compute(
        (HEIGHT + 2, WIDTH), lambda y, x: (image[y, x] + image[y, x + 1] + image[y, x + 2]) // 3, name="blur_x"
    )
    return te.compute(
        (HEIGHT, WIDTH), lambda y, x: (across[y, x] + across[y + 1, x] + across[y + 2, x]) // 3, name="blur_y"
    )


def harris(image: te.Tensor) -> te.Tensor:
    at, inner = MARGIN - 1, (HEIGHT + 2, WIDTH + 2)
    gray = te.compute(image.shape[1:], lambda y, x: _sum([image[c, y, x] * w for c, w in enumerate(GRAY)]), name="gray")
    dy = te.compute(inner, lambda y, x: _sum([gray[y + at + b, x + at + a] * w for a, b, w in SOBEL]), name="dy")
    dx = te.compute(inner, lambda y, x: _sum([gray[y + at + a, x + at + b] * w for a, b, w in SOBEL]), name="dx")

    def summed(a: te.Tensor, b: te.Tensor, name: str) -> te.Tensor:
        product = te.compute(inner, lambda y, x: a[y, x] * b[y, x], name=f"{name}_product")
        return te.compute(
            (HEIGHT, WIDTH), lambda y, x: _sum([product[y + j, x + i] for j in range(3) for i in range(3)]), name=name
        )

    xx, yy, xy = summed(dx, dx, "xx"), summed(dy, dy, "yy"), summed(dx, dy, "xy")

    def corner(y: te.Var, x: te.Var) -> te.Expr:
        trace = xx[y, x] + yy[y, x]
        return xx[y, x] * yy[y, x] - xy[y, x] * xy[y, x] - trace * trace * 0.04

    return te.compute((HEIGHT, WIDTH), corner, name="corner")


def unsharp(image: te.Tensor) -> te.Tensor:
    gray = te.compute((HEIGHT, WIDTH), lambda y, x: _sum([image[c, y, x] * w for c, w in enumerate(GRAY)]), name="gray")
    edged = te.pad(gray, 3, mode="edge", name="edged")

    def windowed(at: Callable[[int], te.Expr]) -> te.Expr:
        return _sum([at(0) * GAUSSIAN[0], *((at(-k) + at(k)) * GAUSSIAN[k] for k in (1, 2, 3))])

    down = te.compute((HEIGHT, WIDTH + 6), lambda y, x: windowed(lambda k: edged[y + 3 + k, x]), name="blur_y")
    both = te.compute((HEIGHT, WIDTH), lambda y, x: windowed(lambda k: down[y, x + 3 + k]), name="blur_x")
    ratio = te.compute((HEIGHT, WIDTH), lambda y, x: (gray[y, x] * 2.0 - both[y, x]) / gray[y, x], name="ratio")
    return te.compute((3, HEIGHT, WIDTH), lambda c, y, x: ratio[y, x] * image[c, y, x], name="output")


def bilateral(image: te.Tensor) -> te.Tensor:
    return bilateral_grid(image, "edge")


def conv_layer(image: te.Tensor, weight: te.Tensor, bias: te.Tensor) -> te.Tensor:
    r = te.reduce_axis((0, CHANNELS), name="r")
    p, q = te.reduce_axis((0, 3), name="p"), te.reduce_axis((0, 3), name="q")
    shape = (IMAGES, ROWS, COLUMNS, CHANNELS)
    conv = te.compute(
        shape, lambda n, y, x, c: te.sum(weight[r, p, q, c] * image[n, y + p, x + q, r], axis=(r, p, q)), name="conv"
    )
    return te.compute(shape, lambda n, y, x, c: te.maximum(conv[n, y, x, c] + bias[c], 0.0), name="relu")


def matmul(left: te.Tensor, right: te.Tensor) -> te.Tensor:
    r = te.reduce_axis((0, SIZE), name="r")
    return te.compute((SIZE, SIZE), lambda i, j: te.sum(left[i, r] * right[r, j], axis=r), name="product")


COMPUTES: Mapping[str, Callable[..., te.Tensor]] = dict(
    zip(INPUTS, (blur, harris, unsharp, bilateral, conv_layer, matmul), strict=True)
)
