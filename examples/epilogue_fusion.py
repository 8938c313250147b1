"""Epilogue fusion: the bias and the activation of a dense layer, computed on each tile of the product.

``Y = max(A · B + bias, 0)`` in three stages. Stage by stage, the product goes to memory and comes back twice. With
``reverse_compute_at`` the later stages stand inside the loops of the product, so that a tile is still at hand when they
need it, and the product needs memory for one tile only.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

import loopwright as lw
from loopwright import te


def dense(n: int, k: int, m: int) -> tuple[list[lw.Tensor], list[lw.Tensor]]:
    """The inputs, and the stages: product, with bias, activated."""
    A = te.placeholder((n, k), "float32", name="A")
    B = te.placeholder((k, m), "float32", name="B")
    bias = te.placeholder((m,), "float32", name="bias")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((n, m), lambda i, j: C[i, j] + bias[j], name="D")
    Y = te.compute((n, m), lambda i, j: te.maximum(D[i, j], 0.0), name="Y")
    return [A, B, bias], [C, D, Y]


def tile_product(s: lw.Schedule, C: lw.Tensor, lanes: int) -> str:
    """Compute the product in register tiles of 4 × 2 vectors; gives the loop whose iterations are the tiles."""
    i, j = C.op.axis
    _, columns, rows, width = s[C].tile(i, j, 4, 2 * lanes)
    vectors, lane = s[C].split(width, factor=lanes)
    s[C].reorder(*C.op.reduce_axis, rows, vectors, lane)
    s[C].vectorize(lane)
    s[C].unroll(vectors)
    s[C].unroll(rows)
    return columns.id


def vectorize_rows(s: lw.Schedule, stage: lw.Tensor, lanes: int) -> str:
    """Compute a stage in vectors along its rows; gives the loop over the vectors."""
    vectors, lane = s[stage].split(stage.op.axis[1], factor=lanes)
    s[stage].vectorize(lane)
    return vectors.id


def schedules(n: int, k: int, m: int, lanes: int) -> dict[str, tuple[lw.Schedule, list[lw.Tensor]]]:
    """The layer stage by stage, and with the later stages in the tiles."""
    made: dict[str, tuple[lw.Schedule, list[lw.Tensor]]] = {}
    for name in ("stage by stage", "in the tiles"):
        inputs, (C, D, Y) = dense(n, k, m)
        s = lw.create_schedule(Y)
        tiles = tile_product(s, C, lanes)
        if name == "in the tiles":
            s[D].compute_inline()
            s[Y].reverse_compute_at(s[C], tiles)  # after the tile that an iteration finishes
            s[Y].unroll(Y.op.axis[0])
            s[Y].unroll(vectorize_rows(s, Y, lanes))
        else:
            vectorize_rows(s, D, lanes)
            vectorize_rows(s, Y, lanes)
        made[name] = s, [*inputs, Y]
    return made


def main(n: int = 500, k: int = 16, m: int = 1000) -> None:
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(shape, np.float32) for shape in ((n, k), (k, m), (m,)))
    lanes = lw.resolve_target("native").lanes("float32")
    calls: dict[str, Callable[[], None]] = {}
    for name, (s, args) in schedules(n, k, m, lanes).items():
        print(f"{name}:\n{s}\n")
        y = np.full((n, m), np.nan, np.float32)
        kernel = lw.build(s, args, name="dense")
        kernel(a, b, bias, y)
        np.testing.assert_allclose(y, np.maximum(a @ b + bias, 0), rtol=1e-4, atol=1e-4)
        calls[name] = kernel.bind(a, b, bias, y, threads=1)

    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(50):  # in turns, as the speed of a machine drifts
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    for name, times in seconds.items():
        print(f"{name:15} {1e3 * float(np.median(times)):6.3f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
