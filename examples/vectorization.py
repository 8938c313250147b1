"""A vectorization experiment: one compute, vector widths 1 to 16, and the vector instructions that came out of each."""

import re
from collections import Counter

import numpy as np

import loopwright as lw
from loopwright import te

n = 4096
REPEATED_FLOPS = 2

X = te.placeholder((n,), "float32", name="X")
Y = te.placeholder((n,), "float32", name="Y")
Z = te.compute((n,), lambda i: X[i] * 3.0 + Y[i], name="Z")

rng = np.random.default_rng(0)
x, y = rng.standard_normal((2, n), dtype=np.float32)
z = np.empty_like(x)


def vector_instructions(assembly: str) -> Counter[str]:
    """How often each packed float instruction stands in the assembly (x86: names end in ps)."""
    names = (line.split()[0] for line in assembly.splitlines() if line.startswith("\t") and line.split())
    return Counter(name for name in names if re.fullmatch(r"v?\w+ps", name))


print(f"{'width':>5} {'time':>10} {'GFLOP/s':>8}  packed instructions")
for width in (1, 2, 4, 8, 16):
    s = lw.create_schedule(Z)
    (i,) = s[Z].op.axis
    outer, inner = s[Z].split(i, factor=width)
    if width > 1:
        s[Z].vectorize(inner)
    kernel = lw.build(s, [X, Y, Z], name=f"saxpy_{width}")
    kernel(x, y, z)
    np.testing.assert_allclose(z, x * np.float32(3) + y, rtol=1e-5, atol=1e-6)
    seconds = kernel.time(x, y, z).median
    found = ", ".join(f"{name} ×{count}" for name, count in sorted(vector_instructions(kernel.assembly).items()))
    print(f"{width:5} {seconds * 1e6:8.2f}µs {REPEATED_FLOPS * n / seconds / 1e9:8.1f}  {found or 'none: scalar code'}")
