"""Exports as a C programmer uses them: programs in C, built by the system's compiler, run models and kernels."""

import ctypes
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import needed_tools
import numpy as np
import pytest
from exported_network import COLUMNS, DEPTH, ROWS, SIZES, WIDTH, X, in_a_row, network

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import host_target
from loopwright.codegen.machine import target_machine
from loopwright.ir.build import make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Compare, Load
from loopwright.ir.stmt import Assert, IRModule, PrimFunc, Store, seq
from loopwright.runtime.exports.export import export_kernel
from loopwright.runtime.exports.linker import linker_for

PROGRAM = Path(__file__).with_name("run_export.c")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
ARM = "llvm -mtriple=aarch64-unknown-linux-gnu"
LIBC = {"aligned_alloc", "free", "memcpy", "memmove", "memset", "memcmp", "open", "close", "lseek", "mmap", "munmap"}
LIBC |= {"getpid", "clock_gettime", "sched_getcpu", "sched_yield", "sigfillset", "sigdelset"}

pytestmark = needed_tools.needs("cc", package="gcc")


@pytest.fixture(scope="module")
def library():
    function, expected = network()
    found = lw.compile(function, jobs=1)
    assert any("lw_parallel_for" in f.llvm_ir for f in found.functions)
    assert found.model.first_stage.intermediates
    for output, wanted in zip(lw.Engine(found)([X]), expected, strict=True):
        np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-5)
    return found


def emulator():
    """How to compile for aarch64, and how to run it here; skips the test where either is missing."""
    qemu = needed_tools.program("qemu-aarch64", "qemu-aarch64-static", package="qemu-user")
    try:
        compiler = linker_for(lw.resolve_target(ARM))
    except lw.TargetError:
        needed_tools.missing("a linker for aarch64", "gcc-aarch64-linux-gnu")
    # What ziglang links statically is musl.
    return [word.replace("linux-gnu", "linux-musl") if "ziglang" in compiler else word for word in compiler], [qemu]


def cc(*arguments, compiler=("cc",)):
    run = subprocess.run([*compiler, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def build(folder, *inputs, flags=(), compiler=("cc",)):
    program = folder / "run"
    header = f'-DMODEL_HEADER="{folder / "net.h"}"'
    cc(*STRICT, header, *SIZES, *flags, PROGRAM, *inputs, "-o", program, "-lm", "-pthread", compiler=compiler)
    return program


def outputs(program, *arguments, command=()):
    """What the program's two threads found, one row each, and whether more threads in each find the same."""
    found = []
    for threads in ("1", "2"):
        run = subprocess.run(
            [*command, str(program), threads, *map(str, arguments)],
            input=X.tobytes(), capture_output=True, check=False, timeout=600,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        found.append(np.frombuffer(run.stdout, np.float32).reshape(2, -1))
    assert np.array_equal(*found)
    return found[0]


def run_program(program, library, *arguments):
    """The program's outputs are those of the engine, to the bit."""
    expected = in_a_row(lw.Engine(library)([X]))
    for found in outputs(program, *arguments):
        assert np.array_equal(found, expected)


def symbols(path, kind):
    run = subprocess.run(["nm", "-P", kind, str(path)], capture_output=True, text=True, check=True)
    return {line.split()[0].split("@")[0] for line in run.stdout.splitlines()}


def test_a_program_in_c_runs_an_exported_object(library, tmp_path):
    files = library.export(tmp_path)
    assert (files.code, files.header, files.weights) == (tmp_path / "net.o", tmp_path / "net.h", None)
    run_program(build(tmp_path, files.code), library)


def test_an_export_needs_the_library_of_c_only_and_shows_its_interface_only(library, tmp_path):
    code = library.export(tmp_path).code
    needed = symbols(code, "-u")
    assert {name for name in needed if not name.startswith("pthread_")} <= LIBC
    assert "pthread_create" in needed
    assert symbols(code, "-g") - needed == {"net_create", "net_run", "net_destroy", "net_message"}


def test_weights_beside_are_mapped_and_checked(library, tmp_path):
    files = library.export(tmp_path, "shared", weights="beside")
    assert files.code == tmp_path / "net.so"
    program = build(tmp_path, files.code, f"-Wl,-rpath,{tmp_path}", flags=["-DBESIDE"])
    run_program(program, library, files.weights)
    weights = files.weights.read_bytes()
    damaged = {"short": weights[:-1], "other": b"0" * 64 + weights[64:], "missing": None}
    for name, data in damaged.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        run = subprocess.run([program, "1", tmp_path / name], input=X.tobytes(), capture_output=True, check=False)
        assert run.returncode == 1
        assert b"-3 the file of weights cannot be read" in run.stderr


def test_weights_beside_are_verified_where_that_is_asked_for(library, tmp_path):
    files = library.export(tmp_path, "shared", weights="beside")
    code, weights = ctypes.CDLL(str(files.code)), files.weights.read_bytes()
    assert code.net_verify(None) == -2
    changed = {"whole": weights, "swapped": weights[:64] + weights[72:80] + weights[64:72] + weights[80:]}
    for at in (64, len(weights) // 2, len(weights) - 1):
        data = bytearray(weights)
        data[at] ^= 0x10
        changed[f"byte{at}"] = bytes(data)
    for name, data in changed.items():
        assert (data == weights) == (name == "whole")
        (tmp_path / name).write_bytes(data)
        context = ctypes.c_void_p()
        assert code.net_create(ctypes.byref(context), 1, str(tmp_path / name).encode()) == 0
        assert code.net_verify(context) == (0 if name == "whole" else -3), name
        code.net_destroy(context)


def test_the_text_of_llvm_ir_is_the_whole_program(library, tmp_path):
    files = library.export(tmp_path, "llvm")
    module = llvm.parse_assembly(files.code.read_text(), llvm.create_context())
    (tmp_path / "net.o").write_bytes(target_machine(library.model.target).emit_object(module))
    run_program(build(tmp_path, tmp_path / "net.o", flags=["-DBESIDE"]), library, files.weights)


def test_a_model_of_symbolic_shapes_takes_them_with_each_run(library, tmp_path):
    function, _ = network(te.var("rows"))
    files = lw.compile(function, jobs=1).export(tmp_path)
    assert "net_run(net_context *context, const float *x_1, float *output0, float *output1, int64_t rows);" in (
        files.header.read_text()
    )
    program = build(tmp_path, files.code, flags=["-DDIMS"])
    run = subprocess.run([program, "2"], input=X.tobytes(), capture_output=True, check=True)
    found = np.frombuffer(run.stdout, np.float32)[: ROWS * WIDTH].reshape(ROWS, WIDTH)
    np.testing.assert_allclose(found, lw.Engine(library)([X])[0], rtol=1e-5, atol=1e-7)
    cc("-shared", files.code, "-o", tmp_path / "net.so")
    check_growth(ctypes.CDLL(str(tmp_path / "net.so")))


def check_growth(net):
    """One context takes few rows, then more, then none; and refuses fewer."""
    net.net_message.restype = ctypes.c_char_p
    context, pointer = ctypes.c_void_p(), ctypes.c_void_p
    assert net.net_create(ctypes.byref(context), 1) == 0
    for rows in (2, 300, 0, 5):
        x = np.ones((rows + 1, COLUMNS), np.float32)
        y, z = np.full((rows + 1, WIDTH), 7, np.float32), np.empty((rows + 1, DEPTH), np.float32)
        arguments = [context, *(array.ctypes.data_as(pointer) for array in (x, y, z))]
        assert net.net_run(*arguments, ctypes.c_int64(rows)) == 0
        np.testing.assert_allclose(y[:rows].sum(axis=1), 1, rtol=1e-5)
        assert (y[rows] == 7).all()
        assert b"rows is negative" in net.net_message(net.net_run(*arguments, ctypes.c_int64(-1)))
        assert net.net_run(*arguments, ctypes.c_int64(1 << 61)) == -1
    net.net_destroy(context)


def test_a_model_for_aarch64_runs_in_an_emulator(tmp_path):
    compiler, command = emulator()
    function, expected = network()
    files = lw.compile(function, target=ARM, jobs=1).export(tmp_path)
    program = build(tmp_path, files.code, flags=["-static"], compiler=compiler)
    for found in outputs(program, command=command):
        np.testing.assert_allclose(found, in_a_row(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("weights", ["inside", "beside"])
def test_headers_are_c99_and_cpp(library, tmp_path, language, weights):
    library.export(tmp_path, weights=weights)
    standard = ["-std=c99"] if language == "c" else ["-std=c++11"]
    cc("-fsyntax-only", "-x", language, *standard, *STRICT[1:], "-include", tmp_path / "net.h", "/dev/null")


def exported_kernel(kernel, folder, **options):
    files = kernel.export(folder, "shared", **options)
    return ctypes.CDLL(str(files.code)), files


def test_a_kernel_is_one_function(tmp_path):
    n = te.var("n")
    A = te.placeholder((n, 16), "float32", name="A")
    r = te.reduce_axis((0, 16), name="r")
    S = te.compute((n,), lambda i: te.sum(A[i, r], axis=r), name="double")
    kernel = lw.build(lw.default_schedule(S), [A, S], name="row_sum")
    code, files = exported_kernel(kernel, tmp_path)
    declared = "int row_sum(const float *A, float *double_, int64_t n, int threads);"
    assert declared in files.header.read_text()
    cc("-fsyntax-only", "-x", "c", *STRICT, "-include", files.header, "/dev/null")
    a, s = np.arange(112, dtype=np.float32).reshape(7, 16), np.empty(7, np.float32)
    pointers = a.ctypes.data_as(ctypes.c_void_p), s.ctypes.data_as(ctypes.c_void_p)
    for threads in (1, 2):
        s[:] = 0
        assert code.row_sum(*pointers, ctypes.c_int64(7), threads) == 0
        np.testing.assert_allclose(s, a.sum(axis=1))
    code.row_sum_message.restype = ctypes.c_char_p
    assert code.row_sum(None, pointers[1], ctypes.c_int64(7), 1) == -2
    assert b"a pointer is null" in code.row_sum_message(-2)
    assert b"n is negative" in code.row_sum_message(code.row_sum(*pointers, ctypes.c_int64(-1), 1))
    assert b"no code of this program" in code.row_sum_message(77)


def test_a_check_that_fails_is_a_code_with_its_message(tmp_path):
    A, B = make_buffer("A", [1], "int8"), make_buffer("B", [1], "float16")
    zero = (const(0, "index"),)
    checks = [Assert(Compare("<", Load(A, zero), const(n, "int8")), f"A is {n}, or more") for n in (9, 5)]
    func = PrimFunc("checked", (A, B), seq(*checks, Store(B, zero, const(1.0, "float16"))), (B,))
    code = compile_module(IRModule((func,)), host_target(), CodegenOptions(cache=False))
    files = export_kernel(func, code, tmp_path, "shared")
    assert "int checked(const int8_t *A, uint16_t *B, int threads);" in files.header.read_text()
    library = ctypes.CDLL(str(files.code))
    library.checked_message.restype = ctypes.c_char_p
    b = ctypes.c_uint16()
    codes = [library.checked(ctypes.byref(ctypes.c_int8(a)), ctypes.byref(b), 1) for a in (12, 7, 3)]
    assert [library.checked_message(c) for c in codes] == [b"A is 9, or more", b"A is 5, or more", b"no error"]
    assert b.value == 0x3C00


def test_functions_of_c_that_a_kernel_calls_are_linked_to_it(tmp_path):
    triple = te.extern_function("triple_all", ["int64", "update float32"])

    def body(ins, outs):
        ib = te.IRBuilder()
        ib.call(triple, 4, outs[0])
        return ib.get()

    B = te.extern((4,), [], body, dtype="float32", name="B")
    own = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_float))(lambda n, x: None)
    lw.register_symbol(triple, own, override=True)
    files = lw.build(lw.create_schedule(B), [B], name="tripled").export(tmp_path)
    assert "void triple_all(int64_t, float *);" in files.header.read_text()
    source = "#include <stdint.h>\nvoid triple_all(int64_t n, float *x) { while (n--) x[n] *= 3; }\n"
    (tmp_path / "own.c").write_text(source)
    cc("-shared", "-fPIC", tmp_path / "own.c", files.code, "-o", tmp_path / "both.so")
    b = np.arange(4, dtype=np.float32)
    assert ctypes.CDLL(str(tmp_path / "both.so")).tripled(b.ctypes.data_as(ctypes.c_void_p), 1) == 0
    np.testing.assert_array_equal(b, [0, 3, 6, 9])
