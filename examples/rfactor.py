"""Reductions as vector code by rfactor, a partial result a lane. Softmax takes its maximum and sum in one pass."""

import numpy as np

import loopwright as lw
from loopwright import te

rows, columns, lanes = 64, 1000, 16

X = te.placeholder((rows, columns), "float32", name="X")
k = te.reduce_axis((0, columns), name="k")
Sums = te.compute((rows,), lambda i: te.sum(X[i, k], axis=k), name="sums")

s = lw.create_schedule(Sums)
(row,) = Sums.op.axis
k_outer, k_inner = s[Sums].split(k, factor=lanes)
try:
    s[Sums].vectorize(k_inner)
except lw.ScheduleError as error:
    print("All lanes would add to one element:", error, sep="\n", end="\n\n")

partial = s.rfactor(Sums, k_inner, factor_axis=-1)
s[partial].compute_at(s[Sums], row)
i, lane = s[partial].op.axis
s[partial].reorder(i, *s[partial].op.reduce_axis, lane)
s[partial].vectorize(lane)
print("Each lane adds to its own; then the lanes are added:", s, sep="\n", end="\n\n")

x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32) * 3
sums = np.empty(rows, np.float32)
kernel = lw.build(s, [X, Sums], name="row_sums")
kernel(x, sums)
np.testing.assert_allclose(sums, x.sum(axis=1, dtype=np.float64), rtol=1e-4, atol=1e-4)
print("agrees with numpy;", kernel.time(x, sums), end="\n\n")

# Softmax reads its input twice, not three times: maximum and sum of exponentials are one reduction of two outputs.
Peak, Total = te.compute((rows,), lambda i: te.max_and_sum_exp(X[i, k], axis=k), name="norm")
Y = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - Peak[i]) / Total[i], name="Y")

s = lw.create_schedule(Y)
i, j = Y.op.axis
_, j_lane = s[Y].split(j, factor=lanes)
s[Y].vectorize(j_lane)
s[Y].parallel(i)
s[Total].compute_at(s[Y], i)
_, k_inner = s[Total].split(k, factor=lanes)
totals = s.rfactor(Total, k_inner, factor_axis=-1)
s[totals].compute_at(s[Y], i)
i, lane = s[totals].op.axis
s[totals].reorder(i, *s[totals].op.reduce_axis, lane)
s[totals].vectorize(lane)
print("Online softmax:", s, sep="\n", end="\n\n")

y = np.empty_like(x)
kernel = lw.build(s, [X, Y], name="online_softmax")
kernel(x, y)
e = np.exp(x - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7)
print("agrees with numpy;", kernel.time(x, y))
