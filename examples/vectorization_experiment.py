"""A vectorization experiment to look at: schedules of a matrix product, and of a softmax, side by side in a page each.

Run it, and open the pages: `python examples/vectorization_experiment.py FOLDER`. The matrix product is also what
`OPENBLAS_NUM_THREADS=1 loopwright explore examples/vectorization_experiment.py --open` shows: that reads the globals
`schedules` and `peers`. NumPy is loaded before this file then, and reads how many threads it may use when it is.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ |= {"LOOPWRIGHT_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each on one thread

import numpy as np
from numpy.typing import NDArray

import loopwright as lw
from loopwright import te

Floats = NDArray[np.float32]
TARGET = lw.resolve_target("native")
LANES, REGISTERS = TARGET.lanes("float32"), TARGET.vector_registers


def product(n: int = 384) -> tuple[dict[str, lw.Schedule], list[te.Tensor]]:
    """C[i, j] = Σ A[i, r] · B[r, j]: as it is defined, in tiles that fit a cache, in vectors, in registers."""
    A = te.placeholder((n, n), "float32", name="A")
    B = te.placeholder((n, n), "float32", name="B")
    r = te.reduce_axis((0, n), name="r")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    i, j = C.op.axis
    naive = lw.create_schedule(C)

    tiled = lw.create_schedule(C)
    i_tile, j_tile, i_inner, j_inner = tiled[C].tile(i, j, 32, 64)
    tiled[C].reorder(i_tile, j_tile, r, i_inner, j_inner)

    vectors = tiled.copy()
    _, lane = vectors[C].split(j_inner, factor=LANES)
    vectors[C].vectorize(lane)

    wide = REGISTERS // 8  # vectors of B at a time; the tile of C leaves registers for these, and for one element of A
    high = (REGISTERS - wide - 2) // wide
    registers = lw.create_schedule(C)
    i_tile, j_tile, i_inner, j_inner = registers[C].tile(i, j, high, wide * LANES, tail="peel")
    registers[C].reorder(i_tile, j_tile, r, i_inner, j_inner)
    vector, lane = registers[C].split(j_inner, factor=LANES)
    registers[C].unroll(i_inner)
    registers[C].unroll(vector)
    registers[C].vectorize(lane)
    schedules = {"naive": naive, "tiled": tiled, "tiled, vectors": vectors, "register tile": registers}
    return schedules, [A, B, C]


def softmax(rows: int = 64, columns: int = 1000) -> tuple[dict[str, lw.Schedule], list[te.Tensor]]:
    """exp(x - max) / Σ exp(x - max) of each row: stage by stage, row by row, in vectors, sums in lanes too."""
    X = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis((0, columns), name="k")
    Peak = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="peak")
    E = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - Peak[i]), name="e")
    q = te.reduce_axis((0, columns), name="q")
    Total = te.compute((rows,), lambda i: te.sum(E[i, q], axis=q), name="total")
    Y = te.compute((rows, columns), lambda i, j: E[i, j] / Total[i], name="Y")
    naive = lw.create_schedule(Y)

    by_row = lw.create_schedule(Y)
    for stage in (Total, E, Peak):
        by_row[stage].compute_at(by_row[Y], Y.op.axis[0])

    vectors = by_row.copy()
    for stage in (Y, E):
        _, lane = vectors[stage].split(stage.op.axis[1], factor=LANES)
        vectors[stage].vectorize(lane)

    lanes = vectors.copy()
    for stage, axis in ((Peak, k), (Total, q)):
        _, lane = lanes[stage].split(axis, factor=LANES)
        partial = lanes.rfactor(stage, lane, factor_axis=-1)
        lanes[partial].compute_at(lanes[Y], Y.op.axis[0])
        row, partial_sum = partial.op.axis
        lanes[partial].reorder(row, *partial.op.reduce_axis, partial_sum)
        lanes[partial].vectorize(partial_sum)
    return {"naive": naive, "row by row": by_row, "vectors": vectors, "sums in lanes": lanes}, [X, Y]


def numpy_softmax(x: Floats) -> Floats:
    e: Floats = np.exp(x - x.max(axis=1, keepdims=True))
    total: Floats = e.sum(axis=1, keepdims=True)
    return e / total


def check(schedules: dict[str, lw.Schedule], args: list[te.Tensor], in_numpy: Callable[..., Floats]) -> None:
    """All schedules compute what numpy does."""
    rng = np.random.default_rng(0)
    *inputs, output = (rng.standard_normal(tensor.shape, np.float32) for tensor in args)
    for schedule in schedules.values():
        lw.build(schedule, args)(*inputs, output)
        np.testing.assert_allclose(output, in_numpy(*inputs), rtol=1e-4, atol=1e-3)


schedules, args = product()
peers = {"numpy": np.matmul}

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    check(schedules, args, np.matmul)
    print(lw.explore(schedules, folder / "product.html", name="product", peers=peers))
    schedules, args = softmax()
    check(schedules, args, numpy_softmax)
    print(lw.explore(schedules, folder / "softmax.html", name="softmax", peers={"numpy": numpy_softmax}))
