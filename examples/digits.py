"""Handwritten digits by nearest neighbour, leave-one-out: a distance matmul and an argmin, fused tile by tile.

The data are the 1,797 images of 8×8 pixels that ship with scikit-learn. For each image the nearest other one is found
by squared Euclidean distance |x|² + |y|² - 2x·y; it predicts the digit. All pairs are compared: 1,797² × 64 products.
`python examples/digits.py FOLDER` says where the page goes that shows how the schedule becomes machine code.
"""

import numpy as np
from support.peers import Numbers, load_digits, nearest_neighbours
from support.showing import compare_times, heading, hottest_loop, output_folder, short, show_code

import loopwright as lw
from loopwright import te

folder = output_folder()
pixels, digits = load_digits()
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

naive = lw.create_schedule([Nearest, Neighbour])
s = naive.copy()
s["distance"].compute_inline()
s["nearest"].split("q", columns)
s["nearest"].split("c", rows)
s["nearest"].reorder("q_outer", "c_outer", "c_inner", "q_inner")
s["nearest"].vectorize("q_inner")
s["nearest"].unroll("c_inner")
s["nearest"].parallel("q_outer")
s["dot"].compute_at("nearest", "c_outer")
s["dot"].split("q", columns // 2)
s["dot"].reorder("g", "c", "q_outer", "q_inner")
s["dot"].vectorize("q_inner")
s["dot"].unroll("q_outer")
s["dot"].unroll("c")
s["panels"].parallel("p")

kernel = lw.build(s, [X, Nearest, Neighbour], target=target, name="nearest_digit")

heading("Handwritten digits by nearest neighbour: a kernel, and how it is computed")
show_code("The products of all pairs, as they are defined", str(naive)[str(naive).index("for c in") :], 5)
show_code("Tile by tile, as scheduled", str(s)[str(s).index("    for c_outer in") :], 18)
show_code(f"The innermost loop in machine code, for {target.cpu}", hottest_loop(kernel.assembly), 10)

# Run and compare, on one thread each.

distance = np.empty(n, np.float32)
neighbour = np.empty(n, np.int32)
norms, transposed = (pixels**2).sum(axis=1), np.ascontiguousarray(pixels.T)


def with_numpy() -> Numbers:
    distances = norms[:, None] + norms[None, :] - 2 * (pixels @ transposed)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances.argmin(axis=1))


kernel(pixels, distance, neighbour)
assert np.array_equal(neighbour, with_numpy()), "numpy finds other neighbours"
found = pixels[nearest_neighbours(pixels)]  # of several that are as near, scikit-learn may name another
assert np.array_equal(distance, np.sum((pixels - found) ** 2, axis=1)), "scikit-learn finds nearer ones, or farther"
right = np.sum(digits[neighbour] == digits)
print(f"{right} of {n} digits are recognised ({right / n:.2%}); numpy and scikit-learn agree.")
print("Matmul, distances and argmin on one thread each; the rate is that of the matmul:")
compare_times(
    {
        "loopwright": kernel.bind(pixels, distance, neighbour, threads=1),
        "numpy": with_numpy,
        "scikit-learn": lambda: nearest_neighbours(pixels),
    },
    operations=2 * n * n * features,
)

page = lw.explore({"naive": naive, "tiled": s}, folder / "digits.html", name="nearest_digit")
print(f"\n{short(page)} shows in a browser how both schedules become machine code.")
