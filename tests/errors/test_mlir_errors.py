"""What MLIR has no form for is refused, and named."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Compare, Load, Select
from loopwright.ir.stmt import For, PrimFunc, Store
from loopwright.lowering.passes.outline_parallel import outline_parallel


def copy_of(A, B):
    i = index_var("i")
    loop = For(i, const(0, "index"), const(4, "index"), "serial", Store(B, (i,), Load(A, (i,))))
    return PrimFunc("copy", (A, B), loop, (B,))


def test_a_parameter_with_strides():
    A, B = make_buffer("A", [4], "float32", strides=[2]), make_buffer("B", [4], "float32")
    with pytest.raises(lw.MlirError, match=r"copy: the parameter .*A.* has strides or an offset"):
        lw.emit_mlir(copy_of(A, B))


def test_a_view_of_another_element_type():
    A, B = make_buffer("A", [4], "float32"), make_buffer("B", [4], "int32")
    bits = make_buffer("bits", [4], "int32", data=A.data)
    func = copy_of(bits, B)
    with pytest.raises(lw.VerificationError, match="copy: bits views memory of float32 as int32"):
        lw.emit_mlir(PrimFunc("copy", (A, B), func.body, (B,)))


def test_a_buffer_that_is_not_declared():
    A, B = make_buffer("A", [4], "float32"), make_buffer("B", [4], "float32")
    with pytest.raises(lw.VerificationError, match="copy: A is neither a parameter nor allocated around here"):
        lw.emit_mlir(PrimFunc("copy", (B,), copy_of(A, B).body, (B,)))


def test_a_function_without_those_that_it_launches():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    s = lw.create_schedule(B)
    s[B].parallel(B.op.axis[0])
    with pytest.raises(lw.VerificationError):
        lw.emit_mlir(outline_parallel(lw.lower(s, [A, B], name="double")).entry)


def test_one_function_of_c_declared_in_two_ways():
    A = te.placeholder((4,), name="A")

    def body(ins, outs):
        ib = te.IRBuilder()
        B = ib.buffer_ptr(outs[0])
        for count in ("int32", "int64"):
            ib.call(te.extern_function("fill", ["write float32", count]), B.region((0,), (4,)), 4)
        return ib.get()

    B = te.extern((4,), [A], body, name="B")
    func = lw.lower(lw.create_schedule(B), [A, B], name="f")
    with pytest.raises(lw.ExpressionError, match="f: one function of C is declared in two ways"):
        lw.emit_mlir(func)


def test_deep_comparisons_do_not_meet_the_limit_of_recursion():
    A, B, i = make_buffer("A", [4], "float32"), make_buffer("B", [4], "float32"), index_var("i")
    x = Load(A, (i,))
    for k in range(400):
        x = Select(Compare("<", x, const(float(k), "float32")), const(1.0, "float32"), x)
    loop = For(i, const(0, "index"), const(4, "index"), "serial", Store(B, (i,), x))
    assert lw.emit_mlir(PrimFunc("deep", (A, B), loop, (B,))).count("arith.select") == 400


def test_what_is_not_lowered():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    with pytest.raises(lw.RuntimeArgumentError, match="emit_mlir takes what lower gives, found"):
        lw.emit_mlir(lw.create_schedule(B))


def test_an_unknown_level():
    A, B = make_buffer("A", [4], "float32"), make_buffer("B", [4], "float32")
    with pytest.raises(lw.RuntimeArgumentError, match="a level of MLIR is one of linalg, loops, found 'affine'"):
        lw.emit_mlir(copy_of(A, B), level="affine")


def test_what_has_no_tensor_expressions_has_no_level_linalg():
    A, B = make_buffer("A", [4], "float32"), make_buffer("B", [4], "float32")
    with pytest.raises(lw.MlirError, match="copy was not lowered from tensor expressions: it has the level loops only"):
        lw.emit_mlir(copy_of(A, B), level="linalg")


def test_a_scan_at_the_level_of_linalg():
    X = te.placeholder((8, 4), name="X")
    state = te.scan_state((8, 4), name="state")
    first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
    step = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    sums = te.scan(first, step, state, name="sums")
    func = lw.lower(lw.create_schedule(sums), [X, sums], name="f")
    with pytest.raises(lw.MlirError, match="f: linalg has no form for scan sums"):
        lw.emit_mlir(func, level="linalg")


def test_a_ragged_reduction_at_the_level_of_linalg():
    A, ends = te.placeholder((9,), name="A"), te.placeholder((4,), "int32", name="ends")

    def row(i):
        r = te.reduce_axis((0, ends[i]), name="r")
        return te.sum(A[r], axis=r)

    B = te.compute((4,), row, name="B")
    func = lw.lower(lw.create_schedule(B), [A, ends, B], name="f")
    with pytest.raises(lw.MlirError, match="f: compute B reduces over r, whose range differs from element to element"):
        lw.emit_mlir(func, level="linalg")


def test_an_unknown_precision():
    A, B = make_buffer("A", [4], "float32"), make_buffer("B", [4], "float32")
    with pytest.raises(lw.TargetError, match="there is no precision 'exact'"):
        lw.emit_mlir(copy_of(A, B), precision="exact")
