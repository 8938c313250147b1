"""The tails of splits in native code: what is emitted for a vectorized tile, and that kernels give what numpy gives."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

TARGETS = ("x86-64", "x86-64-v4")
TAILS = ("mask", "peel", "shift")
symbolic = pytest.mark.parametrize("symbolic", [False, True], ids=["constant", "symbolic"])


def elementwise(n, tail):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
    s = lw.create_schedule(B)
    _, inner = s[B].split(B.op.axis[0], factor=8, tail=tail)
    s[B].vectorize(inner)
    return s, [A, B]


def column_sums(n, tail):
    """One vector of sums for each tile of columns."""
    A = te.placeholder((5, n), name="A")
    r = te.reduce_axis((0, 5), name="r")
    B = te.compute((n,), lambda j: te.sum(A[r, j], axis=r), name="B")
    s = lw.create_schedule(B)
    outer, inner = s[B].split(B.op.axis[0], factor=8, tail=tail)
    s[B].reorder(outer, r, inner)
    s[B].vectorize(inner)
    return s, [A, B]


def matmul(n, tail):
    """A tile of 3 rows and 8 columns, split again along the rows; what is peeled off the reduction has a loop of its
    own."""
    A = te.placeholder((7, 5), name="A")
    B = te.placeholder((5, n), name="B")
    r = te.reduce_axis((0, 5), name="r")
    C = te.compute((7, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    i, j = C.op.axis
    io, jo, ii, ji = s[C].tile(i, j, 3, 8, tail)
    ro, ri = s[C].split(r, factor=4, tail="peel")
    s[C].reorder(io, jo, ro, ri, ii, ji)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    return s, [A, B, C]


def accesses(llvm_ir, names):
    """The types loaded from and stored to these arrays in emitted code: (array, type, whether it is masked)."""
    body = llvm_ir[llvm_ir.index("define internal") :].split("\n}\n")[0]
    of: dict[str, str] = {f'%"{name}"': name for name in names}
    found = []
    for line in body.splitlines():
        if made := re.search(r'(%"[^"]*") = getelementptr .*?, ptr (%"[^"]*")', line):
            of[made[1]] = of.get(made[2], "")
        access = re.search(
            r'load (?P<load><?[^,]*), ptr (?P<a>%"[^"]*")'
            r'|store (?P<store><\d+ x \w+>|\w+) [^ ]*, ptr (?P<b>%"[^"]*")'
            r'|@"llvm\.masked\.(?P<masked>\w+\.\w+)\.p0"\(.*?ptr (?P<c>%"[^"]*")',
            line,
        )
        if access and (array := of.get(access["a"] or access["b"] or access["c"])):
            found.append((array, access["load"] or access["store"] or access["masked"], access["masked"] is not None))
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("extent", [60, 61, 7, "n"])
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("make", [elementwise, column_sums, matmul], ids=lambda f: f.__name__)
def test_each_access_is_a_whole_vector(make, tail, extent, target):
    s, args = make(te.var("n") if extent == "n" else extent, tail)
    kernel = lw.build(s, args, target=target)
    found = accesses(kernel.llvm_ir, [t.name for t in args])
    assert {array for array, _, _ in found} == {t.name for t in args}
    for array, kind, masked in found:
        broadcast = make is matmul and array == "A"  # one element for a whole vector of columns
        assert masked or broadcast or re.fullmatch(r"<[4578] x float>", kind), f"{array}: {kind}\n{kernel.llvm_ir}"
    if extent != "n":
        assert any(masked for _, _, masked in found) is (tail == "mask")


def test_guards_of_vectors_that_are_scalar_would_be_found():
    """The reading of emitted code above does see scalar accesses."""
    A = te.placeholder((60,), name="A")
    B = te.compute((60,), lambda i: A[i] * 2.0, name="B")
    s = lw.create_schedule(B)
    s[B].split(B.op.axis[0], factor=8, tail="mask")
    kernel = lw.build(s, [A, B], target="x86-64")
    assert accesses(kernel.llvm_ir, ["A", "B"]) == [("A", "float", False), ("B", "float", False)]


@symbolic
@pytest.mark.parametrize("make", [elementwise, column_sums, matmul], ids=lambda f: f.__name__)
@pytest.mark.parametrize("tail", ["guard", *TAILS])
@pytest.mark.parametrize("target", ["native", "x86-64"])
def test_kernels_give_what_numpy_gives(target, tail, make, symbolic):
    rng = np.random.default_rng(0)
    kernel = None
    for n in (0, 1, 7, 8, 60, 61, 64):
        if kernel is None or not symbolic:
            kernel = lw.build(*make(te.var("n") if symbolic else n, tail), target=target)
        shapes = {elementwise: [(n,)], column_sums: [(5, n)], matmul: [(7, 5), (5, n)]}[make]
        inputs = [rng.integers(-8, 9, shape).astype(np.float32) for shape in shapes]
        expected = {
            elementwise: lambda a: a * 2 + 1,
            column_sums: lambda a: a.sum(0),
            matmul: lambda a, b: a @ b,
        }[make](*inputs)
        around = np.full(expected.size + 32, np.nan, np.float32)  # what lies around the output must stay
        out = around[16 : 16 + expected.size].reshape(expected.shape)
        kernel(*inputs, out)
        np.testing.assert_array_equal(out, expected, err_msg=f"n = {n}")
        assert np.isnan(around[:16]).all()
        assert np.isnan(around[16 + expected.size :]).all()
