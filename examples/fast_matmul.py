"""A matrix multiplication near the peak of the machine, in public primitives only.

B is packed into panels as wide as a register tile; a tile of C stays in registers while a block of k runs. The fraction of
the peak that is printed is of the fma peak measured in the same run, by a kernel that does nothing else.
"""

import sys

import numpy as np

import loopwright as lw
from loopwright import te


def matmul_schedule(n: int, k: int, m: int, target: lw.Target) -> tuple[lw.Schedule, list[lw.Tensor]]:
    """C[n, m] = A[n, k] · B[k, m]. Tile sizes come from the target's registers and caches."""
    lanes, registers = target.lanes("float32"), target.vector_registers
    width = 2 * lanes  # two vectors of B are used by each of `rows` elements of A: 2 * rows sums in registers
    rows = (registers - 4) // 2
    block = max(1, min(k, target.l1_bytes // 2 // (width * 4)))  # a block of a panel of B takes half of L1

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
    p, q, c = s[panels].op.axis
    _, lane = s[panels].split(c, factor=lanes)
    s[panels].vectorize(lane)
    s[panels].parallel(p)
    return s, [A, B, C]


def peak_kernel(target: lw.Target, rounds: int = 100_000) -> tuple[lw.Kernel, int]:
    """A kernel of nothing but independent fmas in registers, and how many floating-point operations it does."""
    lanes, sums = target.lanes("float32"), target.vector_registers - 4
    X = te.placeholder((lanes,), "float32", name="X")
    r = te.reduce_axis((0, rounds), name="r")
    S = te.compute((sums * lanes,), lambda i: te.sum(X[i % lanes] * X[i % lanes], axis=r), name="S")
    s = lw.create_schedule(S)
    io, ii = s[S].split(S.op.axis[0], factor=lanes)
    s[S].reorder(r, io, ii)
    s[S].vectorize(ii)
    s[S].unroll(io)
    return lw.build(s, [X, S], target=target, name="fma_peak"), 2 * rounds * sums * lanes


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
    lanes = target.lanes("float32")
    x, sums = np.zeros(lanes, np.float32), np.empty((target.vector_registers - 4) * lanes, np.float32)
    peak_rate = operations / peak.time(x, sums).min / 1e9
    rate = {threads: 2 * n**3 / kernel.time(a, b, c, threads=threads).median / 1e9 for threads in (1, 2)}
    print(f"fma peak of one core {peak_rate:7.1f} GFLOP/s")
    print(f"matmul {n}³, 1 thread {rate[1]:6.1f} GFLOP/s: {rate[1] / peak_rate:.0%} of the peak")
    print(f"matmul {n}³, 2 threads{rate[2]:6.1f} GFLOP/s: {rate[2] / rate[1]:.2f} times one thread")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
