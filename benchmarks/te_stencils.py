"""Stencils as users write them: filters of images, and steps of relaxations."""

from __future__ import annotations

import numpy as np
from te_case import Array, TeCase, image

from loopwright import te


def blur(n: int = 1022, m: int = 1022) -> TeCase:
    A = image(n + 2, m + 2)
    X = te.compute((n + 2, m), lambda i, j: (A[i, j] + A[i, j + 1] + A[i, j + 2]) / 3.0, name="X")
    Y = te.compute((n, m), lambda i, j: (X[i, j] + X[i + 1, j] + X[i + 2, j]) / 3.0, name="Y")

    def reference(a):
        x = (a[:, :-2] + a[:, 1:-1] + a[:, 2:]) / np.float32(3)
        return (x[:-2] + x[1:-1] + x[2:]) / np.float32(3)

    return TeCase([A], [Y], reference)


def gaussian(n: int = 1020, m: int = 1020) -> TeCase:
    """A window of 5 × 5, its weights an input."""
    A, W = image(n + 4, m + 4), te.placeholder((5, 5), name="W")
    p, q = te.reduce_axis((0, 5), name="p"), te.reduce_axis((0, 5), name="q")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i + p, j + q] * W[p, q], axis=(p, q)), name="Y")
    return TeCase(
        [A, W], [Y], lambda a, w: np.einsum("ijpq,pq->ij", np.lib.stride_tricks.sliding_window_view(a, (5, 5)), w)
    )


def unsharp(n: int = 1020, m: int = 1020) -> TeCase:
    A = image(n + 4, m + 4)
    w = [0.1, 0.2, 0.4, 0.2, 0.1]
    X = te.compute((n + 4, m), lambda i, j: sum(A[i, j + k] * w[k] for k in range(5)), name="X")
    B = te.compute((n, m), lambda i, j: sum(X[i + k, j] * w[k] for k in range(5)), name="B")
    Y = te.compute((n, m), lambda i, j: A[i + 2, j + 2] * 2.0 - B[i, j], name="Y")

    def reference(a):
        x = sum(a[:, k : k + m] * np.float32(w[k]) for k in range(5))
        return a[2:-2, 2:-2] * np.float32(2) - sum(x[k : k + n] * np.float32(w[k]) for k in range(5))

    return TeCase([A], [Y], reference)


def jacobi(n: int = 1022, m: int = 1022) -> TeCase:
    A = image(n + 2, m + 2)
    Y = te.compute(
        (n, m),
        lambda i, j: (A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2] + A[i + 1, j + 1]) * 0.2,
        name="Y",
    )
    return TeCase([A], [Y], _jacobi)


def _jacobi(a: Array) -> Array:
    return (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[1:-1, 1:-1]) * np.float32(0.2)


def jacobi_twice(n: int = 1020, m: int = 1020) -> TeCase:
    A = image(n + 4, m + 4)

    def step(x, n, m, name):
        return te.compute(
            (n, m),
            lambda i, j: (x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2] + x[i + 1, j + 1]) * 0.2,
            name=name,
        )

    Y = step(step(A, n + 2, m + 2, "X"), n, m, "Y")
    return TeCase([A], [Y], lambda a: _jacobi(_jacobi(a)))


def heat_3d(n: int = 96) -> TeCase:
    A = te.placeholder((n + 2, n + 2, n + 2), name="A")

    def cell(i, j, k):
        near = A[i, j + 1, k + 1] + A[i + 2, j + 1, k + 1] + A[i + 1, j, k + 1]
        return (near + A[i + 1, j + 2, k + 1] + A[i + 1, j + 1, k] + A[i + 1, j + 1, k + 2]) * 0.1 + A[
            i + 1, j + 1, k + 1
        ] * 0.4

    def reference(a):
        c = slice(1, -1)
        near = a[:-2, c, c] + a[2:, c, c] + a[c, :-2, c] + a[c, 2:, c] + a[c, c, :-2] + a[c, c, 2:]
        return near * np.float32(0.1) + a[c, c, c] * np.float32(0.4)

    return TeCase([A], [te.compute((n, n, n), cell, name="Y")], reference)


def sobel(n: int = 1022, m: int = 1022) -> TeCase:
    A = image(n + 2, m + 2)
    X = te.compute(
        (n, m),
        lambda i, j: (A[i, j + 2] - A[i, j]) + (A[i + 1, j + 2] - A[i + 1, j]) * 2.0 + (A[i + 2, j + 2] - A[i + 2, j]),
        name="X",
    )
    Z = te.compute(
        (n, m),
        lambda i, j: (A[i + 2, j] - A[i, j]) + (A[i + 2, j + 1] - A[i, j + 1]) * 2.0 + (A[i + 2, j + 2] - A[i, j + 2]),
        name="Z",
    )
    Y = te.compute((n, m), lambda i, j: te.sqrt(X[i, j] * X[i, j] + Z[i, j] * Z[i, j]), name="Y")

    def reference(a):
        across, two = a[:, 2:] - a[:, :-2], np.float32(2)
        down = a[2:] - a[:-2]
        x = across[:-2] + two * across[1:-1] + across[2:]
        z = down[:, :-2] + two * down[:, 1:-1] + down[:, 2:]
        return np.sqrt(x * x + z * z)

    return TeCase([A], [Y], reference)


def harris(n: int = 510, m: int = 510) -> TeCase:
    """Corners: products of gradients, summed in windows of 3 × 3."""
    A = image(n + 4, m + 4)
    X = te.compute((n + 2, m + 2), lambda i, j: A[i + 1, j + 2] - A[i + 1, j], name="X")
    Z = te.compute((n + 2, m + 2), lambda i, j: A[i + 2, j + 1] - A[i, j + 1], name="Z")

    def window(a, b, name):
        return te.compute(
            (n, m), lambda i, j: sum(a[i + p, j + q] * b[i + p, j + q] for p in range(3) for q in range(3)), name=name
        )

    XX, ZZ, XZ = window(X, X, "XX"), window(Z, Z, "ZZ"), window(X, Z, "XZ")

    def response(i, j):
        trace = XX[i, j] + ZZ[i, j]
        return XX[i, j] * ZZ[i, j] - XZ[i, j] * XZ[i, j] - trace * trace * 0.04

    def reference(a):
        x, z = a[1:-1, 2:] - a[1:-1, :-2], a[2:, 1:-1] - a[:-2, 1:-1]

        def sums(b):
            return sum(b[p : p + n, q : q + m] for p in range(3) for q in range(3))

        xx, zz, xz = sums(x * x), sums(z * z), sums(x * z)
        return xx * zz - xz * xz - (xx + zz) ** 2 * np.float32(0.04)

    return TeCase([A], [te.compute((n, m), response, name="Y")], reference)
