"""Tensor expressions as users write them: naive definitions, no strategy, each with what numpy makes of the same.

``benchmarks/autoschedule.py`` measures them, and tests check the results of their schedules on small shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loopwright import te

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class TeCase:
    """Inputs, outputs, and the same in numpy."""

    inputs: Sequence[te.Tensor]
    outputs: Sequence[te.Tensor]
    reference: Callable[..., Array | tuple[Array, ...]]

    def arrays(self, seed: int = 0) -> list[Array]:
        """Random inputs."""
        rng = np.random.default_rng(seed)
        return [_random(rng, [int(e) for e in t.shape], np.dtype(str(t.dtype))) for t in self.inputs]

    def results(self) -> list[Array]:
        """Memory for the outputs."""
        return [np.zeros([int(e) for e in t.shape], str(t.dtype)) for t in self.outputs]


def _random(rng: np.random.Generator, shape: Sequence[int], kind: np.dtype) -> Array:
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return rng.integers(max(info.min, -100), min(info.max, 100), shape, dtype=kind, endpoint=True)
    return rng.standard_normal(shape).astype(kind)


def _image(n: int, m: int) -> te.Tensor:
    return te.placeholder((n, m), name="A")


def blur(n: int = 1022, m: int = 1022) -> TeCase:
    A = _image(n + 2, m + 2)
    X = te.compute((n + 2, m), lambda i, j: (A[i, j] + A[i, j + 1] + A[i, j + 2]) / 3.0, name="X")
    Y = te.compute((n, m), lambda i, j: (X[i, j] + X[i + 1, j] + X[i + 2, j]) / 3.0, name="Y")

    def reference(a):
        x = (a[:, :-2] + a[:, 1:-1] + a[:, 2:]) / np.float32(3)
        return (x[:-2] + x[1:-1] + x[2:]) / np.float32(3)

    return TeCase([A], [Y], reference)


def gaussian(n: int = 1020, m: int = 1020) -> TeCase:
    """A window of 5 × 5, its weights an input."""
    A, W = _image(n + 4, m + 4), te.placeholder((5, 5), name="W")
    p, q = te.reduce_axis((0, 5), name="p"), te.reduce_axis((0, 5), name="q")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i + p, j + q] * W[p, q], axis=(p, q)), name="Y")
    return TeCase(
        [A, W], [Y], lambda a, w: np.einsum("ijpq,pq->ij", np.lib.stride_tricks.sliding_window_view(a, (5, 5)), w)
    )


def unsharp(n: int = 1020, m: int = 1020) -> TeCase:
    A = _image(n + 4, m + 4)
    w = [0.1, 0.2, 0.4, 0.2, 0.1]
    X = te.compute((n + 4, m), lambda i, j: sum(A[i, j + k] * w[k] for k in range(5)), name="X")
    B = te.compute((n, m), lambda i, j: sum(X[i + k, j] * w[k] for k in range(5)), name="B")
    Y = te.compute((n, m), lambda i, j: A[i + 2, j + 2] * 2.0 - B[i, j], name="Y")

    def reference(a):
        x = sum(a[:, k : k + m] * np.float32(w[k]) for k in range(5))
        return a[2:-2, 2:-2] * np.float32(2) - sum(x[k : k + n] * np.float32(w[k]) for k in range(5))

    return TeCase([A], [Y], reference)


def jacobi(n: int = 1022, m: int = 1022) -> TeCase:
    A = _image(n + 2, m + 2)
    Y = te.compute(
        (n, m),
        lambda i, j: (A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2] + A[i + 1, j + 1]) * 0.2,
        name="Y",
    )
    return TeCase([A], [Y], _jacobi)


def _jacobi(a: Array) -> Array:
    return (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[1:-1, 1:-1]) * np.float32(0.2)


def jacobi_twice(n: int = 1020, m: int = 1020) -> TeCase:
    A = _image(n + 4, m + 4)

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
    A = _image(n + 2, m + 2)
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
    A = _image(n + 4, m + 4)
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


def matmul(n: int = 509, m: int = 505, k: int = 503) -> TeCase:
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    return TeCase(
        [A, B], [te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")], lambda a, b: a @ b
    )


def left_transposed(n: int = 384, m: int = 384, k: int = 384) -> TeCase:
    A, B = te.placeholder((k, n), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    return TeCase(
        [A, B], [te.compute((n, m), lambda i, j: te.sum(A[r, i] * B[r, j], axis=r), name="C")], lambda a, b: a.T @ b
    )


def right_transposed(n: int = 384, m: int = 384, k: int = 384) -> TeCase:
    A, B = te.placeholder((n, k), name="A"), te.placeholder((m, k), name="B")
    r = te.reduce_axis((0, k), name="r")
    return TeCase(
        [A, B], [te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")], lambda a, b: a @ b.T
    )


def grouped_product(g: int = 8, n: int = 96, m: int = 96, k: int = 96) -> TeCase:
    """A product for each of some groups, whose columns lie side by side."""
    A, B = te.placeholder((n, g, k), name="A"), te.placeholder((g, k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, g, m), lambda i, h, j: te.sum(A[i, h, r] * B[h, r, j], axis=r), name="C")
    return TeCase([A, B], [C], lambda a, b: np.einsum("igk,gkj->igj", a, b))


def scores(b: int = 8, n: int = 128, d: int = 64) -> TeCase:
    """Attention's scores, scaled."""
    Q, K = te.placeholder((b, n, d), name="Q"), te.placeholder((b, n, d), name="K")
    r = te.reduce_axis((0, d), name="r")
    S = te.compute((b, n, n), lambda h, i, j: te.sum(Q[h, i, r] * K[h, j, r], axis=r), name="S")
    Y = te.compute((b, n, n), lambda h, i, j: S[h, i, j] * (1.0 / d**0.5), name="Y")
    return TeCase([Q, K], [Y], lambda q, k: q @ k.transpose(0, 2, 1) * np.float32(1.0 / d**0.5))


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _row_softmax(X: te.Tensor, n: int, m: int) -> te.Tensor:
    r, q = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, m), name="q")
    M = te.compute((n,), lambda i: te.max(X[i, r], axis=r), name="M")
    E = te.compute((n, m), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    S = te.compute((n,), lambda i: te.sum(E[i, q], axis=q), name="S")
    return te.compute((n, m), lambda i, j: E[i, j] / S[i], name="P")


def softmax(n: int = 512, m: int = 1000) -> TeCase:
    A = _image(n, m)
    return TeCase([A], [_row_softmax(A, n, m)], _softmax)


def attention(n: int = 256, d: int = 64) -> TeCase:
    """One head, written out."""
    Q, K, V = (te.placeholder((n, d), name=name) for name in "QKV")
    r, q = te.reduce_axis((0, d), name="r"), te.reduce_axis((0, n), name="s")
    S = te.compute((n, n), lambda i, j: te.sum(Q[i, r] * K[j, r], axis=r), name="Scores")
    P = _row_softmax(S, n, n)
    Y = te.compute((n, d), lambda i, j: te.sum(P[i, q] * V[q, j], axis=q), name="Y")
    return TeCase([Q, K, V], [Y], lambda q, k, v: _softmax(q @ k.T) @ v)


def column_softmax(n: int = 1000, m: int = 512) -> TeCase:
    A = _image(n, m)
    r, q = te.reduce_axis((0, n), name="r"), te.reduce_axis((0, n), name="q")
    M = te.compute((m,), lambda j: te.max(A[r, j], axis=r), name="M")
    E = te.compute((n, m), lambda i, j: te.exp(A[i, j] - M[j]), name="E")
    S = te.compute((m,), lambda j: te.sum(E[q, j], axis=q), name="S")
    Y = te.compute((n, m), lambda i, j: E[i, j] / S[j], name="Y")
    return TeCase([A], [Y], lambda a: _softmax(a.T).T)


def layer_norm(n: int = 512, m: int = 768) -> TeCase:
    A = _image(n, m)
    r, q = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, m), name="q")
    S = te.compute((n,), lambda i: te.sum(A[i, r], axis=r), name="S")
    D = te.compute((n, m), lambda i, j: A[i, j] - S[i] * (1.0 / m), name="D")
    V = te.compute((n,), lambda i: te.sum(D[i, q] * D[i, q], axis=q), name="V")
    Y = te.compute((n, m), lambda i, j: D[i, j] / te.sqrt(V[i] * (1.0 / m) + 1e-5), name="Y")

    def reference(a):
        d = a - a.mean(axis=1, keepdims=True)
        return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + np.float32(1e-5))

    return TeCase([A], [Y], reference)


def layer(n: int = 253, m: int = 250, k: int = 251) -> TeCase:
    """A product, a bias, an activation."""
    A, B, C = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B"), te.placeholder((m,), name="bias")
    r = te.reduce_axis((0, k), name="r")
    P = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="P")
    Y = te.compute((n, m), lambda i, j: te.maximum(P[i, j] + C[j], 0.0), name="Y")
    return TeCase([A, B, C], [Y], lambda a, b, c: np.maximum(a @ b + c, 0))


def matrix_vector(n: int = 1001, k: int = 1003) -> TeCase:
    A, x = te.placeholder((n, k), name="A"), te.placeholder((k,), name="x")
    r = te.reduce_axis((0, k), name="r")
    return TeCase([A, x], [te.compute((n,), lambda i: te.sum(A[i, r] * x[r], axis=r), name="Y")], lambda a, x: a @ x)


def sum_over_leading(n: int = 1000, m: int = 777) -> TeCase:
    A = _image(n, m)
    r = te.reduce_axis((0, n), name="r")
    return TeCase([A], [te.compute((m,), lambda j: te.sum(A[r, j], axis=r), name="S")], lambda a: a.sum(axis=0))


def row_sums(n: int = 777, m: int = 1000) -> TeCase:
    A = _image(n, m)
    r = te.reduce_axis((0, m), name="r")
    return TeCase([A], [te.compute((n,), lambda i: te.sum(A[i, r], axis=r), name="S")], lambda a: a.sum(axis=1))


def dot(n: int = 1_000_003) -> TeCase:
    a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
    r = te.reduce_axis((0, n), name="r")
    Y = te.compute((1,), lambda i: te.sum(a[r] * b[r], axis=r), name="Y")
    return TeCase([a, b], [Y], lambda a, b: np.array([np.dot(a.astype(np.float64), b)], np.float32))


def square_norm(n: int = 700, m: int = 901) -> TeCase:
    A = _image(n, m)
    p, q = te.reduce_axis((0, n), name="p"), te.reduce_axis((0, m), name="q")
    Y = te.compute((1,), lambda i: te.sum(A[p, q] * A[p, q], axis=(p, q)), name="Y")
    return TeCase([A], [Y], lambda a: np.array([(a.astype(np.float64) ** 2).sum()], np.float32))


def row_argmax(n: int = 500, m: int = 1000) -> TeCase:
    A = _image(n, m)
    r = te.reduce_axis((0, m), name="r")
    best, at = te.compute((n,), lambda i: te.argmax(A[i, r], axis=r), name="best")
    return TeCase([A], [best, at], lambda a: (a.max(axis=1), a.argmax(axis=1)))


def bytes_sum(n: int = 500, m: int = 1000) -> TeCase:
    """Sums of bytes as integers of 32 bits."""
    A = te.placeholder((n, m), "int8", name="A")
    r = te.reduce_axis((0, m), name="r")
    S = te.compute((n,), lambda i: te.sum(te.cast(A[i, r], "int32"), axis=r), name="S")
    return TeCase([A], [S], lambda a: a.sum(axis=1, dtype=np.int32))


def bytes_product(n: int = 250, m: int = 250, k: int = 250) -> TeCase:
    A, B = te.placeholder((n, k), "int8", name="A"), te.placeholder((k, m), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(te.cast(A[i, r], "int32") * te.cast(B[r, j], "int32"), axis=r), name="C")
    return TeCase([A, B], [C], lambda a, b: a.astype(np.int32) @ b.astype(np.int32))


def running_sums(n: int = 500, m: int = 800) -> TeCase:
    X = te.placeholder((n, m), name="X")
    state = te.scan_state((n, m), name="state")
    first = te.compute((1, m), lambda t, j: X[0, j], name="first")
    step = te.compute((n, m), lambda t, j: state[t - 1, j] + X[t, j], name="step")
    return TeCase([X], [te.scan(first, step, state, name="S")], lambda x: np.cumsum(x, axis=0))


def convolution_1d(n: int = 4000, c: int = 32, k: int = 32, w: int = 5) -> TeCase:
    A, W = te.placeholder((c, n + w - 1), name="A"), te.placeholder((k, c, w), name="W")
    r, q = te.reduce_axis((0, c), name="r"), te.reduce_axis((0, w), name="q")
    Y = te.compute((k, n), lambda f, i: te.sum(A[r, i + q] * W[f, r, q], axis=(r, q)), name="Y")
    return TeCase(
        [A, W], [Y], lambda a, b: np.einsum("ciq,fcq->fi", np.lib.stride_tricks.sliding_window_view(a, w, axis=1), b)
    )


def convolution(c: int = 32, f: int = 32, n: int = 54) -> TeCase:
    A, W = te.placeholder((c, n + 2, n + 2), name="A"), te.placeholder((f, c, 3, 3), name="W")
    r, p, q = te.reduce_axis((0, c), name="r"), te.reduce_axis((0, 3), name="p"), te.reduce_axis((0, 3), name="q")
    Y = te.compute((f, n, n), lambda k, i, j: te.sum(A[r, i + p, j + q] * W[k, r, p, q], axis=(r, p, q)), name="Y")

    def reference(a, w):
        windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(1, 2))
        return np.tensordot(w, windows, axes=((1, 2, 3), (0, 3, 4)))

    return TeCase([A, W], [Y], reference)


def depthwise(c: int = 64, n: int = 54) -> TeCase:
    A, W = te.placeholder((c, n + 2, n + 2), name="A"), te.placeholder((c, 3, 3), name="W")
    p, q = te.reduce_axis((0, 3), name="p"), te.reduce_axis((0, 3), name="q")
    Y = te.compute((c, n, n), lambda k, i, j: te.sum(A[k, i + p, j + q] * W[k, p, q], axis=(p, q)), name="Y")
    return TeCase(
        [A, W],
        [Y],
        lambda a, w: np.einsum("cijpq,cpq->cij", np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(1, 2)), w),
    )


def pooling(c: int = 64, n: int = 56) -> TeCase:
    A = te.placeholder((c, 2 * n, 2 * n), name="A")
    p, q = te.reduce_axis((0, 2), name="p"), te.reduce_axis((0, 2), name="q")
    Y = te.compute((c, n, n), lambda k, i, j: te.max(A[k, i * 2 + p, j * 2 + q], axis=(p, q)), name="Y")
    return TeCase([A], [Y], lambda a: a.reshape(c, n, 2, n, 2).max(axis=(2, 4)))


def distances(n: int = 300, m: int = 301, d: int = 61) -> TeCase:
    A, B = te.placeholder((n, d), name="A"), te.placeholder((m, d), name="B")
    r = te.reduce_axis((0, d), name="r")
    Y = te.compute((n, m), lambda i, j: te.sum((A[i, r] - B[j, r]) * (A[i, r] - B[j, r]), axis=r), name="Y")
    return TeCase([A, B], [Y], lambda a, b: ((a[:, None] - b[None]) ** 2).sum(axis=2))


def transposition(n: int = 1000, m: int = 700) -> TeCase:
    A = _image(n, m)
    return TeCase([A], [te.compute((m, n), lambda i, j: A[j, i] * 2.0, name="Y")], lambda a: a.T * np.float32(2))


def gelu(n: int = 700, m: int = 1001) -> TeCase:
    A = _image(n, m)
    T = te.compute((n, m), lambda i, j: te.tanh(A[i, j] * 0.7978 + A[i, j] * A[i, j] * A[i, j] * 0.0357), name="T")
    Y = te.compute((n, m), lambda i, j: A[i, j] * 0.5 * (T[i, j] + 1.0), name="Y")

    def reference(a):
        return a * np.float32(0.5) * (np.tanh(a * np.float32(0.7978) + a * a * a * np.float32(0.0357)) + np.float32(1))

    return TeCase([A], [Y], reference)


CASES: dict[str, Callable[..., TeCase]] = {
    case.__name__: case
    for case in (
        blur,
        gaussian,
        unsharp,
        jacobi,
        jacobi_twice,
        heat_3d,
        sobel,
        harris,
        matmul,
        left_transposed,
        right_transposed,
        grouped_product,
        scores,
        attention,
        layer,
        matrix_vector,
        softmax,
        column_softmax,
        layer_norm,
        sum_over_leading,
        row_sums,
        dot,
        square_norm,
        row_argmax,
        bytes_sum,
        bytes_product,
        running_sums,
        convolution_1d,
        convolution,
        depthwise,
        pooling,
        distances,
        transposition,
        gelu,
    )
}
