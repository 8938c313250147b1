"""Intrinsics: what is declared is compared with its code, and takes the place of just those loops that compute it."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.constants import const
from loopwright.ir.expr import Load, Ramp
from loopwright.ir.makers import as_index, broadcast_to, cast
from loopwright.ir.stmt import Store, seq
from loopwright.ir.structural import structural_equal


def at(*indices):
    return tuple(as_index(i) for i in indices)


def lanes(count):
    return Ramp(as_index(0), as_index(1), count)


def declare_dot(reset=True):
    """Four products of int8, summed in int32."""
    a, b = te.placeholder((4,), "int8", name="a"), te.placeholder((4,), "int8", name="b")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((), lambda: te.sum(te.cast(a[k], "int32") * te.cast(b[k], "int32"), axis=k), name="c")

    def update(a, b, c):
        total = Load(c, ())
        for i in range(4):
            total = total + cast("int32", Load(a, at(i))) * cast("int32", Load(b, at(i)))
        return Store(c, (), total)

    zero = (lambda c: Store(c, (), const(0, "int32"))) if reset else None
    return lw.declare_intrinsic("dot4", c, update, zero, override=True)


def declare_outer(rows=4, columns=16, reset=False):
    """The outer product of a column and a row, added to a tile: one vector a row."""
    a, b = te.placeholder((rows, 1), name="a"), te.placeholder((1, columns), name="b")
    k = te.reduce_axis((0, 1), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")

    def update(a, b, c):
        row = Load(b, (as_index(0), lanes(columns)))
        return seq(
            *(
                Store(
                    c,
                    (as_index(i), lanes(columns)),
                    Load(c, (as_index(i), lanes(columns))) + broadcast_to(Load(a, at(i, 0)), columns) * row,
                )
                for i in range(rows)
            )
        )

    def zero(c):
        return seq(*(Store(c, (as_index(i), lanes(columns)), const(0, f"float32x{columns}")) for i in range(rows)))

    return lw.declare_intrinsic("outer", c, update, zero if reset else None, override=True)


def declare_add(size=4):
    """A vector plus one."""
    x = te.placeholder((size,), name="x")
    y = te.compute((size,), lambda i: x[i] + 1.0, name="y")
    return lw.declare_intrinsic(
        "add", y, lambda x, y: Store(y, (lanes(size),), Load(x, (lanes(size),)) + 1.0), override=True
    )


def matmul(n, k, m, kind="float32", to=None):
    A, B = te.placeholder((n, k), kind, name="A"), te.placeholder((k, m), kind, name="B")
    r = te.reduce_axis((0, k), name="r")
    to = to or kind
    C = te.compute((n, m), lambda i, j: te.sum(te.cast(A[i, r], to) * te.cast(B[r, j], to), axis=r), name="C")
    return A, B, C


def assert_right(s, args, reference, *shapes, rtol=1e-5):
    """The interpreter and native code give what numpy gives; ``shapes`` are those of the inputs."""
    runs = lw.interpret(lw.lower(s, args)), lw.build(s, args)
    for inputs in shapes:
        rng = np.random.default_rng(len(inputs))
        kinds = [t.dtype.to_numpy() for t in args[: len(inputs)]]
        arrays = [
            rng.integers(-128, 128, shape).astype(kind)
            if kind != np.float32
            else rng.standard_normal(shape, np.float32)
            for shape, kind in zip(inputs, kinds, strict=True)
        ]
        expected = reference(*arrays)
        for run in runs:
            out = np.full(expected.shape, 77, args[-1].dtype.to_numpy())
            run(*arrays, out)
            np.testing.assert_allclose(out, expected, rtol=rtol, atol=rtol)


def wide_matmul(a, b):
    return a.astype(np.int32) @ b.astype(np.int32)


def test_tensorize_before_and_after():
    declare_add()
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = lw.create_schedule(B)
    _, inner = s[B].split(B.op.axis[0], factor=4)
    assert str(s) == (
        "for i_outer in range(2):\n"
        "    for i_inner in range(4):\n"
        "        B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner] + 1.0"
    )
    s[B].tensorize(inner, "add")
    assert str(s) == (
        "for i_outer in range(2):\n    B[ramp(i_outer * 4, 1, 4)] = A[ramp(i_outer * 4, 1, 4)] + broadcast(1.0, 4)"
    )
    assert str(s.trace[-1]) == 's["B"].tensorize("B#2", "add")'
    assert_right(s, [A, B], lambda a: a + np.float32(1), [(8,)])


def test_a_tile_that_is_not_full_runs_as_the_loops_that_were_there():
    declare_add()
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
    s = lw.create_schedule(B)
    s[B].tensorize(s[B].split(B.op.axis[0], factor=4)[1], "add")
    assert str(s) == (
        "for i_outer in range(3):\n"
        "    if i_outer <= 1:\n"
        "        B[ramp(i_outer * 4, 1, 4)] = A[ramp(i_outer * 4, 1, 4)] + broadcast(1.0, 4)\n"
        "    else:\n"
        "        for i_inner in range(4):\n"
        "            if i_inner < 2:\n"
        "                B[i_inner + 8] = A[i_inner + 8] + 1.0"
    )
    assert_right(s, [A, B], lambda a: a + np.float32(1), [(10,)])


@pytest.mark.parametrize("tail", ["guard", "mask", "peel", "shift"])
@pytest.mark.parametrize("size", [None, 61, 7, 3])
def test_tiles_with_any_tail(tail, size):
    declare_outer(4, 8, reset=True)
    n = te.var("n") if size is None else size
    A, B, C = matmul(n, 5, n)
    s = lw.create_schedule(C)
    i, j = C.op.axis
    io, ii = s[C].split(i, factor=4, tail=tail)
    jo, ji = s[C].split(j, factor=8, tail=tail)
    s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
    if tail == "shift" and size == 3:
        with pytest.raises(lw.ScheduleError, match="the loops do not compute what outer does"):
            s[C].tensorize(ii, "outer")  # tiles shrink to the 3 elements that there are
        return
    if tail != "shift" or size != 7:
        s[C].tensorize(ii, "outer")
    sizes = [0, 1, 3, 7, 8, 19] if size is None else [size]
    assert_right(s, [A, B, C], lambda a, b: a @ b, *([(x, 5), (5, x)] for x in sizes), rtol=1e-4)


@pytest.mark.parametrize("reset", [True, False])
def test_an_int8_dot_product_in_a_matrix_product_of_any_shape(reset):
    declare_dot(reset)
    A, B, C = matmul(te.var("n"), te.var("k"), te.var("m"), "int8", "int32")
    s = lw.create_schedule(C)
    ro, ri = s[C].split(C.op.reduce_axis[0], factor=4)
    i, j = C.op.axis
    s[C].reorder(ro, i, j, ri)
    s[C].tensorize(ri, "dot4")
    shapes = [
        [(3, 8), (8, 5)],
        [(2, 3), (3, 2)],
        [(0, 4), (4, 2)],
        [(2, 0), (0, 3)],
        [(4, 13), (13, 4)],
        [(1, 1), (1, 1)],
    ]
    assert_right(s, [A, B, C], wide_matmul, *shapes)


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("shape", [(8, 5, 32), (7, 5, 33), (4, 1, 16), (3, 2, 15), (8, 0, 16)])
def test_an_outer_product_microkernel(shape, reset):
    declare_outer(reset=reset)
    n, k, m = shape
    A, B, C = matmul(n, k, m)
    s = lw.create_schedule(C)
    i, j = C.op.axis
    io, jo, ii, ji = s[C].tile(i, j, 4, 16)
    s[C].parallel(io)
    s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
    s[C].tensorize(ii, "outer")
    assert_right(s, [A, B, C], lambda a, b: a @ b, [(n, k), (k, m)], rtol=1e-4)


def test_the_accumulators_of_a_microkernel_stay_in_registers():
    declare_outer()
    A, B, C = matmul(8, 64, 32)
    s = lw.create_schedule(C)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 4, 16)
    s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
    s[C].tensorize(ii, "outer")
    text = str(lw.lower(s, [A, B, C], target="x86-64-v4"))
    inside = text[text.index("for r in range(64)") :].split("C[", maxsplit=1)[0]
    assert inside.count("C_reg[") == 8
    assert "A[" in inside


def test_the_reset_takes_the_place_of_the_initialising_loops():
    declare_outer(reset=True)
    A, B, C = matmul(8, 64, 32)
    s = lw.create_schedule(C)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 4, 16)
    s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
    s[C].tensorize(ii, "outer")
    assert "_init" not in str(s)
    assert str(s).count("= broadcast(0.0, 16)") == 4
    assert_right(s, [A, B, C], lambda a, b: a @ b, [(8, 64), (64, 32)], rtol=1e-4)


def test_a_reset_that_is_not_this_reductions_identity_is_left_out():
    declare_dot()
    A, B = te.placeholder((4,), "int8", name="A"), te.placeholder((4,), "int8", name="B")
    r = te.reduce_axis((0, 4), name="r")
    sum_from_five = te.reducer("from_five", lambda a, b: (a[0] + b[0],), lambda kinds: (te.const(5, kinds[0]),))
    C = te.compute((), lambda: sum_from_five((te.cast(A[r], "int32") * te.cast(B[r], "int32"),), axis=r)[0], name="C")
    s = lw.create_schedule(C)
    s[C].tensorize(C.op.reduce_axis[0], "dot4")
    assert_right(s, [A, B, C], lambda a, b: np.array(5 + a.astype(np.int32) @ b.astype(np.int32)), [(4,), (4,)])


def test_axes_are_found_in_any_order_and_layout():
    """The product transposed, its operands swapped, one of them read backwards in memory and packed."""
    declare_outer(4, 8)
    A, B = te.placeholder((24, 10), name="A"), te.placeholder((12, 10), name="B")
    P = te.compute((10, 12), lambda r, i: B[11 - i, r] * 2.0, name="P")
    r = te.reduce_axis((0, 10), name="r")
    C = te.compute((24, 12), lambda j, i: te.sum(P[r, i] * A[j, r], axis=r), name="C")
    s = lw.create_schedule(C)
    j, i = C.op.axis
    jo, io, ji, ii = s[C].tile(j, i, 8, 4)
    s[C].reorder(jo, io, r, ii, ji)
    s[P].transform_layout(lambda r, i: (i // 4, r, i % 4))
    s[P].storage_align(1, 16)
    s[C].tensorize(ii, "outer")
    assert "P[ramp" not in str(s)
    assert_right(s, [A, B, C], lambda a, b: a @ (b[::-1] * np.float32(2)).T, [(24, 10), (12, 10)], rtol=1e-4)


def test_producers_may_be_computed_inside_and_inlined():
    declare_add()
    A = te.placeholder((30,), name="A")
    H = te.compute((30,), lambda i: A[i] * 2.0, name="H")
    B = te.compute((30,), lambda i: H[i] + 1.0, name="B")
    D = te.compute((30,), lambda i: B[i] + 1.0, name="D")
    s = lw.create_schedule(D)
    do, di = s[D].split(D.op.axis[0], factor=8)
    s[B].compute_at(s[D], do)
    bo, bi = s[B].split(B.op.axis[0], factor=4)
    s[B].tensorize(bi, "add")
    s[H].compute_at(s[B], bo)
    s[D].tensorize(s[D].split(di, factor=4)[1], "add")
    assert_right(s, [A, D], lambda a: a * np.float32(2) + np.float32(2), [(30,)])


def test_one_tensor_may_be_both_operands():
    declare_dot()
    A = te.placeholder((5, 8), "int8", name="A")
    r = te.reduce_axis((0, 8), name="r")
    C = te.compute((5, 5), lambda i, j: te.sum(te.cast(A[i, r], "int32") * te.cast(A[j, r], "int32"), axis=r), name="C")
    s = lw.create_schedule(C)
    s[C].tensorize(s[C].split(r, factor=4)[1], "dot4")
    assert_right(s, [A, C], lambda a: wide_matmul(a, a.T), [(5, 8)])


def test_an_operand_that_stands_still_is_a_view_of_stride_0():
    declare_dot()
    A = te.placeholder((5, 8), "int8", name="A")
    r = te.reduce_axis((0, 8), name="r")
    C = te.compute((5,), lambda i: te.sum(te.cast(A[i, r], "int32") * te.cast(A[i, 3], "int32"), axis=r), name="C")
    s = lw.create_schedule(C)
    s[C].tensorize(s[C].split(r, factor=4)[1], "dot4")
    assert_right(s, [A, C], lambda a: a.astype(np.int32).sum(1) * a[:, 3].astype(np.int32), [(5, 8)])


def test_a_window_is_read_at_a_sum_of_axes():
    x, w = te.placeholder((6,), name="x"), te.placeholder((3,), name="w")
    k = te.reduce_axis((0, 3), name="k")
    y = te.compute((4,), lambda i: te.sum(x[i + k] * w[k], axis=k), name="y")

    def update(x, w, y):
        value = Load(y, (lanes(4),))
        for step in range(3):
            value = value + Load(x, (Ramp(as_index(step), as_index(1), 4),)) * broadcast_to(Load(w, at(step)), 4)
        return Store(y, (lanes(4),), value)

    lw.declare_intrinsic("window", y, update, override=True)
    A, W = te.placeholder((18,), name="A"), te.placeholder((3,), name="W")
    r = te.reduce_axis((0, 3), name="r")
    B = te.compute((16,), lambda i: te.sum(A[i + r] * W[r], axis=r), name="B")
    s = lw.create_schedule(B)
    _, inner = s[B].split(B.op.axis[0], factor=4)
    s[B].tensorize(inner, "window")
    assert_right(s, [A, W, B], np.correlate, [(18,), (3,)])
    far = te.compute((16,), lambda i: te.sum(A[i + r] * W[2 - r], axis=r), name="far")
    s = lw.create_schedule(far)
    s[far].tensorize(s[far].split(far.op.axis[0], factor=4)[1], "window")  # W read backwards: a stride of -1
    assert_right(s, [A, W, far], lambda a, w: np.convolve(a, w, "valid"), [(18,), (3,)])


def test_code_with_loops_of_its_own_stands_in_the_loops_of_a_peeled_split():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] * 3.0, name="y")

    def thrice(x, y):
        ib = te.IRBuilder()
        source, target = ib.buffer_ptr(x), ib.buffer_ptr(y)
        with ib.for_range(0, 4) as i:
            target[i] = source[i] * 3.0
        return ib.get()

    lw.declare_intrinsic("thrice", y, thrice, override=True)
    A = te.placeholder((te.var("n"),), name="A")
    B = te.compute(A.shape, lambda i: A[i] * 3.0, name="B")
    s = lw.create_schedule(B)
    s[B].tensorize(s[B].split(B.op.axis[0], factor=4, tail="peel")[1], "thrice")
    assert_right(s, [A, B], lambda a: a * np.float32(3), [(0,)], [(3,)], [(8,)], [(13,)])


def test_two_declarations_of_one_intrinsic_lower_to_the_same_nest():
    funcs = []
    for _ in range(2):
        declare_dot()
        A, B, C = matmul(4, 8, 4, "int8", "int32")
        s = lw.create_schedule(C)
        s[C].tensorize(s[C].split(C.op.reduce_axis[0], factor=4)[1], "dot4")
        funcs.append(lw.lower(s, [A, B, C]))
    assert str(funcs[0]) == str(funcs[1])
    assert structural_equal(*funcs)
