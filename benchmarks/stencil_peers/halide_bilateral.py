"""Halide's bilateral grid, defined, and by default scheduled, as in its ``apps/bilateral_grid``."""

from __future__ import annotations

import halide as hl

BLOCK, LEVELS = 8, 10
X, Y, Z, C = hl.Var("x"), hl.Var("y"), hl.Var("z"), hl.Var("c")
TAPS = ((-2, 1.0), (-1, 4.0), (0, 6.0), (1, 4.0), (2, 1.0))


def bilateral_grid(source: hl.Func, lanes: int | None) -> hl.Func:
    """The output, in vectors of so many lanes; without a schedule where there are none."""
    window = hl.RDom([(0, BLOCK), (0, BLOCK)])
    pixel = hl.clamp(source[X * BLOCK + window.x - BLOCK // 2, Y * BLOCK + window.y - BLOCK // 2], 0.0, 1.0)
    histogram, blur_z, blur_x, blur_y = (hl.Func(name) for name in ("histogram", "blur_z", "blur_x", "blur_y"))
    histogram[X, Y, Z, C] = hl.f32(0.0)
    histogram[X, Y, hl.i32(pixel * hl.f32(LEVELS) + 0.5), C] += hl.mux(C, [pixel, hl.f32(1.0)])
    blur_z[X, Y, Z, C] = sum((histogram[X, Y, Z + k, C] * w for k, w in TAPS), hl.f32(0.0))
    blur_x[X, Y, Z, C] = sum((blur_z[X + k, Y, Z, C] * w for k, w in TAPS), hl.f32(0.0))
    blur_y[X, Y, Z, C] = sum((blur_x[X, Y + k, Z, C] * w for k, w in TAPS), hl.f32(0.0))

    level = hl.clamp(source[X, Y], 0.0, 1.0) * hl.f32(LEVELS)
    z = hl.i32(level)
    dx, dy = hl.f32(X % BLOCK) / BLOCK, hl.f32(Y % BLOCK) / BLOCK
    column, row = X // BLOCK, Y // BLOCK

    def along_x(row: hl.Expr, z: hl.Expr) -> hl.Expr:
        return hl.lerp(blur_y[column, row, z, C], blur_y[column + 1, row, z, C], dx)

    def along_y(z: hl.Expr) -> hl.Expr:
        return hl.lerp(along_x(row, z), along_x(row + 1, z), dy)

    interpolated, output = hl.Func("interpolated"), hl.Func("output")
    interpolated[X, Y, C] = hl.lerp(along_y(z), along_y(z + 1), level - hl.f32(z))
    output[X, Y] = interpolated[X, Y, 0] / interpolated[X, Y, 1]
    if lanes is None:
        return output

    blur_z.compute_root().reorder(C, Z, X, Y).parallel(Y).vectorize(X, lanes).unroll(C)
    histogram.compute_at(blur_z, Y)
    histogram.update().reorder(C, window.x, window.y, X, Y).unroll(C)
    blur_x.compute_root().reorder(C, X, Y, Z).parallel(Z).vectorize(X, lanes).unroll(C)
    blur_y.compute_root().reorder(C, X, Y, Z).parallel(Z).vectorize(X, lanes).unroll(C)
    output.parallel(Y).vectorize(X, lanes)
    return output
