"""Debug builds find what the interpreter finds, and say it in the same words; where nothing is wrong, they compute."""

import threading

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import resolve_target
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ONE, ZERO
from loopwright.ir.constants import const as make_const
from loopwright.ir.expr import Binary, IfThenElse, Let, Load, Logical, Ramp, Var
from loopwright.ir.makers import as_index, broadcast_to, cast
from loopwright.ir.stmt import Allocate, Assert, For, If, IRModule, LetStmt, PrimFunc, Store, While, seq
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.runtime.kernel import Kernel

n = index_var("n")
A = make_buffer("A", (n, 4), "float32")
I = make_buffer("I", (3,), "int32")
OUT = make_buffer("OUT", (8,), "float32")
T = make_buffer("T", (6,), "float32", "local")


def loop(name, extent, body, kind="serial"):
    var = index_var(name)
    return For(var, ZERO, as_index(extent), kind, body(var))


def number(value, kind="float32"):
    return make_const(value, kind)


def lanes(first, count=4, step=1):
    return Ramp(as_index(first), as_index(step), count)


def picked(k):
    return cast("index", Load(I, (k,)))


def masked(body, mask):
    return If(mask, body)


def zeros(count=1):
    return broadcast_to(number(0.0), count)


def with_let(value, body):
    var = Var("v", value.dtype)
    return Let(var, value, body(var))


def let_stmt(value, body):
    var = Var("v", value.dtype)
    return LetStmt(var, value, body(var))


# What is wrong in each shows with I = [0, 2, 9] or n = 5 only, or always.
FAULTS = {
    "an index from data": loop("i", 3, lambda i: Store(OUT, (i,), Load(A, (picked(i), ZERO)))),
    "a negative index": loop("i", 3, lambda i: Store(OUT, (i,), Load(A, (i, 1 - i)))),
    "a later dimension": loop("i", 3, lambda i: Store(OUT, (i,), Load(A, (ZERO, i * 2)))),
    "a store": loop("i", 3, lambda i: Store(OUT, (i * 4,), number(1.0))),
    "local memory": Allocate(
        T, seq(loop("i", 6, lambda i: Store(T, (i,), zeros())), Store(OUT, (ZERO,), Load(T, (picked(ONE + 1),))))
    ),
    "a parallel loop in a serial one": loop(
        "i", 2, lambda i: loop("j", 4, lambda j: Store(OUT, (i * 5 + j,), number(1.0)), "parallel")
    ),
    "the index of an index": Store(OUT, (ZERO,), Load(A, (cast("index", Load(I, (as_index(3),))), ZERO))),
    "a condition": loop("i", 4, lambda i: If(Load(I, (i,)) > 0, Store(OUT, (i,), zeros()))),
    "an extent": loop("i", 3, lambda i: loop("j", picked(i + 2), lambda j: Store(OUT, (ZERO,), zeros()))),
    "the condition of a while loop": While(Load(A, (picked(as_index(2)), ZERO)) > 0.0, Store(OUT, (ZERO,), zeros())),
    "the branch taken": loop(
        "i", 3, lambda i: Store(OUT, (i,), IfThenElse(i > 1, Load(A, (i + 3, ZERO)), number(0.0)))
    ),
    "a let": loop(
        "i", 3, lambda i: Store(OUT, (i,), with_let(picked(i), lambda v: Load(A, (v, ZERO)) + Load(A, (v, ONE))))
    ),
    "a let statement": loop("i", 3, lambda i: let_stmt(Load(A, (ZERO, i * 2)), lambda v: Store(OUT, (i,), v))),
    "a vector": loop("i", 2, lambda i: Store(OUT, (lanes(i * 5),), zeros(4))),
    "a vector that runs along two dimensions": Store(OUT, (lanes(0),), Load(A, (lanes(0), lanes(3, step=-2)))),
    "a vector of three": Store(OUT, (lanes(6, 3),), zeros(3)),
    "a lane that the mask leaves on": Store(OUT, (lanes(6),), zeros(4), lanes(0) < broadcast_to(as_index(3), 4)),
    "a masked load": Store(
        OUT, (lanes(0),), Load(A, (ZERO, lanes(2)), lanes(0) > broadcast_to(as_index(1), 4))
    ),
    "a masked scalar": Store(OUT, (as_index(8),), number(0.0), Load(I, (ZERO,)) < 1),
    "a view": Store(make_buffer("VIEW", (2,), "float32", data=OUT.data), (as_index(2),), number(0.0)),
    "a division": loop("i", 3, lambda i: Store(OUT, (Binary("//", i, picked(ONE - i) - 2),), zeros())),
    "a remainder": Store(OUT, (Binary("%", as_index(5), n - 5),), zeros()),
    "a vector of divisions": Store(
        OUT, (Binary("//", lanes(0), broadcast_to(picked(ZERO), 4)),), zeros(4), lanes(0) < broadcast_to(ZERO, 4)
    ),
}  # fmt: skip

RIGHT = {
    "a branch not taken": loop(
        "i", 8, lambda i: Store(OUT, (i,), IfThenElse(i < 5, Load(A, (i, ZERO)), number(0.0)))
    ),
    "lanes that are off": Store(
        OUT, (lanes(6),), Load(A, (ZERO, lanes(2)), lanes(0) < broadcast_to(as_index(2), 4)),
        lanes(0) < broadcast_to(as_index(2), 4),
    ),
    "a statement under a condition": loop("i", 9, lambda i: masked(Store(OUT, (i,), number(1.0)), i < 8)),
    "no iteration": loop("i", n - 5, lambda i: Store(OUT, (i + 100,), number(1.0))),
    "division by what is not 0": Store(OUT, (Binary("//", n, n - 3),), number(1.0)),
}  # fmt: skip


def debug_build(body):
    func = PrimFunc("f", (A, I, OUT), body, (OUT,))
    module = outline_parallel(func, keep_loops=True)
    target = resolve_target("native").with_threads(2)
    return Kernel(func, compile_module(module, target, CodegenOptions(debug=True, cache=False)))


def arrays():
    a = np.arange(20, dtype=np.float32).reshape(5, 4) + 1.0
    return a, np.array([0, 2, 9], np.int32), np.full(8, -1.0, np.float32)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_told_in_the_words_of_the_interpreter(fault):
    kernel = debug_build(FAULTS[fault])
    with pytest.raises(lw.InterpretError) as expected:
        lw.interpret(kernel.func)(*arrays())
    with pytest.raises(lw.BoundsError) as found:
        kernel(*arrays())
    assert str(found.value) == f"f: {expected.value}"


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_in_bounds_is_computed(case):
    kernel = debug_build(RIGHT[case])
    expected, found = arrays(), arrays()
    lw.interpret(kernel.func)(*expected)
    kernel(*found)
    np.testing.assert_array_equal(found[2], expected[2])


def gather(schedule=lambda s, B: None, **options):
    m = te.var("m")
    X, P = te.placeholder((m,), name="X"), te.placeholder((m,), "int64", name="P")
    B = te.compute((m, 3), lambda i, j: X[P[i]] * 2.0, name="B")
    s = lw.create_schedule(B)
    schedule(s, B)
    return lw.build(s, [X, P, B], name="gather", **options)


def tiled(s, B):
    i, j = B.op.axis
    outer, inner = s[B].split(i, 4)
    s[B].reorder(outer, j, inner)
    s[B].parallel(outer)
    s[B].vectorize(inner)


def gather_arrays(count=11):
    p = np.arange(count)[::-1].copy()
    return np.arange(count, dtype=np.float32), p, np.zeros((count, 3), np.float32)


def test_the_tensor_the_index_and_the_loops_are_named():
    kernel = gather(tiled, debug=True)
    x, p, b = gather_arrays()
    p[6] = 17
    expected = (
        "gather: out of bounds: X[index(P[i_outer * 4 + i_inner])] reads X[17], "
        "but dimension 0 of X has extent 11; its shape is (11)\n"
        "  in `B[i_outer * 4 + i_inner, j] = X[index(P[i_outer * 4 + i_inner])] * 2.0`\n"
        "  at i_outer = 1, j = 0, i_inner = 2"
    )
    for call in (lambda: kernel(x, p, b), kernel.bind(x, p, b), lambda: kernel(x, p, b, threads=1)):
        for _ in range(2):  # the record of one call is none of the next
            with pytest.raises(lw.BoundsError) as error:
                call()
            assert str(error.value) == expected
    p[6] = 3
    kernel(x, p, b)
    np.testing.assert_array_equal(b, np.repeat(2 * x[p][:, None], 3, axis=1))


def test_without_debug_nothing_is_checked_and_the_code_is_another():
    checked, plain = gather(tiled, debug=True), gather(tiled)
    assert "cmpxchg" in checked.llvm_ir
    assert "cmpxchg" not in plain.llvm_ir
    assert checked.code.messages
    assert not plain.code.messages
    assert checked.loop_ir != plain.loop_ir


def test_records_of_threads_that_fail_together_are_whole():
    kernel = gather(lambda s, B: s[B].parallel(B.op.axis[0]), debug=True, target="llvm -threads=4")
    x, p, b = gather_arrays(400)
    p += 1000
    for _ in range(50):
        with pytest.raises(lw.BoundsError) as error:
            kernel(x, p, b)
        text = str(error.value)
        i = int(text.split("at i = ")[1].split(",", maxsplit=1)[0])
        assert f"reads X[{p[i]}]" in text


def test_calls_at_the_same_time_have_records_of_their_own():
    kernel = gather(debug=True)
    messages: dict[int, set[str]] = {}

    def work(wrong):
        x, p, b = gather_arrays()
        p[2] = wrong
        bound = kernel.bind(x, p, b)
        for k in range(100):
            try:
                bound() if k % 2 else kernel(x, p, b)
            except lw.BoundsError as error:
                messages.setdefault(wrong, set()).add(str(error).split(",")[0])

    threads = [threading.Thread(target=work, args=(wrong,)) for wrong in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start = "gather: out of bounds: X[index(P[i])] reads"
    assert messages == {100: {f"{start} X[100]"}, 200: {f"{start} X[200]"}}


def test_memory_in_use_is_freed():
    m = te.var("m")
    X, P = te.placeholder((m,), name="X"), te.placeholder((m,), "int64", name="P")
    Y = te.compute((m,), lambda i: X[i] + 1.0, name="Y")
    B = te.compute((m,), lambda i: Y[P[i]], name="B")
    kernel = lw.build(lw.create_schedule(B), [X, P, B], debug=True)
    body = kernel.llvm_ir.split("define")[1]
    assert body.count('@"free"(ptr %') == body.count("ret i32") - 1  # all but the one for want of memory
    x, p, b = np.zeros(5, np.float32), np.array([0, 1, 2, 3, 5]), np.zeros(5, np.float32)
    with pytest.raises(lw.BoundsError, match=r"Y\[index\(P\[i\]\)\] reads Y\[5\], but dimension 0 of Y has extent 5"):
        kernel(x, p, b)


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize(("kind", "value"), [("float32", np.nan), ("float16", np.nan), ("int64", -1), ("uint8", 255)])
def test_memory_never_written_reads_as_nan_or_ones(scope, kind, value):
    R = make_buffer("R", (2,), kind)
    shape = (2, 3) if scope == "local" else (n, 3)
    S = make_buffer("S", shape, kind, scope)
    use = seq(loop("j", 2, lambda j: Store(R, (j,), Load(S, (j, ONE)))), Store(S, (ZERO, ONE), number(1, kind)))
    func = PrimFunc("f", (A, R), loop("i", 2, lambda i: Allocate(S, use)), (R,))
    options = CodegenOptions(debug=True, cache=False)
    found = np.zeros(2, kind)
    Kernel(func, compile_module(IRModule((func,)), resolve_target("native"), options))(arrays()[0], found)
    np.testing.assert_array_equal(found, np.full(2, value, kind))


def test_a_message_has_room_for_so_many_numbers():
    shape = (1,) * 40
    X, P = te.placeholder(shape, name="X"), te.placeholder((1,), "int64", name="P")
    B = te.compute((1,), lambda i: X[(P[i],) * 40], name="B")
    kernel = lw.build(lw.create_schedule(B), [X, P, B], debug=True)
    with pytest.raises(
        lw.BoundsError, match=r"reads X\[3, 3, .*, 3\], but dimension 0 of X has extent 1; its shape is .1, 1,.*…"
    ):
        kernel(np.zeros(shape, np.float32), np.array([3]), np.zeros(1, np.float32))


def test_huge_indices_do_not_overflow_into_bounds():
    X, P = te.placeholder((4,), name="X"), te.placeholder((2,), "int64", name="P")
    B = te.compute((2,), lambda i: X[te.cast(P[i], "index") * 4 + 1], name="B")
    kernel = lw.build(lw.create_schedule(B), [X, P, B], debug=True)
    with pytest.raises(lw.BoundsError):
        kernel(np.zeros(4, np.float32), np.array([0, 1 << 61]), np.zeros(2, np.float32))


def test_constant_indices_out_of_bounds_of_small_local_memory():
    body = Allocate(
        T,
        seq(
            loop("i", 6, lambda i: Store(T, (i,), zeros()), "unrolled"),
            Store(OUT, (ZERO,), Load(T, (as_index(6),))),
        ),
    )
    with pytest.raises(lw.BoundsError, match=r"T\[6\], but dimension 0 of T has extent 6"):
        debug_build(body)(*arrays())
    func = PrimFunc("f", (A, I, OUT), body, (OUT,))
    compile_module(IRModule((func,)), resolve_target("native"))  # no debug build: compiles all the same


def test_an_assertion_of_a_debug_build_is_an_assertion():
    kernel = debug_build(Assert(Logical("and", n > 5, n > 6), "n is small"))
    with pytest.raises(lw.KernelError, match="f: n is small") as error:
        kernel(*arrays())
    assert not isinstance(error.value, lw.BoundsError)


def test_the_interpreter_runs_debug_builds(monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_INTERPRET", "1")
    kernel = gather(tiled, debug=True)
    x, p, b = gather_arrays()
    kernel(x, p, b)
    np.testing.assert_array_equal(b[:, 0], 2 * x[p])
    p[0] = -1
    with pytest.raises(lw.InterpretError, match=r"reads X\[-1\]"):
        kernel(x, p, b)


def test_the_time_of_a_debug_build_says_nothing():
    with pytest.raises(lw.LoopwrightError, match="gather is a debug build, whose time says nothing"):
        gather(debug=True).time(*gather_arrays())
