"""Control flow, assertions and parallel launches, native code against the interpreter."""

import subprocess
import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import dtype
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Binary, Cast, Compare, Load, Ramp, Var
from loopwright.ir.interpret import interpret
from loopwright.ir.intrinsics import call
from loopwright.ir.stmt import (
    Allocate,
    Assert,
    Evaluate,
    For,
    If,
    IRModule,
    Launch,
    LetStmt,
    PrimFunc,
    Store,
    While,
    seq,
)

ZERO, ONE = const(0, "index"), const(1, "index")


def idx(number):
    return const(number, "index")


@pytest.mark.parametrize("extent", [0, -2, 1, 5])
@pytest.mark.parametrize("symbolic", [False, True])
def test_loops_run_their_extent_and_not_below(native, extent, symbolic):
    A, N = make_buffer("A", [8], "int32"), make_buffer("N", [1], "int64")
    i, n = index_var("i"), index_var("n")
    loop = For(i, idx(2), n if symbolic else idx(extent), "serial", Store(A, (i,), Cast(dtype("int32"), i)))
    body = LetStmt(n, Cast(dtype("index"), Load(N, (ZERO,))), loop)
    a = np.zeros(8, np.int32)
    assert native(PrimFunc("loops", (A, N), body, (A,)))(a, np.array([extent], np.int64)) == 0
    wanted = np.zeros(8, np.int32)
    wanted[2 : 2 + max(0, extent)] = range(2, 2 + max(0, extent))
    np.testing.assert_array_equal(a, wanted)


def test_unrolled_and_vectorized_loops_left_over_run_serially(native):
    A = make_buffer("A", [8], "int32")
    i, j = index_var("i"), index_var("j")
    body = seq(
        For(i, ZERO, idx(4), "unrolled", Store(A, (i,), Cast(dtype("int32"), i))),
        For(j, idx(4), idx(4), "vectorized", Store(A, (j,), Cast(dtype("int32"), j))),
    )
    a = np.zeros(8, np.int32)
    assert native(PrimFunc("kinds", (A,), body, (A,)))(a) == 0
    np.testing.assert_array_equal(a, np.arange(8))


def test_while_and_if(native):
    """The Collatz sequence of each start: the condition reads memory that the body writes."""
    X, S = make_buffer("X", [20], "int64"), make_buffer("S", [20], "int64")
    i = index_var("i")
    x = Load(X, (i,))
    odd = Compare("==", Binary("%", x, const(2, "int64")), const(1, "int64"))
    step = If(odd, Store(X, (i,), x * 3 + 1), Store(X, (i,), x // 2))
    count = Store(S, (i,), Load(S, (i,)) + 1)
    body = For(i, ZERO, idx(20), "serial", While(Compare(">", x, const(1, "int64")), seq(step, count)))
    func = PrimFunc("collatz", (X, S), body, (X, S))
    start = np.arange(1, 21)
    found, wanted = (start.copy(), np.zeros(20, np.int64)), (start.copy(), np.zeros(20, np.int64))
    assert native(func)(*found) == 0
    interpret(func)(*wanted)
    np.testing.assert_array_equal(found, wanted)
    assert found[1][6] == 16


def test_if_without_else_and_evaluate(native):
    A = make_buffer("A", [8], "int32")
    i = index_var("i")
    write = If(Compare("<", i, idx(3)), Store(A, (i,), const(1, "int32")))
    body = For(i, ZERO, idx(8), "serial", seq(Evaluate(Load(A, (i,))), write))
    a = np.zeros(8, np.int32)
    assert native(PrimFunc("ifs", (A,), body, (A,)))(a) == 0
    np.testing.assert_array_equal(a, [1, 1, 1, 0, 0, 0, 0, 0])


def test_a_value_of_one_branch_is_not_used_in_the_other(native):
    A, B = make_buffer("A", [8], "float32"), make_buffer("B", [8], "float32")
    i = index_var("i")
    shared = Load(A, (i,)) * 3.0
    place = Binary("%", i * 5, idx(8))
    low = Store(B, (place,), shared)
    body = For(i, ZERO, idx(8), "serial", seq(If(Compare("<", i, idx(4)), low, Store(B, (place,), shared + shared))))
    func = PrimFunc("branches", (A, B), body, (B,))
    a, b, c = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    assert native(func)(a, b) == 0
    interpret(func)(a, c)
    np.testing.assert_array_equal(b, c)


def test_assertions_give_their_number_and_stop(native):
    A = make_buffer("A", [2], "int32")
    x = Load(A, (ZERO,))
    body = seq(
        Assert(Compare(">", x, const(0, "int32")), "x must be positive"),
        Assert(Compare("<", x, const(10, "int32")), "x must be below ten"),
        Store(A, (ONE,), x * 2),
    )
    kernel = native(PrimFunc("checked", (A,), body, (A,)))
    assert kernel.code.messages == ("x must be positive", "x must be below ten")
    for value, code in ((5, 0), (0, 1), (10, 2)):
        a = np.array([value, -1], np.int32)
        assert kernel(a) == code
        assert a[1] == (-1 if code else value * 2)


def test_a_failed_assertion_frees_the_heap(native):
    n = index_var("n")
    A, T = make_buffer("A", [n], "float32"), make_buffer("T", [n], "float32", "global")
    check = Assert(Compare(">", Load(A, (ZERO,)), const(0.0, "float32")), "positive")
    body = Allocate(T, seq(Store(T, (ZERO,), Load(A, (ZERO,))), check, Store(A, (ZERO,), Load(T, (ZERO,)) * 2.0)))
    kernel = native(PrimFunc("leaves", (A,), body, (A,)))
    assert kernel(np.zeros(4, np.float32)) == 1
    failing = kernel.code.llvm_ir.split("fail.1:")[1].split("ret i32")[0]
    assert 'call void @"free"' in failing


def launched(fail_at=None):
    """C = A * s + n in parallel over rows: the launched function has a scalar, a size and a temporary."""
    n, m = index_var("n"), index_var("m")
    A, C = make_buffer("A", [n, m], "float32"), make_buffer("C", [n, m], "float32")
    s = Var("s", dtype("float32"))
    begin, end, rows, cols = (index_var(name) for name in ("begin", "end", "rows", "cols"))
    scale = Var("scale", dtype("float32"))
    X, Y = make_buffer("X", [rows, cols], "float32"), make_buffer("Y", [rows, cols], "float32")
    i, j = index_var("i"), index_var("j")
    T = make_buffer("T", [cols], "float32", "local")
    value = Load(X, (i, j)) * scale + Cast(dtype("float32"), rows)
    row = seq(
        For(j, ZERO, cols, "serial", Store(T, (j,), value)),
        For(j, ZERO, cols, "serial", Store(Y, (i, j), Load(T, (j,)))),
    )
    if fail_at is not None:
        row = seq(Assert(Compare("!=", i, idx(fail_at)), "a bad row"), row)
    task = PrimFunc(
        "scale_rows",
        (begin, end, X, Y, scale, rows, cols),
        Allocate(T, For(i, begin, end - begin, "serial", row)),
        (Y,),
    )
    body = LetStmt(s, const(2.5, "float32"), Launch("scale_rows", n, (A, C, s, n, m)))
    return IRModule((PrimFunc("scale", (A, C), body, (C,)), task))


def test_launch_runs_all_chunks(native):
    kernel = native(launched())
    for shape in ((7, 5), (1, 1), (0, 3)):
        a = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        c = np.zeros_like(a)
        assert kernel(a, c) == 0
        np.testing.assert_allclose(c, a * 2.5 + shape[0], rtol=1e-6)


def test_an_error_in_a_chunk_reaches_the_caller(native):
    kernel = native(launched(fail_at=5))
    a = np.zeros((7, 5), np.float32)
    assert kernel(a, a.copy()) == 1
    assert kernel.code.messages == ("a bad row",)
    assert kernel(a[:5].copy(), a[:5].copy()) == 0


def test_sums_of_products_become_fused_unless_strict(native):
    A, B, O = (make_buffer(name, [16], "float32") for name in "ABO")
    at = Ramp(ZERO, ONE, 16)
    a, b, o = (Load(buffer, (at,)) for buffer in (A, B, O))
    forms = [a * b + o, o + a * b, a * b - o, o - a * b]
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=(3, 16)).astype(np.float32)
    for form, sign in zip(forms, ((1, 1), (1, 1), (1, -1), (-1, 1)), strict=True):
        func = PrimFunc("fused", (A, B, O), Store(O, (at,), form), (O,))
        exact = sign[0] * x.astype(np.float64) * y + sign[1] * z.astype(np.float64)
        standard, strict = native(func), native(func, precision="strict")
        out, kept = z.copy(), z.copy()
        assert standard(x, y, out) == 0
        assert strict(x, y, kept) == 0
        assert ("llvm.fma" in standard.code.llvm_ir) == standard.code.target.has_fma
        assert "llvm.fma" not in strict.code.llvm_ir
        assert "vfm" not in strict.code.assembly
        np.testing.assert_array_equal(kept, sign[0] * (x * y) + sign[1] * z)
        if standard.code.target.has_fma:
            np.testing.assert_array_equal(out, exact.astype(np.float32))


@pytest.mark.parametrize("precision", ["strict", "standard", "fast"])
def test_llvm_gets_no_fast_math_flags(native, precision):
    """Code generation itself chooses what becomes an fma, or a product with a reciprocal: all copies round alike."""
    A = make_buffer("A", [16], "float32")
    at = Ramp(ZERO, ONE, 16)
    func = PrimFunc("flags", (A,), Store(A, (at,), Load(A, (at,)) / 3.0 + 1.0), (A,))
    words = set(native(func, precision=precision).code.llvm_ir.split())
    assert not {"fast", "contract", "reassoc", "arcp", "nnan", "ninf", "nsz", "afn"} & words
    assert ("fdiv" in words) == (precision != "fast")


def test_fast_precision_divides_where_a_reciprocal_is_no_normal_number(native):
    A = make_buffer("A", [4], "float32")
    divisors = (3.0, 1e-39, 3e38, 0.0)
    body = seq(*(Store(A, (idx(k),), Load(A, (idx(k),)) / divisor) for k, divisor in enumerate(divisors)))
    a = np.array([1.0, 1e-39, 3e38, 1.0], np.float32)
    assert native(PrimFunc("divide", (A,), body, (A,)), precision="fast")(a) == 0
    np.testing.assert_allclose(a, np.float32([1 / 3, 1, 1, np.inf]), rtol=2e-7)


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_fast_precision_divides_by_what_is_0_or_infinite(target, lanes):
    A = te.placeholder((8,), "float32", name="A")
    B = te.compute((8,), lambda i: 1.0 / te.sqrt(A[i]), name="B")
    s = lw.create_schedule(B)
    _, lane = s[B].split(s[B].op.axis[0], factor=lanes)
    s[B].vectorize(lane)
    x, y = np.float32([np.inf, 0, -0.0, 1e-40, 1e38, 4, -1, np.nan]), np.empty(8, np.float32)
    lw.build(s, [A, B], target=target, precision="fast")(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, 1 / np.sqrt(x.astype(np.float64)), rtol=1e-6)


def test_copies_of_a_loop_may_give_one_variable_other_bounds(native):
    """The sign of the variable is known in the first copy only."""
    A = make_buffer("A", [16], "int64")
    i = index_var("i")
    body = Store(A, (i + 8,), Cast(dtype("int64"), Binary("//", i, idx(4))))
    func = PrimFunc("copies", (A,), seq(*(For(i, idx(low), idx(8), "serial", body) for low in (0, -8))), (A,))
    a = np.zeros(16, np.int64)
    assert native(func)(a) == 0
    np.testing.assert_array_equal(a, np.arange(-8, 8) // 4)


def test_what_is_known_of_a_launch_s_arguments_holds_in_the_launched_function(native):
    """Chunks start at 0 or above, and the captured counter counts from 0: shifts serve, unless it starts below."""
    for low, cheap in ((0, True), (-3, False)):
        A = make_buffer("A", [4, 8], "int64")
        i, j, k = index_var("i"), index_var("j"), index_var("k")
        begin, end = index_var("begin"), index_var("end")
        value = Cast(dtype("int64"), Binary("//", j, idx(4)) + Binary("//", k, idx(2)))
        task = PrimFunc("rows", (begin, end, A, k), For(j, begin, end - begin, "serial", Store(A, (k - low, j), value)))
        body = For(i, idx(low), idx(4), "serial", Launch("rows", idx(8), (A, i)))
        kernel = native(IRModule((PrimFunc("launches", (A,), body, (A,)), task)))
        a = np.zeros((4, 8), np.int64)
        assert kernel(a) == 0
        np.testing.assert_array_equal(a, np.arange(8) // 4 + ((np.arange(4) + low) // 2)[:, None])
        assert ("ashr" not in kernel.code.llvm_ir) == cheap


@pytest.mark.parametrize("name", ["fma", "free", "2 mm", "f.body", "\u00e9"])
def test_any_name_of_a_function_works(native, name):
    A, T = make_buffer("A", [2], "float64"), make_buffer("T", [2], "float64", "global")
    a = Load(A, (ZERO,))
    body = Allocate(T, seq(Store(T, (ZERO,), call("fma", a, a, a)), Store(A, (ONE,), Load(T, (ZERO,)))))
    found = np.array([3.0, 0.0])
    assert native(PrimFunc(name, (A,), body, (A,)))(found) == 0
    assert found[1] == 12.0


def test_machine_code_is_released_with_the_last_reference():
    """Loading it over and over does not grow the process."""
    script = """
import gc, resource
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import resolve_target
from loopwright.codegen.jit import load
from loopwright.artifact.options import CodegenOptions
from loopwright.ir.build import make_buffer
from loopwright.ir.constants import const
from loopwright.ir.stmt import IRModule, PrimFunc, Store
A = make_buffer("A", [1], "float32")
func = PrimFunc("f", (A,), Store(A, (const(0, "index"),), const(1.0, "float32")), (A,))
code = compile_module(IRModule((func,)), resolve_target("native"), CodegenOptions(cache=False))
def rounds(count):
    for _ in range(count):
        assert load(code).address()
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = rounds(30)
print((rounds(300) - before) / 300)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 20, "KiB per load"
