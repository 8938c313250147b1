"""What a kernel says to arrays that do not fit: the argument by name, what was expected, what found, what to do."""

import re

import numpy as np
import pytest

from loopwright.base.errors import LoopwrightError, RuntimeArgumentError
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import host_target
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ZERO
from loopwright.ir.expr import Load
from loopwright.ir.stmt import For, IRModule, PrimFunc, Store
from loopwright.runtime.kernel import Kernel


def scale_func(A, C):
    i, j = index_var("i"), index_var("j")
    inner = For(j, ZERO, A.shape[1], "serial", Store(C, (i, j), Load(A, (i, j)) + Load(A, (i, j))))
    return PrimFunc("double", (A, C), For(i, ZERO, A.shape[0], "serial", inner), (C,))


def kernel_of(A, C):
    func = scale_func(A, C)
    return Kernel(func, compile_module(IRModule((func,)), host_target()))


@pytest.fixture(scope="module")
def fixed():
    return kernel_of(make_buffer("A", (4, 8), "float32"), make_buffer("C", (4, 8), "float32"))


@pytest.fixture(scope="module")
def symbolic():
    """A[n, m] → C[n, m + 1], of which the last column stays as it is."""
    n, m = index_var("n"), index_var("m")
    return kernel_of(make_buffer("A", (n, m), "float32"), make_buffer("C", (n, m + 1), "float32"))


def zeros(*shape, kind="float32"):
    return np.zeros(shape, kind)


def read_only(array):
    array.flags.writeable = False
    return array


class OnGpu:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("nobody may ask")


class Unexportable:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        raise BufferError("a sparse tensor")


def fails(kernel, arrays, *messages):
    for call in (kernel, kernel.bind, kernel.time):
        with pytest.raises(RuntimeArgumentError) as caught:
            call(*arrays)
        for message in messages:
            assert message in str(caught.value), str(caught.value)
    assert isinstance(caught.value, (LoopwrightError, ValueError))


def test_fitting_arrays_pass(fixed, symbolic):
    a, c = np.ones((4, 8), np.float32), zeros(4, 8)
    fixed(a, c)
    np.testing.assert_array_equal(c, 2 * a)
    wide = zeros(4, 9)
    symbolic(a, wide)
    np.testing.assert_array_equal(wide[:, :8], 2 * a)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_number_of_arrays(fixed, count):
    fails(
        fixed,
        [zeros(4, 8) for _ in range(count)],
        "double takes 2 arrays (A: float32[4, 8], C: float32[4, 8] (written))",
        f"called with {count}",
    )


@pytest.mark.parametrize("value", [3.0, [[1.0]], None, "text"])
def test_no_array(fixed, value):
    fails(
        fixed, (value, zeros(4, 8)), "double: argument 1 (A) should be a numpy array", type(value).__name__, "asarray"
    )


@pytest.mark.parametrize("kind", ["float64", "int32", "float16", "complex64", "bool", "object", "U1"])
def test_dtype(fixed, kind):
    fails(
        fixed,
        (zeros(4, 8), zeros(4, 8, kind=kind)),
        "argument 2 (C) should have dtype float32, found",
        "astype('float32')",
    )


def test_byte_order(fixed):
    fails(
        fixed,
        (zeros(4, 8, kind=">f4"), zeros(4, 8)),
        "argument 1 (A) has the foreign byte order of dtype >f4",
        "astype",
    )


@pytest.mark.parametrize("shape", [(), (32,), (4, 8, 1)])
def test_rank(fixed, shape):
    fails(fixed, (zeros(*shape), zeros(4, 8)), f"argument 1 (A) should have 2 dimensions (4, 8), found shape {shape}")


def test_shape(fixed):
    fails(
        fixed,
        (zeros(4, 8), zeros(4, 7)),
        "argument 2 (C) should have extent 8 in dimension 1, found 7: the shape should be (4, 8), found (4, 7)",
    )
    fails(fixed, (zeros(0, 8), zeros(4, 8)), "argument 1 (A) should have extent 4 in dimension 0, found 0")


def test_symbolic_shapes_contradict_each_other(symbolic):
    fails(
        symbolic,
        (zeros(3, 5), zeros(4, 6)),
        "argument 2 (C) should have extent 3 (n = 3 from dimension 0 of argument 1 (A)) in dimension 0, found 4",
    )
    fails(
        symbolic,
        (zeros(3, 5), zeros(3, 5)),
        "should have extent 6 (m + 1, where m = 5 from dimension 1 of argument 1 (A)) in dimension 1, found 5",
    )


def test_strides(fixed, symbolic):
    message = "strides (32, 4) in bytes, found"
    fails(fixed, (zeros(4, 16)[:, ::2], zeros(4, 8)), f"argument 1 (A) should be contiguous, with {message} (64, 8)")
    fails(fixed, (zeros(8, 4).T, zeros(4, 8)), message, "numpy.ascontiguousarray")
    fails(fixed, (zeros(4, 8)[::-1], zeros(4, 8)), message)
    fails(fixed, (np.broadcast_to(np.float32(1), (4, 8)), zeros(4, 8)), message)
    fails(symbolic, (zeros(4, 8), zeros(4, 18)[:, ::2]), "argument 2 (C) should be contiguous")


def test_declared_strides():
    A = make_buffer("A", (4, 8), "float32", strides=(1, 4))
    kernel = kernel_of(A, make_buffer("C", (4, 8), "float32"))
    c = zeros(4, 8)
    kernel(np.ones((8, 4), np.float32).T, c)
    np.testing.assert_array_equal(c, 2 * np.ones((4, 8)))
    fails(kernel, (zeros(4, 8), c), "argument 1 (A) should have strides (4, 16) in bytes, found (32, 4)")


def test_symbolic_strides():
    A = make_buffer("A", (4, 8), "float32", strides=(index_var("s"), 1))
    kernel = kernel_of(A, make_buffer("C", (4, 8), "float32"))
    kernel(zeros(4, 11)[:, :8], zeros(4, 8))
    fails(kernel, (zeros(4, 8)[::-1], zeros(4, 8)), "argument 1 (A) has the negative stride -32 in dimension 0")
    odd = np.ndarray((4, 8), np.float32, zeros(200), strides=(34, 4))
    fails(kernel, (odd, zeros(4, 8)), "argument 1 (A) should have strides (32, 4) in bytes, found (34, 4)")


def test_alignment(fixed):
    odd = np.frombuffer(bytearray(4 * 8 * 4 + 1), np.uint8)[1:].view(np.float32).reshape(4, 8)
    advice = "numpy.array makes a copy that does"
    fails(fixed, (odd, zeros(4, 8)), "argument 1 (A) should start at an address divisible by 4", advice)
    fails(fixed, (zeros(4, 8), odd), "argument 2 (C) should start at", "numpy.empty makes one that does")
    fixed(np.array(odd), np.empty((4, 8), np.float32))


def test_declared_alignment():
    kernel = kernel_of(make_buffer("A", (4, 8), "float32", alignment=64), make_buffer("C", (4, 8), "float32"))
    memory = np.zeros(256, np.float32)
    first = (-memory.ctypes.data % 64) // 4
    kernel(memory[first : first + 32].reshape(4, 8), zeros(4, 8))
    fails(kernel, (memory[first + 4 : first + 36].reshape(4, 8), zeros(4, 8)), "divisible by 64")


def test_read_only_output(fixed):
    fixed(read_only(zeros(4, 8)), zeros(4, 8))
    fails(
        fixed,
        (zeros(4, 8), read_only(zeros(4, 8))),
        "argument 2 (C) is written by the kernel, but the array is read-only",
    )


def test_overlap(fixed, symbolic):
    memory = np.zeros((12, 8), np.float32)
    message = "argument 2 (C) is written, but shares memory with argument 1 (A); pass a copy"
    fails(fixed, (memory[:4], memory[:4]), message)
    fails(fixed, (memory[:4], memory[3:7]), message)
    fails(fixed, (memory[3:7], memory[:4]), message)
    fixed(memory[:4], memory[4:8])
    fixed(memory[8:], memory[4:8])
    flat = np.zeros(100, np.float32)
    fails(symbolic, (flat[:6].reshape(2, 3), flat[5:13].reshape(2, 4)), message)
    symbolic(flat[:6].reshape(2, 3), flat[6:14].reshape(2, 4))


def test_too_large_an_empty_array(symbolic):
    fails(
        symbolic,
        (np.empty((1 << 60, 0), np.float32), zeros(4, 1)),
        "argument 1 (A) has shape (1152921504606846976, 0), beyond the limit of 2**47 bytes",
    )


def test_masked_array(fixed):
    fails(fixed, (np.ma.masked_array(zeros(4, 8)), zeros(4, 8)), "argument 1 (A) is a masked array", "filled")


def test_dlpack_refusals(fixed):
    fails(fixed, (OnGpu(), zeros(4, 8)), "argument 1 (A) is a OnGpu on DLPack device 2, which is not the CPU")
    fails(
        fixed,
        (Unexportable(), zeros(4, 8)),
        "argument 1 (A) is a Unexportable that DLPack cannot export",
        "a sparse tensor",
    )


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2", 10**6])
def test_threads(fixed, threads):
    for call in (fixed, fixed.bind, fixed.time):
        with pytest.raises(
            RuntimeArgumentError, match=re.escape(f"threads should be a whole number from 1 to 1024, found {threads!r}")
        ):
            call(zeros(4, 8), zeros(4, 8), threads=threads)


def test_a_dimension_that_no_array_tells():
    n = index_var("n")
    with pytest.raises(RuntimeArgumentError, match="double: the value of n cannot be read off the arguments"):
        kernel_of(make_buffer("A", (4, n + n), "float32"), make_buffer("C", (4, n * 2), "float32"))


def test_a_parameter_with_an_offset():
    with pytest.raises(RuntimeArgumentError, match=r"argument 1 \(A\) cannot be an array: it has an offset"):
        kernel_of(make_buffer("A", (4, 8), "float32", elem_offset=3), make_buffer("C", (4, 8), "float32"))
