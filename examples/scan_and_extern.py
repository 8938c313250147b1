"""A recurrent cell (te.scan), a sparse product over its states, and a binary search written by hand (te.extern)."""

import numpy as np

import loopwright as lw
from loopwright import te

T, width = te.var("T"), 64

# A recurrent network: h[t] = tanh(W h[t-1] + x[t]). The state stands for the result while it grows.
X = te.placeholder((T, width), name="X")
W = te.placeholder((width, width), name="W")
h = te.scan_state((T, width), name="h")
first = te.compute((1, width), lambda t, i: te.tanh(X[t, i]), name="first")
k = te.reduce_axis((0, width), name="k")
product = te.compute((T, width), lambda t, i: te.sum(W[k, i] * h[t - 1, k], axis=k), name="product")
step = te.compute((T, width), lambda t, i: te.tanh(product[t, i] + X[t, i]), name="step")
H = te.scan(first, step, h, inputs=[X, W], name="H")

s = lw.create_schedule(H)
t, i = s[product].op.axis
blocks, lanes = s[product].split(i, factor=16)
s[product].reorder(t, blocks, k, lanes)
s[product].vectorize(lanes)
s[step].vectorize(s[step].split(s[step].op.axis[1], factor=16)[1])
print(s)  # the time loop is serial; all loops inside of it are scheduled as usual

rng = np.random.default_rng(0)
x, w = rng.standard_normal((9, width), np.float32), rng.standard_normal((width, width), np.float32) / 8
states = np.empty_like(x)
lw.build(s, [X, W, H])(x, w, states)
expected = np.tanh(x)
for now in range(1, len(x)):
    expected[now] = np.tanh(expected[now - 1] @ w + x[now])
np.testing.assert_allclose(states, expected, rtol=1e-4, atol=1e-5)
print("\nthe recurrent cell agrees with numpy")

# A sparse matrix times a dense one: row r of the matrix has as many terms as it has elements.
rows, elements, columns = te.var("rows"), te.var("elements"), te.var("columns")
begins = te.placeholder((rows + 1,), "int32", name="begins")
column = te.placeholder((elements,), "int32", name="column")
value = te.placeholder((elements,), name="value")
B = te.placeholder((columns, 32), name="B")


def element(r: te.Axis, j: te.Axis) -> te.Expr:
    e = te.reduce_axis((begins[r], begins[r + 1]), name="e")
    return te.sum(value[e] * B[column[e], j], axis=e)


C = te.compute((rows, 32), element, name="C")
s = lw.create_schedule(C)
r, j = C.op.axis
blocks, lanes = s[C].split(j, factor=16)
s[C].reorder(r, blocks, *C.op.reduce_axis, lanes)
s[C].vectorize(lanes)
s[C].parallel(r)
print(f"\n{s}")

dense = rng.standard_normal((20, 30), np.float32) * (rng.random((20, 30)) < 0.2)
at, columns_of = np.nonzero(dense)
row_begins = np.searchsorted(at, np.arange(21)).astype(np.int32)
b, c = rng.standard_normal((30, 32), np.float32), np.empty((20, 32), np.float32)
lw.build(s, [begins, column, value, B, C])(row_begins, columns_of.astype(np.int32), dense[at, columns_of], b, c)
np.testing.assert_allclose(c, dense @ b, rtol=1e-4, atol=1e-5)
print("\nthe sparse product agrees with numpy")


# Where queries stand among sorted values: each takes as many steps as it takes.
def binary_search(ins: list[te.Buffer], outs: list[te.Buffer]) -> te.Stmt:
    ib = te.IRBuilder()
    values, queries, places = map(ib.buffer_ptr, (*ins, *outs))
    with ib.for_range(0, queries.shape[0], name="q", kind="parallel") as q:
        low, high = ib.allocate("index", (), "low"), ib.allocate("index", (), "high")
        low[()] = 0
        high[()] = values.shape[0]
        with ib.while_loop(low[()] < high[()]):
            middle = ib.let("middle", (low[()] + high[()]) // 2)
            with ib.if_scope(values[middle] < queries[q]):
                low[()] = middle + 1
            with ib.else_scope():
                high[()] = middle
        places[q] = te.cast(low[()], "int64")
    return ib.get()


n, m = te.var("n"), te.var("m")
V, Q = te.placeholder((n,), name="V"), te.placeholder((m,), name="Q")
P = te.extern((m,), [V, Q], binary_search, name="P", dtype="int64")
s = lw.create_schedule(P)
print(f"\n{s}")

v, q = np.sort(rng.random(1000, np.float32)), rng.random(50, np.float32)
places = np.empty(50, np.int64)
lw.build(s, [V, Q, P])(v, q, places)
np.testing.assert_array_equal(places, np.searchsorted(v, q))
print("\nthe binary search agrees with numpy")
