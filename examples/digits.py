"""Handwritten digits by nearest neighbour, leave-one-out: a distance matmul and an argmin, fused tile by tile.

The data are the 1,797 images of 8×8 pixels that ship with scikit-learn. For each image the nearest other one is found
by squared Euclidean distance |x|² + |y|² - 2x·y; it predicts the digit. All pairs are compared: 1,797² × 64 products.
"""

import re
import time

import numpy as np
from sklearn.datasets import load_digits

import loopwright as lw
from loopwright import te

pixels, digits = load_digits(return_X_y=True)
pixels = pixels.astype(np.float32)
n, features = pixels.shape

target = lw.resolve_target("native")
columns = 2 * target.lanes("float32")  # width of a tile: two vector registers of queries
rows = 12 if target.vector_registers == 32 else 6  # height: together they fill the registers with sums

# What is computed.

X = te.placeholder((n, features), "float32", name="X")
f = te.reduce_axis((0, features), name="f")
Norm = te.compute((n,), lambda i: te.sum(X[i, f] * X[i, f], axis=f), name="norm")
Panels = te.compute(
    (-(-n // columns), features, columns),
    lambda p, f, q: te.if_then_else(p * columns + q < n, X[p * columns + q, f], 0.0),
    name="panels",
)
g = te.reduce_axis((0, features), name="g")
Dot = te.compute((n, n), lambda c, q: te.sum(X[c, g] * Panels[q // columns, g, q % columns], axis=g), name="dot")
Distance = te.compute(
    (n, n),
    lambda c, q: te.select(c == q, float("inf"), Norm[c] + Norm[q] - 2.0 * Dot[c, q]),
    name="distance",
)
c = te.reduce_axis((0, n), name="c")
Nearest, Neighbour = te.compute((n,), lambda q: te.argmin(Distance[c, q], axis=c, index_dtype="int32"), name="nearest")

# How it is computed.

s = lw.create_schedule([Nearest, Neighbour])
print("=== The loop nest before scheduling ===", s, sep="\n", end="\n\n")

s[Distance].compute_inline()
(q,) = s[Nearest].op.axis
panel, query = s[Nearest].split(q, factor=columns)
c_outer, c_inner = s[Nearest].split(c, factor=rows)
s[Nearest].reorder(panel, c_outer, c_inner, query)
s[Nearest].vectorize(query)
s[Nearest].unroll(c_inner)
s[Nearest].parallel(panel)
s[Dot].compute_at(s[Nearest], c_outer)
c_dot, q_dot = s[Dot].op.axis
q_outer, lanes = s[Dot].split(q_dot, factor=columns // 2)
s[Dot].reorder(g, c_dot, q_outer, lanes)
s[Dot].vectorize(lanes)
s[Dot].unroll(q_outer)
s[Dot].unroll(c_dot)
p, _, _ = s[Panels].op.axis
s[Panels].parallel(p)
print("=== The loop nest after scheduling ===", s, sep="\n", end="\n\n")

# Compile, run, compare.

start = time.perf_counter()
kernel = lw.build(s, [X, Nearest, Neighbour], target=target, name="nearest_digit")
print(f"compiled in {time.perf_counter() - start:.2f} s for {target.cpu}\n")

distance = np.empty(n, np.float32)
neighbour = np.empty(n, np.int32)
kernel(pixels, distance, neighbour)
accuracy = np.mean(digits[neighbour] == digits)


def with_numpy(x: np.ndarray, norms: np.ndarray, transposed: np.ndarray) -> np.ndarray:
    distances = norms[:, None] + norms[None, :] - 2 * (x @ transposed)
    np.fill_diagonal(distances, np.inf)
    return distances.argmin(axis=0)


def median_seconds(run: object, repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


norms, transposed = (pixels**2).sum(axis=1), np.ascontiguousarray(pixels.T)
expected = with_numpy(pixels, norms, transposed)
assert np.array_equal(neighbour, expected), "numpy finds other neighbours"
flops = 2 * n * n * features


def report(who: str, seconds: float) -> None:
    print(f"{who:22} {seconds * 1e3:7.2f} ms {flops / seconds / 1e9:7.1f} GFLOP/s")


for threads in (1, 2):
    report(
        f"loopwright, {threads} thread(s)", median_seconds(kernel.bind(pixels, distance, neighbour, threads=threads))
    )
report("numpy, its own threads", median_seconds(lambda: with_numpy(pixels, norms, transposed)))
print("(both: matmul, distances and argmin; the floating-point operations of the matmul are counted)\n")


def hottest_block(text: str, label: str, product: str, limit: int = 24) -> str:
    """The basic block with the most products in a listing, shortened."""
    blocks = re.split(rf"(?m)^(?={label})", text)
    lines = max(blocks, key=lambda block: block.count(product)).rstrip().splitlines()
    lines = [line for line in lines if " = phi " not in line]
    shown = [line[:110] for line in lines[:limit]]
    return "\n".join([*shown, f"    … {len(lines) - limit} more lines"] if len(lines) > limit else shown)


print("=== LLVM IR of the hot loop (kernel.llvm_ir_optimized has it all) ===")
print(hottest_block(kernel.llvm_ir_optimized, r"[\w.$-]+:", "llvm.fma"), end="\n\n")
print("=== Its assembly (kernel.assembly has it all) ===")
print(hottest_block(kernel.assembly, r"\.L\w+:", "fma"), end="\n\n")
print(f"accuracy {accuracy:.4f} ({np.sum(digits[neighbour] == digits)} of {n} digits); numpy confirms every neighbour")
