"""Calling kernels: arrays in and out, symbolic dimensions, bound calls, timing, threads, errors of native code."""

import gc
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

from loopwright.base.dtype import INDEX
from loopwright.base.errors import (
    InterpretError,
    KernelError,
    LoopwrightError,
    OutOfMemoryError,
    RuntimeArgumentError,
    TargetError,
)
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import host_target, resolve_target
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ZERO, const
from loopwright.ir.expr import Cast, Load
from loopwright.ir.stmt import Assert, For, PrimFunc, Seq, Store
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.runtime.kernel import Kernel


def kernel_of(func, target=None):
    return Kernel(func, compile_module(outline_parallel(func), target or host_target()))


def add_func(n, m, kind="float32", loop="serial"):
    A, B, C = (make_buffer(name, (n, m), kind) for name in "ABC")
    i, j = index_var("i"), index_var("j")
    inner = For(j, ZERO, A.shape[1], "serial", Store(C, (i, j), Load(A, (i, j)) + Load(B, (i, j))))
    return PrimFunc("add", (A, B, C), For(i, ZERO, A.shape[0], loop, inner), (C,))


def copy_func(kind, n=16, strides=None):
    A, C = make_buffer("A", (n,), kind, strides=strides), make_buffer("C", (n,), kind)
    i = index_var("i")
    return PrimFunc("copy", (A, C), For(i, ZERO, A.shape[0], "serial", Store(C, (i,), Load(A, (i,)))), (C,))


def gather_func():
    """C[i] = A[I[i]], checked."""
    A, C = make_buffer("A", (4,), "float32"), make_buffer("C", (2,), "float32")
    index = make_buffer("I", (2,), "int64")
    i = index_var("i")
    position = Load(index, (i,))
    check = Assert(position < const(4, position.dtype), "index I is beyond the end of A")
    low = Assert(position >= const(0, position.dtype), "index I is negative")
    store = Store(C, (i,), Load(A, (Cast(INDEX, position),)))
    return PrimFunc("gather", (A, index, C), For(i, ZERO, const(2, INDEX), "serial", Seq((check, low, store))), (C,))


@pytest.fixture(scope="module")
def add():
    """C = A + B of two symbolic dimensions, rows in parallel."""
    return kernel_of(add_func(index_var("n"), index_var("m"), loop="parallel"))


def random_arrays(shape, seed=0):
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    return a, b, np.full(shape, np.nan, np.float32)


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (64, 3), (257, 31)])
@pytest.mark.parametrize("threads", [None, 1, 2, 8])
def test_symbolic_dimensions_and_threads(add, shape, threads):
    a, b, c = random_arrays(shape)
    assert add(a, b, c, threads=threads) is None
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
def test_empty_arrays(add, shape):
    add(*random_arrays(shape))
    empty = np.empty(shape, np.float32)
    add(empty, empty, empty)  # what has no bytes cannot overlap
    add.bind(empty, empty, empty)()


def test_many_shapes_in_turn(add):
    for n in range(1, 300):
        a, b, c = random_arrays((n, 2), seed=n)
        add(a, b, c)
        np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize(
    "kind",
    [
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "bfloat16",
        "float64",
    ],
)
def test_all_dtypes(kind):
    wanted = np.dtype(ml_dtypes.bfloat16) if kind == "bfloat16" else np.dtype(kind)
    a = np.random.default_rng(3).integers(0, 2, 16).astype(wanted)
    c = np.empty(16, wanted)
    kernel_of(copy_func(kind))(a, c)
    np.testing.assert_array_equal(a, c)


def test_views_subclasses_and_read_only_inputs(add):
    a, b, _ = random_arrays((4, 4))
    rows, whole = np.zeros((9, 4), np.float32)[3:7], np.zeros((1, 4), np.float32)
    b.flags.writeable = False
    add(a.view(np.matrix), b, rows)
    np.testing.assert_array_equal(rows, a + b)
    add(a[::4], b[::4], whole)  # the stride of a dimension of extent 1 does not matter
    np.testing.assert_array_equal(whole, (a + b)[:1])


def test_declared_strides():
    a = np.arange(32, dtype=np.float32)
    c = np.zeros(16, np.float32)
    kernel_of(copy_func("float32", strides=(2,)))(a[::2], c)
    np.testing.assert_array_equal(c, a[::2])


def test_symbolic_strides():
    kernel = kernel_of(copy_func("float32", n=index_var("n"), strides=(index_var("s"),)))
    a = np.arange(60, dtype=np.float32)
    for step in (1, 2, 7):
        c = np.zeros(len(a[::step]), np.float32)
        kernel(a[::step], c)
        np.testing.assert_array_equal(c, a[::step])


class Exported:
    """An array that only speaks DLPack, in its version of before 1.0 or after."""

    def __init__(self, array, old):
        self.array, self.old = array, old

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **request):
        if self.old and set(request) - {"stream"}:
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**request)


@pytest.mark.parametrize("old", [False, True])
def test_dlpack_inputs(add, old):
    a, b, c = random_arrays((6, 5))
    add(Exported(a, old), Exported(b, old), c)
    np.testing.assert_array_equal(c, a + b)


def test_dlpack_output_is_written_in_place(add):
    a, b, c = random_arrays((6, 5))
    add(a, b, Exported(c, old=False))
    np.testing.assert_array_equal(c, a + b)


def test_bound_kernel_runs_again_and_keeps_its_arrays(add):
    a, b, c = random_arrays((3, 4))
    bound = add.bind(a, b, c, threads=2)
    for value in range(5):
        a[:] = value
        bound()
        np.testing.assert_array_equal(c, a + b)
    kept = weakref.ref(a)
    del a
    gc.collect()
    assert kept() is not None
    bound()


def test_one_kernel_in_many_threads(add):
    failures = []

    def work(seed):
        try:
            for n in range(1, 60):
                a, b, c = random_arrays((n, 8), seed)
                add(a, b, c)
                np.testing.assert_array_equal(c, a + b)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_time(add):
    a, b, c = random_arrays((400, 400))
    timing = add.time(a, b, c, repeats=5, threads=1)
    assert len(timing.samples) == 5
    assert 1e-6 < timing.min <= timing.median <= timing.max < 1
    assert "repeats of" in str(timing)
    np.testing.assert_array_equal(c, a + b)
    assert add.time(a, b, c, repeats=2, number=3).number == 3


def test_time_takes_the_overhead_of_a_call_off():
    empty = PrimFunc("empty", (make_buffer("A", (1,), "float32"),), Seq(()), ())
    assert kernel_of(empty).time(np.zeros(1, np.float32)).min < 50e-9  # a call through ctypes takes ten times that


@pytest.mark.parametrize("options", [{"repeats": 0}, {"number": 0}, {"number": 2.5}, {"number": "all"}, {"threads": 0}])
def test_time_checks_its_options(add, options):
    with pytest.raises(RuntimeArgumentError, match=f"{next(iter(options))} should be"):
        add.time(*random_arrays((2, 2)), **options)


def test_texts(add):
    assert add.name == "add"
    assert add.signature == "add(A: float32[n, m], B: float32[n, m], C: float32[n, m] (written))"
    assert add.signature in repr(add)
    assert add.loop_ir.startswith("def add(A: float32[n, m]")
    assert "define" in add.llvm_ir
    assert "define" in add.llvm_ir_optimized
    assert "add" in add.assembly
    assert add.target is host_target()


def test_a_failed_assertion_is_an_error_with_its_message():
    gather = kernel_of(gather_func())
    a, c = np.arange(4, dtype=np.float32), np.zeros(2, np.float32)
    gather(a, np.array([3, 1]), c)
    np.testing.assert_array_equal(c, [3, 1])
    for index, message in ((4, "index I is beyond the end of A"), (-1, "index I is negative")):
        bad = np.array([0, index])
        for call in (lambda bad=bad: gather(a, bad, c), gather.bind(a, bad, c), lambda bad=bad: gather.time(a, bad, c)):
            with pytest.raises(KernelError, match=f"^gather: {message}$"):
                call()


def test_codes_of_native_code():
    kernel = kernel_of(gather_func())
    with pytest.raises(OutOfMemoryError, match="gather: there is no memory"):
        kernel._fail(-1)
    with pytest.raises(MemoryError):
        kernel._fail(-1)
    with pytest.raises(LoopwrightError, match="unknown error code 77"):
        kernel._fail(77)


def test_interpreter_on_demand(monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_INTERPRET", "1")
    kernel = kernel_of(gather_func())
    assert "interpreted" in repr(kernel)
    a, c = np.arange(4, dtype=np.float32), np.zeros(2, np.float32)
    kernel(a, np.array([2, 1]), c)
    np.testing.assert_array_equal(c, [2, 1])
    kernel.bind(a, np.array([0, 3]), c)()
    np.testing.assert_array_equal(c, [0, 3])
    with pytest.raises(InterpretError):
        kernel(a, np.array([0, 9]), c)
    with pytest.raises(RuntimeArgumentError, match="takes 3 arrays"):
        kernel(a)
    with pytest.raises(LoopwrightError, match="runs in the interpreter"):
        kernel.time(a, np.array([0, 3]), c)


def test_code_for_another_machine_can_be_read_but_not_called():
    kernel = kernel_of(add_func(2, 2), resolve_target("llvm -mtriple=riscv64-unknown-linux-gnu"))
    assert "add" in kernel.assembly
    with pytest.raises(TargetError, match="was compiled for riscv64, but this machine is"):
        kernel(*random_arrays((2, 2)))
    with pytest.raises(TargetError, match="was compiled for riscv64"):
        kernel.bind(*random_arrays((2, 2)))


@pytest.mark.parametrize("system", ["pc-windows-gnu", "w64-mingw32", "apple-macosx12.0.0", "unknown-linux-gnu"])
def test_code_for_another_system_is_not_called(system):
    host = host_target()
    target = resolve_target(f"llvm -mtriple={host.arch}-{system}")
    if target.system == host.system:
        pytest.skip(f"this system is {host.system}")
    kernel = kernel_of(add_func(2, 2), target)
    with pytest.raises(TargetError, match=f"compiled for {target.triple}, but this machine is {host.triple}"):
        kernel(*random_arrays((2, 2)))


def test_threads_of_the_target_are_the_default():
    kernel = kernel_of(add_func(2, 2), host_target().with_threads(3))
    assert "3 threads" in repr(kernel)
