"""Tensor expressions as users write them: naive definitions, no strategy, each with what numpy makes of the same.

``benchmarks/autoschedule.py`` measures them, and tests check the results of their schedules on small shapes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from te_case import Array, TeCase, image
from te_stencils import blur, gaussian, harris, heat_3d, jacobi, jacobi_twice, sobel, unsharp

from loopwright import te


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
    A = image(n, m)
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
    A = image(n, m)
    r, q = te.reduce_axis((0, n), name="r"), te.reduce_axis((0, n), name="q")
    M = te.compute((m,), lambda j: te.max(A[r, j], axis=r), name="M")
    E = te.compute((n, m), lambda i, j: te.exp(A[i, j] - M[j]), name="E")
    S = te.compute((m,), lambda j: te.sum(E[q, j], axis=q), name="S")
    Y = te.compute((n, m), lambda i, j: E[i, j] / S[j], name="Y")
    return TeCase([A], [Y], lambda a: _softmax(a.T).T)


def layer_norm(n: int = 512, m: int = 768) -> TeCase:
    A = image(n, m)
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
    A = image(n, m)
    r = te.reduce_axis((0, n), name="r")
    return TeCase([A], [te.compute((m,), lambda j: te.sum(A[r, j], axis=r), name="S")], lambda a: a.sum(axis=0))


def row_sums(n: int = 777, m: int = 1000) -> TeCase:
    A = image(n, m)
    r = te.reduce_axis((0, m), name="r")
    return TeCase([A], [te.compute((n,), lambda i: te.sum(A[i, r], axis=r), name="S")], lambda a: a.sum(axis=1))


def dot(n: int = 1_000_003) -> TeCase:
    a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
    r = te.reduce_axis((0, n), name="r")
    Y = te.compute((1,), lambda i: te.sum(a[r] * b[r], axis=r), name="Y")
    return TeCase([a, b], [Y], lambda a, b: np.array([np.dot(a.astype(np.float64), b)], np.float32))


def square_norm(n: int = 700, m: int = 901) -> TeCase:
    A = image(n, m)
    p, q = te.reduce_axis((0, n), name="p"), te.reduce_axis((0, m), name="q")
    Y = te.compute((1,), lambda i: te.sum(A[p, q] * A[p, q], axis=(p, q)), name="Y")
    return TeCase([A], [Y], lambda a: np.array([(a.astype(np.float64) ** 2).sum()], np.float32))


def row_argmax(n: int = 500, m: int = 1000) -> TeCase:
    A = image(n, m)
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
    A = image(n, m)
    return TeCase([A], [te.compute((m, n), lambda i, j: A[j, i] * 2.0, name="Y")], lambda a: a.T * np.float32(2))


def gelu(n: int = 700, m: int = 1001) -> TeCase:
    A = image(n, m)
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
