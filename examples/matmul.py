"""Matrix multiplication: from a tensor expression to a native kernel, looking at each stage on the way."""

import numpy as np

import loopwright as lw
from loopwright import te

n, k, m = 120, 64, 60

A = te.placeholder((n, k), "float32", name="A")
B = te.placeholder((k, m), "float32", name="B")
r = te.reduce_axis((0, k), name="r")
C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")

s = lw.create_schedule(C)
print("The naive loop nest:", s, sep="\n", end="\n\n")

i, j = s[C].op.axis
jo, ji = s[C].split(j, factor=16)
s[C].vectorize(ji)
print("Split and vectorized:", s, sep="\n", end="\n\n")

f = lw.lower(s, [A, B, C], name="matmul")
print("Lowered:", f, sep="\n", end="\n\n")

kernel = lw.build(s, [A, B, C], target="native", name="matmul")
rng = np.random.default_rng(0)
a = rng.standard_normal((n, k), dtype=np.float32)
b = rng.standard_normal((k, m), dtype=np.float32)
c = np.empty((n, m), np.float32)
kernel(a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-4)

reference = np.empty_like(c)
lw.interpret(f)(a, b, reference)  # bounds- and race-checked, no LLVM
np.testing.assert_allclose(c, reference, rtol=1e-5, atol=1e-4)

print("LLVM IR as emitted has", len(kernel.llvm_ir.splitlines()), "lines; the assembly begins:")
print("\n".join(kernel.assembly.splitlines()[:20]))
print(kernel.time(a, b, c))
