"""An elementwise chain: three computes become one loop by inlining, so nothing goes to memory in between."""

import numpy as np

import loopwright as lw
from loopwright import te

n = te.var("n")  # a symbolic dimension: one kernel serves all sizes
X = te.placeholder((n,), "float32", name="X")
Scaled = te.compute((n,), lambda i: X[i] * 0.5 + 1.0, name="scaled")
Activated = te.compute((n,), lambda i: te.tanh(Scaled[i]), name="activated")
Y = te.compute((n,), lambda i: te.maximum(Activated[i], 0.25) * X[i], name="Y")

s = lw.create_schedule(Y)
print("Three loops, two temporaries:", s, sep="\n", end="\n\n")

s[Scaled].compute_inline()
s[Activated].compute_inline()
(i,) = s[Y].op.axis
outer, inner = s[Y].split(i, factor=16)
s[Y].vectorize(inner)
s[Y].parallel(outer)
print("One:", s, sep="\n", end="\n\n")

kernel = lw.build(s, [X, Y], name="chain")
rng = np.random.default_rng(0)
for size in (1, 7, 16, 1000, 4097):
    x = rng.standard_normal(size, dtype=np.float32)
    y = np.empty_like(x)
    kernel(x, y)
    expected = np.maximum(np.tanh(x * np.float32(0.5) + np.float32(1)), np.float32(0.25)) * x
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)
    print(f"n = {size:4}: agrees with numpy")
