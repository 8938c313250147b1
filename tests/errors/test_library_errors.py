"""Targets with libraries: unknown ones, ones that are not installed, and BLAS with other functions than expected."""

import subprocess
import sys

import needed_tools
import pytest

import loopwright as lw
from loopwright import te
from loopwright.runtime.functions.blas import c_prototype

BLOCK_SCIPY = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "scipy":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import loopwright as lw

"""


def without_scipy(program, *arguments):
    """What a child process prints, for which scipy is not installed."""
    run = subprocess.run(
        [sys.executable, "-c", BLOCK_SCIPY + program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_library_that_is_unknown():
    with pytest.raises(lw.TargetError, match="there is no library 'mkl'; -libs= takes cblas"):
        lw.resolve_target("llvm -mcpu=native -libs=cblas,mkl")


def test_a_target_with_a_library_that_is_not_installed():
    said = without_scipy(
        """
try:
    lw.compile(lw.Function([lw.var("x", (2, 2))], lw.var("x", (2, 2))), target="llvm -libs=cblas")
except lw.TargetError as error:
    print(error)
"""
    )
    assert "cblas comes with scipy, which is missing: pip install 'loopwright[blas]'" in said


def test_a_saved_library_that_calls_what_is_not_installed(tmp_path):
    needed_tools.module("scipy")
    a, b = lw.var("a", (4, 4)), lw.var("b", (4, 4))
    path = tmp_path / "product.lwlib"
    lw.compile(lw.Function([a, b], lw.nn.matmul(a, b)), target="llvm -mcpu=native -libs=cblas", jobs=1).save(path)
    said = without_scipy(
        """
try:
    lw.Engine(lw.load(sys.argv[1])).init()
except lw.TargetError as error:
    print(error)
""",
        str(path),
    )
    assert "pip install 'loopwright[blas]'" in said


def test_a_kernel_that_calls_blas_without_scipy_in_its_target():
    said = without_scipy(
        """
from loopwright import te
gemv = te.extern_function("sgemm_", ["update float32"])
def body(ins, outs):
    ib = te.IRBuilder()
    ib.call(gemv, outs[0])
    return ib.get()
B = te.extern((4,), [], body, dtype="float32")
try:
    lw.build(lw.create_schedule(B), [B], name="lost")
except lw.TargetError as error:
    print(error)
"""
    )
    assert "lost calls sgemm_ of BLAS, which comes with scipy, but that is missing: pip install" in said


def test_a_function_of_blas_that_is_declared_wrongly():
    needed_tools.module("scipy")
    wrong = te.extern_function("sgemm_", ["update float32"])

    def body(ins, outs):
        ib = te.IRBuilder()
        ib.call(wrong, outs[0])
        return ib.get()

    B = te.extern((4,), [], body, dtype="float32")
    with pytest.raises(
        lw.TargetError, match=r"calls `void sgemm_\(float \*\)`, but this scipy has `void sgemm_\(int8_t"
    ):
        lw.build(lw.create_schedule(B), [B])


def test_cythons_signatures_are_read_as_prototypes():
    found = c_prototype("f_", "void (char *, int *, __pyx_t_5scipy_6linalg_11cython_blas_s *, double *, long *)")
    assert found == "void f_(int8_t *, int32_t *, float *, double *, long *)"
