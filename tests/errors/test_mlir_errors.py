"""What MLIR has no form for is refused, and named."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.expr import Load, const
from loopwright.ir.stmt import For, PrimFunc, Store


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
    with pytest.raises(lw.MlirError, match=r"bits.* is a view of the memory of .*A.*: a memref has one element type"):
        lw.emit_mlir(PrimFunc("copy", (A, B), func.body, (B,)))


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
