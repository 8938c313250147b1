"""Functions as kernels: written as for numpy, compiled for the shapes they are called with, scheduled by default or by
hand, checked against numpy.
"""

from typing import Any

import numpy as np

import loopwright as lw
from loopwright import te


def standardized(x: Any, weight: Any, epsilon: float = 1e-5) -> Any:
    """Rows of mean 0 and variance 1, times a weight: the same text for arrays and for tensors."""
    centered = x - x.mean(axis=1, keepdims=True)
    variance = (centered * centered).mean(axis=1, keepdims=True)
    return centered / np.sqrt(variance + epsilon) * weight


def in_rows(s: lw.Schedule) -> None:
    """A row of the picture at a time, in vectors of 16."""
    s["edges"].split("j", 16)
    s["edges"].vectorize("j_inner")
    s["edges"].parallel("i")


@lw.kernel(schedule=in_rows)
def edges(picture: te.Tensor) -> te.Tensor:
    """How much each pixel differs from its neighbours."""
    n, m = picture.shape

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        around = picture[i, j + 1] + picture[i + 2, j + 1] + picture[i + 1, j] + picture[i + 1, j + 2]
        return te.abs(4.0 * picture[i + 1, j + 1] - around)

    return te.compute((n - 2, m - 2), element, name="edges")


def main() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((64, 256), np.float32), rng.standard_normal(256, np.float32)
    kernel = lw.kernel(standardized)
    np.testing.assert_allclose(kernel(x, weight), standardized(x, weight), rtol=1e-4, atol=1e-5)
    print(kernel.specialize(x, weight).kernel.signature)

    picture = rng.standard_normal((66, 130), np.float32)
    inner = picture[1:-1, 1:-1]
    around = picture[:-2, 1:-1] + picture[2:, 1:-1] + picture[1:-1, :-2] + picture[1:-1, 2:]
    np.testing.assert_allclose(edges(picture), np.abs(4 * inner - around), rtol=1e-4, atol=1e-5)
    made = edges.specialize(picture)
    print(made.kernel.signature, made.schedule, made.kernel.vector_report(), sep="\n\n")


if __name__ == "__main__":
    main()
