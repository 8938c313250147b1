"""numba: loops as a person would write them, with the first and last columns apart from the others."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from numba import njit, prange

QUARTER, HALF = np.float32(0.25), np.float32(0.5)
EIGHTH, K, ONE = np.float32(0.125), np.float32(0.04), np.float32(1)
INDEX = {
    "edge": lambda i, n: min(max(i, 0), n - 1),
    "reflect": lambda i, n: (n - 1) - abs((n - 1) - abs(i)),
    "wrap": lambda i, n: i % n,
}


def jacobi_loops(at: Callable[..., int], loops: Callable[..., Callable[..., None]]) -> Callable[..., None]:
    @loops
    def jacobi(a, out):
        h, w = a.shape
        for y in prange(h):
            above, here, below = a[at(y - 1, h)], a[y], a[at(y + 1, h)]
            for x in (0, w - 1):
                out[y, x] = (above[x] + here[at(x - 1, w)] + here[at(x + 1, w)] + below[x]) * QUARTER
            for x in range(1, w - 1):
                out[y, x] = (above[x] + here[x - 1] + here[x + 1] + below[x]) * QUARTER

    return jacobi


def blur_loops(
    at: Callable[..., int], loops: Callable[..., Callable[..., None]]
) -> tuple[Callable[..., None], Callable[..., None]]:
    @loops
    def blur_across(a, out):
        h, w = a.shape
        for y in prange(h):
            for x in (0, w - 1):
                out[y, x] = (a[y, at(x - 1, w)] + a[y, at(x + 1, w)]) * QUARTER + a[y, x] * HALF
            for x in range(1, w - 1):
                out[y, x] = (a[y, x - 1] + a[y, x + 1]) * QUARTER + a[y, x] * HALF

    @loops
    def blur_down(across, a, weight, out):
        """The rows averaged; sharpened where ``weight`` is 2."""
        h, w = across.shape
        for y in prange(h):
            above, here, below = across[at(y - 1, h)], across[y], across[at(y + 1, h)]
            if weight > 0:
                for x in range(w):
                    out[y, x] = a[y, x] * weight - ((above[x] + below[x]) * QUARTER + here[x] * HALF)
            else:
                for x in range(w):
                    out[y, x] = (above[x] + below[x]) * QUARTER + here[x] * HALF

    return blur_across, blur_down


def harris_loops(
    at: Callable[..., int], loops: Callable[..., Callable[..., None]]
) -> tuple[Callable[..., None], Callable[..., None]]:
    @njit(inline="always")
    def slopes(above, here, below, left, x, right):
        dx = (above[right] - above[left]) + (here[right] - here[left]) * np.float32(2) + (below[right] - below[left])
        dy = (below[left] - above[left]) + (below[x] - above[x]) * np.float32(2) + (below[right] - above[right])
        return dx * EIGHTH, dy * EIGHTH

    @loops
    def gradients(a, dx, dy):
        h, w = a.shape
        for y in prange(h):
            above, here, below = a[at(y - 1, h)], a[y], a[at(y + 1, h)]
            for x in (0, w - 1):
                dx[y, x], dy[y, x] = slopes(above, here, below, at(x - 1, w), x, at(x + 1, w))
            for x in range(1, w - 1):
                dx[y, x], dy[y, x] = slopes(above, here, below, x - 1, x, x + 1)

    @njit(inline="always")
    def corner(dx, dy, above, y, below, left, x, right):
        xx = xy = yy = np.float32(0)
        for j in (above, y, below):
            for i in (left, x, right):
                u, v = dx[j, i], dy[j, i]
                xx += u * u
                xy += u * v
                yy += v * v
        return xx * yy - xy * xy - K * (xx + yy) * (xx + yy)

    @loops
    def corners(dx, dy, out):
        h, w = dx.shape
        for y in prange(h):
            above, below = at(y - 1, h), at(y + 1, h)
            for x in (0, w - 1):
                out[y, x] = corner(dx, dy, above, y, below, at(x - 1, w), x, at(x + 1, w))
            for x in range(1, w - 1):
                out[y, x] = corner(dx, dy, above, y, below, x - 1, x, x + 1)

    return gradients, corners


def bilateral_loops(
    at: Callable[..., int], loops: Callable[..., Callable[..., None]]
) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    @loops
    def histograms(a, grid):
        """Two blocks, and two bins, more at each side."""
        h, w = a.shape
        for row in prange(grid.shape[0]):
            grid[row] = 0
            for i in range(8):
                pixels = a[at(row * 8 + i - 20, h)]
                for column in range(grid.shape[1]):
                    for j in range(8):
                        pixel = pixels[at(column * 8 + j - 20, w)]
                        z = int(pixel * np.float32(10) + HALF) + 2
                        grid[row, column, z, 0] += pixel
                        grid[row, column, z, 1] += ONE

    @loops
    def blur(a, step, out):
        """Along an axis whose elements are ``step`` apart in memory."""
        flat, into = a.reshape(-1), out.reshape(-1)
        for i in prange(flat.size - 4 * step):
            outer = (flat[i] + flat[i + 4 * step]) + (flat[i + step] + flat[i + 3 * step]) * np.float32(4)
            into[i] = outer + flat[i + 2 * step] * np.float32(6)

    @loops
    def interpolate(a, grid, out):
        h, w = a.shape
        for y in prange(h):
            for x in range(w):
                level = a[y, x] * np.float32(10)
                z = int(level)
                sums, counts = np.float32(0), np.float32(0)
                for i in range(2):
                    for j in range(2):
                        for k in range(2):
                            dy, dx, dz = np.float32(y % 8) * EIGHTH, np.float32(x % 8) * EIGHTH, level - np.float32(z)
                            share = (dy if i else ONE - dy) * (dx if j else ONE - dx) * (dz if k else ONE - dz)
                            sums += share * grid[y // 8 + i, x // 8 + j, z + k, 0]
                            counts += share * grid[y // 8 + i, x // 8 + j, z + k, 1]
                out[y, x] = sums / counts

    return histograms, blur, interpolate


def prepare(
    stencil: str, border: str, image: np.ndarray, result: np.ndarray, threads: int, kind: str
) -> Callable[[], object]:
    if border not in INDEX:
        raise LookupError(f"nothing is written for borders that are {border}")
    numba.set_num_threads(threads)
    at, loops = njit(inline="always")(INDEX[border]), njit(parallel=threads > 1, fastmath=True)
    first, second = np.empty_like(image), np.empty_like(image)
    if stencil == "jacobi":
        jacobi = jacobi_loops(at, loops)
        return lambda: jacobi(image, result)
    if stencil == "harris":
        gradients, corners = harris_loops(at, loops)

        def corners_of_gradients() -> None:
            gradients(image, first, second)
            corners(first, second, result)

        return corners_of_gradients
    if stencil == "bilateral":
        histograms, blur, interpolate = bilateral_loops(at, loops)
        grid = np.zeros(((image.shape[0] - 1) // 8 + 6, (image.shape[1] - 1) // 8 + 6, 16, 2), np.float32)
        other = np.zeros_like(grid)

        def filtered() -> None:
            histograms(image, grid)
            blur(grid, 2, other)
            blur(other, 32, grid)
            blur(grid, 32 * grid.shape[1], other)
            interpolate(image, other, result)

        return filtered
    across, down = blur_loops(at, loops)
    weight = np.float32(2 if stencil == "sharpen" else 0)

    def blurred() -> None:
        across(image, first)
        down(first, image, weight, result)

    return blurred
