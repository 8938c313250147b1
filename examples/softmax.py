"""Softmax over rows: two reductions and an elementwise stage, all computed row by row while the row is in cache."""

import numpy as np

import loopwright as lw
from loopwright import te

rows, columns = 64, 1000

X = te.placeholder((rows, columns), "float32", name="X")
k = te.reduce_axis((0, columns), name="k")
Peak = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="peak")
E = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - Peak[i]), name="e")
q = te.reduce_axis((0, columns), name="q")
Total = te.compute((rows,), lambda i: te.sum(E[i, q], axis=q), name="total")
Y = te.compute((rows, columns), lambda i, j: E[i, j] / Total[i], name="Y")

s = lw.create_schedule(Y)
i, j = s[Y].op.axis
outer, inner = s[Y].split(j, factor=16)
s[Y].vectorize(inner)
s[Y].parallel(i)
s[Total].compute_at(s[Y], i)
s[E].compute_at(s[Y], i)  # once all that reads it is inside i
s[Peak].compute_at(s[Y], i)
_, lanes = s[E].split(s[E].op.axis[1], factor=16)
s[E].vectorize(lanes)
print(s)

kernel = lw.build(s, [X, Y], name="softmax")
x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32) * 3
y = np.empty_like(x)
kernel(x, y)
e = np.exp(x - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7)
print("\nagrees with numpy;", kernel.time(x, y))
