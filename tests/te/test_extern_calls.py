"""Functions of C called from te.extern: what they compute, in the interpreter, in kernels and in debug builds."""

import ctypes
import ctypes.util
import itertools

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.structural import structural_equal, structural_hash
from loopwright.lowering.passes.outline_parallel import outline_parallel

FLOATS = ctypes.POINTER(ctypes.c_float)
_numbers = itertools.count()


def scaled_sum(n, a, x, y):
    """y += a * x, in pieces of Python that ctypes and the interpreter can both run."""
    for i in range(n):
        y[i] += a * x[i]


def axpy(reference=True):
    """``y += a * x`` under a symbol of its own, registered as a callback."""
    function = te.extern_function(
        f"axpy_{next(_numbers)}",
        ["int32", "float32", "read float32", "update float32"],
        (lambda n, a, x, y: scaled_sum(n, a, x.reshape(-1), y.reshape(-1))) if reference else None,
    )
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_float, FLOATS, FLOATS)
    lw.register_symbol(function, kind(scaled_sum))
    return function


def rows_plus_one(function, n, columns=8, kind="parallel", extra=0):
    """B[i, :] = 1 + 2 * A[i, :], each row by a call; ``extra`` elements more than a row has are asked for."""
    A = te.placeholder((n, columns), name="A")

    def body(ins, outs):
        ib = te.IRBuilder()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, name="i", kind=kind) as i:
            with ib.for_range(0, columns, name="j") as j:
                b[i, j] = 1.0
            ib.call(function, columns, 2.0, a.region((i, 0), (1, columns + extra)), b.region((i, 0), (1, columns)))
        return ib.get()

    return A, te.extern((n, columns), [A], body, name="B")


def test_a_call_computes_the_same_in_the_interpreter_a_kernel_and_a_debug_build():
    A, B = rows_plus_one(axpy(), te.var("n"))
    C = te.compute(B.shape, lambda i, j: B[i, j] * 3.0, name="C")
    s = lw.create_schedule(C)
    a = np.random.default_rng(0).random((5, 8), np.float32)
    for run in (lw.interpret(lw.lower(s, [A, C])), lw.build(s, [A, C]), lw.build(s, [A, C], debug=True)):
        c = np.empty_like(a)
        run(a, c)
        np.testing.assert_allclose(c, (1 + 2 * a) * 3, rtol=1e-6)


def test_a_call_gets_the_memory_of_an_intermediate_and_of_what_is_allocated():
    function = axpy()
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")

    def body(ins, outs):
        ib = te.IRBuilder()
        source, target, buf = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), ib.allocate("float32", (8,), "buf")
        with ib.for_range(0, 4, name="i") as i:
            with ib.for_range(0, 8, name="j") as j:
                buf[j] = te.cast(i, "float32")
            ib.call(function, 8, 1.0, source.region((i, 0), (1, 8)), buf)
            with ib.for_range(0, 8, name="k") as k:
                target[i, k] = buf[k]
        return ib.get()

    C = te.extern((4, 8), [B], body, name="C")
    s = lw.create_schedule(C)
    a = np.random.default_rng(1).random((4, 8), np.float32)
    for run in (lw.interpret(lw.lower(s, [A, C])), lw.build(s, [A, C]), lw.build(s, [A, C], debug=True)):
        c = np.empty_like(a)
        run(a, c)
        np.testing.assert_allclose(c, a + 1 + np.arange(4)[:, None], rtol=1e-6)


def test_scalars_are_passed_by_value_and_by_address():
    seen = []

    def record(byte, whole, wide, single, double, out):
        seen.append((byte[0], whole[0], wide, single, double[0]))
        out[0] = 1

    function = te.extern_function(
        f"record_{next(_numbers)}",
        ["reference int8", "reference int32", "int64", "float32", "reference float64", "write int32"],
    )
    kind = ctypes.CFUNCTYPE(
        None,
        *(ctypes.POINTER(ctypes.c_int8), ctypes.POINTER(ctypes.c_int32), ctypes.c_int64, ctypes.c_float),
        *(ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_int32)),
    )
    lw.register_symbol(function, kind(record))

    def body(ins, outs):
        ib = te.IRBuilder()
        ib.call(function, -5, 70_000, 1 << 40, 0.5, -0.25, outs[0])
        return ib.get()

    B = te.extern((1,), [], body, name="B", dtype="int32")
    b = np.zeros(1, np.int32)
    lw.build(lw.create_schedule(B), [B])(b)
    assert seen == [(-5, 70_000, 1 << 40, 0.5, -0.25)]
    assert b[0] == 1


def test_an_empty_region_may_begin_at_the_end():
    function = axpy()
    A = te.placeholder((8,), name="A")

    def body(ins, outs):
        ib = te.IRBuilder()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 8, name="j") as j:
            b[j] = a[j]
        ib.call(function, 0, 1.0, a.region(100, 0), b.region(-3, 0))
        return ib.get()

    B = te.extern((8,), [A], body, name="B")
    s = lw.create_schedule(B)
    a = np.arange(8, dtype=np.float32)
    for run in (lw.interpret(lw.lower(s, [A, B])), lw.build(s, [A, B]), lw.build(s, [A, B], debug=True)):
        b = np.empty_like(a)
        run(a, b)
        np.testing.assert_array_equal(a, b)


def test_the_interpreter_and_debug_builds_find_a_region_that_leaves_its_buffer():
    A, B = rows_plus_one(axpy(), 5, extra=1)
    s = lw.create_schedule(B)
    a, b = np.ones((5, 8), np.float32), np.empty((5, 8), np.float32)
    found = r"gets A\[\d:\d, 0:9\], but dimension 1 of A has extent 8; its shape is \(5, 8\)"
    with pytest.raises(lw.BoundsError, match=found):
        lw.build(s, [A, B], debug=True)(a, b)
    with pytest.raises(lw.InterpretError, match=found):
        lw.interpret(lw.PrimFunc("main", (*B.op.func.buffers,), B.op.func.body, B.op.func.outputs))(a, b)


def test_the_interpreter_finds_races_between_calls():
    function = axpy()
    A = te.placeholder((8,), name="A")

    def body(ins, outs):
        ib = te.IRBuilder()
        with ib.for_range(0, 2, name="i", kind="parallel"):
            ib.call(function, 8, 1.0, ins[0], outs[0])
        return ib.get()

    B = te.extern((8,), [A], body, name="B")
    with pytest.raises(lw.InterpretError, match=r"axpy_\d+ reads element 0 of B, which iteration i = 1 wrote"):
        lw.interpret(lw.lower(lw.create_schedule(B), [A, B]))(np.ones(8, np.float32), np.zeros(8, np.float32))


def test_the_interpreter_finds_reads_of_memory_never_written_and_shared_arguments():
    function = axpy()

    def unwritten(ins, outs):
        ib = te.IRBuilder()
        ib.call(function, 8, 1.0, ib.allocate("float32", (8,), "buf"), outs[0])
        return ib.get()

    def shared(ins, outs):
        ib = te.IRBuilder()
        b = ib.buffer_ptr(outs[0])
        ib.call(function, 5, 1.0, b.region(0, 5), b.region(4, 4))
        return ib.get()

    for body, found in ((unwritten, "reads memory never written: element 0 of buf"), (shared, "element 4 of B")):
        B = te.extern((8,), [], body, name="B", dtype="float32")
        with pytest.raises(lw.InterpretError, match=found):
            lw.interpret(lw.lower(lw.create_schedule(B), [B]))(np.ones(8, np.float32))


def test_a_reference_does_not_see_what_its_function_is_only_to_write():
    function = te.extern_function("fill", ["write float32"], lambda out: out.__iadd__(1))

    def body(ins, outs):
        ib = te.IRBuilder()
        ib.call(function, outs[0])
        return ib.get()

    B = te.extern((4,), [], body, name="B", dtype="float32")
    b = np.zeros(4, np.float32)
    lw.interpret(lw.lower(lw.create_schedule(B), [B]))(b)
    assert np.isnan(b).all()


def test_programs_that_call_different_functions_are_different():
    first, second = axpy(), axpy()
    funcs = [rows_plus_one(f, 4)[1].op.func for f in (first, first, second)]
    assert structural_equal(funcs[0], funcs[1])
    assert structural_hash(funcs[0]) == structural_hash(funcs[1])
    assert not structural_equal(funcs[0], funcs[2])


def test_a_kernel_may_have_the_name_of_a_function_that_it_calls():
    function = axpy()
    A, B = rows_plus_one(function, 4)
    a, b = np.ones((4, 8), np.float32), np.empty((4, 8), np.float32)
    lw.build(lw.create_schedule(B), [A, B], name=function.symbol)(a, b)
    assert (b == 3).all()


def test_a_function_of_a_library_is_called():
    sincos = te.extern_function("sincosf", ["float32", "write float32", "write float32"])
    lw.register_symbol(sincos, ctypes.CDLL(ctypes.util.find_library("m")).sincosf, override=True)
    X = te.placeholder((8,), name="X")

    def body(ins, outs):
        ib = te.IRBuilder()
        x, (sine, cosine) = ib.buffer_ptr(ins[0]), map(ib.buffer_ptr, outs)
        with ib.for_range(0, 8, kind="parallel") as i:
            ib.call(sincos, x[i], sine.region(i, 1), cosine.region(i, 1))
        return ib.get()

    S, C = te.extern([(8,), (8,)], [X], body, name="sincos")
    x = np.linspace(-3, 3, 8, dtype=np.float32)
    sine, cosine = np.empty_like(x), np.empty_like(x)
    kernel = lw.build(lw.create_schedule([S, C]), [X, S, C])
    kernel(x, sine, cosine)
    np.testing.assert_allclose(sine, np.sin(x), atol=1e-6)
    np.testing.assert_allclose(cosine, np.cos(x), atol=1e-6)
    assert kernel.vector_report().loops


def test_calls_are_interpreted_after_their_parallel_loop_is_outlined():
    A, B = rows_plus_one(axpy(), 5)
    module = outline_parallel(lw.lower(lw.create_schedule(B), [A, B]))
    assert len(module.functions) == 2
    a, b = np.random.default_rng(2).random((5, 8), np.float32), np.empty((5, 8), np.float32)
    lw.interpret(module)(a, b)
    np.testing.assert_allclose(b, 1 + 2 * a, rtol=1e-6)


def test_an_intrinsic_may_call_a_function_and_tell_it_the_strides():
    def strided(n, a, x, dx, y, dy):
        for i in range(n):
            y[i * dy] += a[0] * x[i * dx]

    def reference(n, a, x, dx, y, dy):
        y += a[0, 0] * x

    function = te.extern_function(
        f"strided_axpy_{next(_numbers)}",
        ["int32", "read float32", "read float32", "int64", "update float32", "int64"],
        reference,
    )
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int32, FLOATS, FLOATS, ctypes.c_int64, FLOATS, ctypes.c_int64)
    lw.register_symbol(function, kind(strided))
    a, b = te.placeholder((1, 1), name="a"), te.placeholder((1, 8), name="b")
    k = te.reduce_axis((0, 1), name="k")
    c = te.compute((1, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")

    def update(a, b, c):
        ib = te.IRBuilder()
        ib.call(function, 8, a, b, b.strides[1], c, c.strides[1])
        return ib.get()

    lw.declare_intrinsic("row_by_number", c, update, override=True)
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((6, 16), name="B")
    r = te.reduce_axis((0, 6), name="r")
    C = te.compute((4, 16), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    i, j = C.op.axis
    jo, ji = s[C].split(j, factor=8)
    ro, ri = s[C].split(C.op.reduce_axis[0], factor=1)
    io, ii = s[C].split(i, factor=1)
    s[C].reorder(io, jo, ro, ii, ji, ri)
    s[C].tensorize(ii, "row_by_number")
    rng = np.random.default_rng(3)
    x, y = rng.random((4, 6), np.float32), rng.random((6, 16), np.float32)
    for run in (lw.interpret(lw.lower(s, [A, B, C])), lw.build(s, [A, B, C]), lw.build(s, [A, B, C], debug=True)):
        z = np.empty((4, 16), np.float32)
        run(x, y, z)
        np.testing.assert_allclose(z, x @ y, rtol=1e-5)


def copies_rows(tensor, function, kind):
    """B = 1 + 2 * tensor, row by row, by calls."""

    def body(ins, outs):
        ib = te.IRBuilder()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4, name="i", kind=kind) as i:
            with ib.for_range(0, 8, name="j") as j:
                b[i, j] = 1.0
            ib.call(function, 8, 2.0, a.region((i, 0), (1, 8)), b.region((i, 0), (1, 8)))
        return ib.get()

    return te.extern((4, 8), [tensor], body, name="rows")


@pytest.mark.parametrize("place", ["root", "inside", "both inside", "copied", "in other memory"])
@pytest.mark.parametrize("kind", ["parallel", "unrolled"])
def test_an_extern_that_calls_may_stand_wherever_a_schedule_puts_it(place, kind):
    A = te.placeholder((4, 8), name="A")
    A1 = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="A1")
    P = copies_rows(A1, axpy(), kind)
    Q = copies_rows(P, axpy(), kind)
    C = te.compute((3, 4, 8), lambda z, i, j: Q[i, j] * te.cast(z, "float32"), name="C")
    s = lw.create_schedule(C)
    z = C.op.axis[0]
    match place:
        case "inside":
            s[Q].compute_at(s[C], z)
            s[C].parallel(z)
        case "both inside":
            s[Q].compute_at(s[C], z)
            s[P].compute_at(s[C], z)
            s[C].unroll(z)
        case "copied":
            s.cache_write(Q, "local")
            s.cache_read(A1, "local", [P])
        case "in other memory":
            s[P].set_scope("global")
            s[A1].set_scope("register")
    a = np.random.default_rng(4).random((4, 8), np.float32)
    wanted = (1 + 2 * (1 + 2 * (a + 1))) * np.arange(3, dtype=np.float32)[:, None, None]
    for run in (lw.interpret(lw.lower(s, [A, C])), lw.build(s, [A, C])):
        c = np.empty((3, 4, 8), np.float32)
        run(a, c)
        np.testing.assert_allclose(c, wanted, rtol=1e-6)
