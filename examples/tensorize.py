"""Intrinsics: a microkernel written by hand in vectors takes the place of loops that compute the same."""

from functools import partial

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir.expr import Ramp
from loopwright.ir.intrinsics import call
from loopwright.ir.makers import as_index, broadcast_to

ROWS, COLUMNS = 4, 16

# What it does: a tile of C gets the product of a column of A and a row of B added to it.
a = te.placeholder((ROWS, 1), "float32", name="a")
b = te.placeholder((1, COLUMNS), "float32", name="b")
k = te.reduce_axis((0, 1), name="k")
c = te.compute((ROWS, COLUMNS), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")


def update(a_buffer: te.Buffer, b_buffer: te.Buffer, c_buffer: te.Buffer, rows: int = ROWS) -> te.Stmt:
    """How it does that: one vector a row."""
    ib = te.IRBuilder()
    a_tile, b_tile, c_tile = (ib.buffer_ptr(buffer) for buffer in (a_buffer, b_buffer, c_buffer))
    lanes = Ramp(as_index(0), as_index(1), COLUMNS)
    for i in range(rows):
        c_tile[i, lanes] = fma(a_tile[i, 0], b_tile[0, lanes], c_tile[i, lanes])
    return ib.get()


def fma(scalar: te.Expr, row: te.Expr, total: te.Expr) -> te.Expr:
    return call("fma", broadcast_to(scalar, COLUMNS), row, total)


lw.declare_intrinsic("outer_product", c, update)

# An intrinsic that forgets a row is found out when it is declared.
try:
    lw.declare_intrinsic("forgetful", c, partial(update, rows=ROWS - 1))
except lw.ScheduleError as error:
    print(str(error).splitlines()[0], end="\n\n")

n = 256
A = te.placeholder((n, n), "float32", name="A")
B = te.placeholder((n, n), "float32", name="B")
r = te.reduce_axis((0, n), name="r")
C = te.compute((n, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")

s = lw.create_schedule(C)
i, j = C.op.axis
i_outer, j_outer, i_inner, j_inner = s[C].tile(i, j, ROWS, COLUMNS)
try:
    s[C].tensorize(i_inner, "outer_product")
except lw.ScheduleError as error:
    print(*str(error).splitlines()[:3], sep="\n", end="\n\n")

s[C].reorder(i_outer, j_outer, r, i_inner, j_inner)
s[C].tensorize(i_inner, "outer_product")
print(s, end="\n\n")

rng = np.random.default_rng(0)
x, y = rng.standard_normal((2, n, n), dtype=np.float32)
z = np.empty((n, n), np.float32)
kernel = lw.build(s, [A, B, C], name="tensorized_matmul")
kernel(x, y, z)
np.testing.assert_allclose(z, x @ y, rtol=1e-3, atol=1e-3)
print("agrees with numpy;", kernel.time(x, y, z))
