"""Sharpen an image: stencils whose borders repeat the nearest pixels, computed in strips of rows.

``te.pad`` makes the borders. Padding is inlined: lowering tells the interior of each row from its ends, so that inner
loops read plain vectors. The blurred rows that a strip needs are computed just before it, by ``compute_at``; strips
overlap by two rows, so that 18 rows are computed for 16.
"""

import numpy as np

import loopwright as lw
from loopwright import te

STRIP, LANES = 16, 16


def blurred(image: te.Tensor, axis: int, name: str) -> te.Tensor:
    """The image with each pixel averaged with its neighbours along one axis."""
    around = (1, 0) if axis == 0 else (0, 1)
    padded = te.pad(image, around, mode="edge", name=f"{name}_padded")

    def pixel(y: te.Axis, x: te.Axis) -> te.Expr:
        first, middle, last = (padded[y + around[0] * k, x + around[1] * k] for k in range(3))
        return first * 0.25 + middle * 0.5 + last * 0.25

    return te.compute(image.shape, pixel, name=name)


def sharpened(height: int, width: int) -> tuple[lw.Schedule, list[te.Tensor]]:
    image = te.placeholder((height, width), name="image")
    across = blurred(image, 1, "across")
    down = blurred(across, 0, "down")
    sharp = te.compute(image.shape, lambda y, x: image[y, x] * 2.0 - down[y, x], name="sharp")

    s = lw.create_schedule(sharp)
    for stage in s.stages:
        if stage.name.endswith("_padded") or stage.name == "down":
            stage.compute_inline()
    strip, _ = s[sharp].split(sharp.op.axis[0], factor=STRIP)
    s[across].compute_at(s[sharp], strip)
    for tensor in (across, sharp):
        _, lane = s[tensor].split(s[tensor].loops[-1], factor=LANES)
        s[tensor].vectorize(lane)
    s[sharp].parallel(strip)
    return s, [image, sharp]


def main() -> None:
    height, width = 720, 1280
    s, args = sharpened(height, width)
    print(s)
    kernel = lw.build(s, args, name="sharpen")

    image = np.random.default_rng(0).standard_normal((height, width), dtype=np.float32)
    result = np.empty_like(image)
    kernel(image, result)

    rows = np.pad(image, ((0, 0), (1, 1)), "edge")
    rows = rows[:, :-2] * 0.25 + rows[:, 1:-1] * 0.5 + rows[:, 2:] * 0.25
    rows = np.pad(rows, ((1, 1), (0, 0)), "edge")
    expected = image * 2 - (rows[:-2] * 0.25 + rows[1:-1] * 0.5 + rows[2:] * 0.25)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)

    print("\nagrees with numpy;", kernel.time(image, result))


if __name__ == "__main__":
    main()
