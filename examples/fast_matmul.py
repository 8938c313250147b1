"""A matrix multiplication near the peak of the machine, in public primitives only.

B is packed into panels as wide as a register tile, a block of k at a time; a few rows of A are copied next to each
other; and a tile of C stays in registers while the block runs. The fraction of the peak that is printed is of the fma
peak measured in the same run, by a kernel that does nothing else.
"""

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

import loopwright as lw
from loopwright import te


def matmul_schedule(n: int, k: int, m: int, target: lw.Target) -> tuple[lw.Schedule, list[lw.Tensor]]:
    """C[n, m] = A[n, k] · B[k, m]. Tile sizes come from the target's registers and caches."""
    lanes, registers = target.lanes("float32"), target.vector_registers
    vectors = registers // 8  # width of a register tile; each broadcast element of A meets as many vectors of B
    rows = (registers - vectors - 2) // vectors
    width = vectors * lanes
    block = max(1, min(k, target.l1_bytes // (width * 4)))  # of k: a panel of B, so long, is as large as L1

    A = te.placeholder((n, k), "float32", name="A")
    B = te.placeholder((k, m), "float32", name="B")
    panels = te.compute(
        (-(-m // width), k, width),
        lambda p, q, j: te.if_then_else(p * width + j < m, B[q, p * width + j], 0.0),
        name="panels",
    )
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * panels[j // width, r, j % width], axis=r), name="C")

    s = lw.create_schedule(C)
    tile_of_a = s.cache_read(A, "local", [C])
    i, j = s[C].op.axis
    io, jo, ii, ji = s[C].tile(i, j, rows, width)
    ro, ri = s[C].split(r, factor=block)
    jv, jl = s[C].split(ji, factor=lanes)
    s[C].reorder(ro, io, jo, ri, ii, jv, jl)
    s[C].vectorize(jl)
    s[C].unroll(jv)
    s[C].unroll(ii)
    s[C].parallel(io)
    s[tile_of_a].compute_at(s[C], io)
    _, lane = s[tile_of_a].split(s[tile_of_a].loops[1], factor=lanes)
    s[tile_of_a].vectorize(lane)
    p, _, c = s[panels].op.axis
    _, lane = s[panels].split(c, factor=lanes)
    s[panels].vectorize(lane)
    s[panels].parallel(p)
    s[panels].compute_at(s[C], ro)
    return s, [A, B, C]


def peak_kernel(target: lw.Target, rounds: int = 20_000, threads: int = 1) -> tuple[lw.Kernel, int]:
    """A kernel of nothing but independent fmas in registers, and how many floating-point operations it does."""
    lanes, sums = target.lanes("float32"), target.vector_registers - 4
    X = te.placeholder((lanes,), "float32", name="X")
    r = te.reduce_axis((0, rounds), name="r")
    S = te.compute((threads, sums * lanes), lambda t, i: te.sum(X[i % lanes] * X[i % lanes], axis=r), name="S")
    s = lw.create_schedule(S)
    t, i = s[S].op.axis
    io, ii = s[S].split(i, factor=lanes)
    s[S].reorder(t, r, io, ii)
    s[S].vectorize(ii)
    s[S].unroll(io)
    s[S].parallel(t)
    return lw.build(s, [X, S], target=target, name="fma_peak"), 2 * rounds * threads * sums * lanes


def alternating_medians(calls: Sequence[Callable[[], None]], rounds: int = 100) -> list[float]:
    """Seconds that each call takes: the median over rounds in which they take turns, as the machine's speed drifts."""
    seconds = np.empty((rounds, len(calls)))
    for row in seconds:
        for column, call in enumerate(calls):
            start = time.perf_counter()
            call()
            row[column] = time.perf_counter() - start
    return [float(median) for median in np.median(seconds, axis=0)]


def main(n: int = 512) -> None:
    target = lw.resolve_target("native")
    s, args = matmul_schedule(n, n, n, target)
    print(f"{len(s.trace)} steps:", *s.trace, sep="\n  ", end="\n\n")
    kernel = lw.build(s, args, target=target, name="matmul")

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, n, n), dtype=np.float32)
    c = np.empty((n, n), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-3)

    peak, operations = peak_kernel(target)
    x = np.zeros(target.lanes("float32"), np.float32)
    sums = np.empty(peak.func.outputs[0].shape, np.float32)
    one, two = (kernel.bind(a, b, c, threads=threads) for threads in (1, 2))
    seconds = alternating_medians([peak.bind(x, sums, threads=1), one, one])
    peak_rate, rate = operations / seconds[0] / 1e9, 2 * n**3 / seconds[2] / 1e9
    both = 2 * n**3 / alternating_medians([two, two])[1] / 1e9
    print(f"fma peak of one core   {peak_rate:6.1f} GFLOP/s")
    print(f"matmul {n}³, 1 thread  {rate:6.1f} GFLOP/s: {rate / peak_rate:.0%} of the peak")
    print(f"matmul {n}³, 2 threads {both:6.1f} GFLOP/s: {both / rate:.2f} times one thread")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
