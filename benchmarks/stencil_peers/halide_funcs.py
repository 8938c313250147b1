"""Halide: functions scheduled in strips of rows, as its tutorials do."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import halide as hl
import numpy as np

from .halide_bilateral import bilateral_grid

STRIP = 32
BORDERS = {
    "constant": lambda image: hl.BoundaryConditions.constant_exterior(image, 0.0),
    "edge": hl.BoundaryConditions.repeat_edge,
    "reflect": hl.BoundaryConditions.mirror_interior,
    "wrap": hl.BoundaryConditions.repeat_image,
}
X, Y, INNER = hl.Var("x"), hl.Var("y"), hl.Var("inner")
BLUR = ((-1, 0.25), (0, 0.5), (1, 0.25))


def summed(terms: list[hl.Expr]) -> hl.Expr:
    return functools.reduce(lambda a, b: a + b, terms)


def at_clamped(func: hl.Func, x: hl.Expr, y: hl.Expr, shape: tuple[int, int]) -> hl.Expr:
    """An intermediate result with its edges repeated."""
    return func[hl.clamp(x, 0, shape[1] - 1), hl.clamp(y, 0, shape[0] - 1)]


def across_and_down(source: hl.Func, shape: tuple[int, int]) -> tuple[hl.Func, hl.Expr]:
    across = hl.Func("across")
    across[X, Y] = summed([source[X + k, Y] * w for k, w in BLUR])
    return across, summed([at_clamped(across, X, Y + k, shape) * w for k, w in BLUR])


def define(stencil: str, source: hl.Func, shape: tuple[int, int]) -> tuple[hl.Func, list[hl.Func]]:
    """The output, and the functions to compute for each strip."""
    output = hl.Func("output")
    match stencil:
        case "jacobi":
            output[X, Y] = (source[X, Y - 1] + source[X - 1, Y] + source[X + 1, Y] + source[X, Y + 1]) * 0.25
            return output, []
        case "blur" | "sharpen":
            across, down = across_and_down(source, shape)
            output[X, Y] = down if stencil == "blur" else source[X, Y] * 2.0 - down
            return output, [across]
        case "harris":
            return output, harris(output, source, shape)
    raise LookupError(f"nothing is written for {stencil}")


def harris(output: hl.Func, source: hl.Func, shape: tuple[int, int]) -> list[hl.Func]:
    dx, dy = hl.Func("dx"), hl.Func("dy")
    smooth = ((-1, 1.0), (0, 2.0), (1, 1.0))
    dx[X, Y] = summed([(source[X + 1, Y + k] - source[X - 1, Y + k]) * (w / 8) for k, w in smooth])
    dy[X, Y] = summed([(source[X + k, Y + 1] - source[X + k, Y - 1]) * (w / 8) for k, w in smooth])
    box = [(i, j) for j in (-1, 0, 1) for i in (-1, 0, 1)]

    def window(a: hl.Func, b: hl.Func) -> hl.Expr:
        return summed([at_clamped(a, X + i, Y + j, shape) * at_clamped(b, X + i, Y + j, shape) for i, j in box])

    xx, xy, yy = window(dx, dx), window(dx, dy), window(dy, dy)
    output[X, Y] = xx * yy - xy * xy - (xx + yy) * (xx + yy) * hl.f32(0.04)
    return [dx, dy]


def prepare(
    stencil: str, border: str, image: np.ndarray, result: np.ndarray, threads: int, kind: str
) -> Callable[[], object]:
    os.environ["HL_NUM_THREADS"] = str(threads)
    source, into = hl.Buffer(image), hl.Buffer(result)
    target = hl.get_host_target()
    lanes = target.natural_vector_size(hl.Float(32))
    if stencil == "bilateral":
        output = bilateral_grid(BORDERS[border](source), lanes)
    else:
        output, kept = define(stencil, BORDERS[border](source), image.shape)
        output.split(Y, Y, INNER, STRIP).vectorize(X, lanes).parallel(Y)
        for func in kept:
            func.compute_at(output, Y).vectorize(X, lanes)
    output.compile_jit(target)
    arrays = (source, into, image, result)

    def run(_held: object = arrays) -> None:  # a Buffer does not keep its array alive
        output.realize(into)

    return run
