"""Libraries on machines that lack features of their targets: compiled once more, or refused with what is missing."""

import subprocess
from dataclasses import replace

import needed_tools
import numpy as np
import pytest

import loopwright as lw

X = np.random.default_rng(2).normal(size=(9, 40)).astype(np.float32)
W = np.random.default_rng(3).normal(size=(40, 24)).astype(np.float32)
HOST = lw.resolve_target("native")
V3 = replace(lw.resolve_target("x86-64-v3"), triple=HOST.triple)

pytestmark = pytest.mark.skipif(
    HOST.arch != "x86_64" or not V3.features <= HOST.features, reason="libraries of AVX2 do not run here"
)


@pytest.fixture
def machine(monkeypatch):
    """Makes of this machine one with the features of a target."""

    def become(target):
        for module in ("foreign", "reemit", "library"):
            monkeypatch.setattr(f"loopwright.runtime.{module}.host_target", lambda: target)

    return become


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A library for a cpu with AVX-512."""
    path = tmp_path_factory.mktemp("wide") / "wide.lwlib"
    x = lw.var("x", X.shape)
    body = lw.nn.relu(lw.nn.matmul(x, lw.const(W)))
    lw.compile(lw.Function([x], body), target="x86-64-v4", jobs=1).save(path)
    return path


def uses_wide_registers(library, tmp_path):
    for function in library.functions:
        (tmp_path / "code.o").write_bytes(function.object)
        command = ["objdump", "-d", str(tmp_path / "code.o")]
        if "%zmm" in subprocess.run(command, capture_output=True, text=True, check=True).stdout:
            return True
    return False


@needed_tools.needs("objdump", package="binutils")
def test_a_library_of_wider_vectors_is_compiled_once_more(wide, tmp_path, machine, caplog):
    machine(lw.resolve_target("x86-64-v4"))
    assert uses_wide_registers(lw.load(wide), tmp_path)
    machine(V3)
    library = lw.load(wide)
    assert library.model.target.cpu == "x86-64-v3"
    assert not uses_wide_registers(library, tmp_path)
    assert "compiled for x86-64-v4 with avx512bw" in caplog.text
    np.testing.assert_allclose(lw.Engine(library)([X])[0], np.maximum(X @ W, 0), rtol=1e-5, atol=1e-5)


def test_a_library_whose_instructions_are_missing_is_refused(wide, machine):
    machine(replace(lw.resolve_target("x86-64"), triple=HOST.triple))
    with pytest.raises(lw.TargetError, match=r"cannot run here: .* avx512f.* and its function .*matmul.* of fma$"):
        lw.load(wide)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("declare <16 x float> @llvm.x86.avx512.rcp14.ps.512()", "avx512f"),
        ("declare <8 x float> @llvm.x86.avx512.rcp14.ps.256()", "avx512f, avx512vl"),
        ("declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512()", "avx512vnni"),
        ("declare void @llvm.x86.tdpbusd(i8, i8, i8)", "amx-int8, amx-tile"),
        ("declare void @llvm.x86.something.new()", r"llvm\.x86\.something\.new"),
    ],
)
def test_what_names_instructions_is_not_compiled_where_they_are_missing(wide, tmp_path, machine, text, missing):
    machine(lw.resolve_target("x86-64-v4"))
    model = lw.load(wide).model
    changed = tuple(replace(f, llvm_ir=f"{f.llvm_ir}\n{text}") for f in model.functions)
    lw.Library(replace(model, functions=changed)).save(tmp_path / "named.lwlib")
    machine(V3)
    with pytest.raises(lw.TargetError, match=f"has instructions of {missing}$"):
        lw.load(tmp_path / "named.lwlib")


def test_packed_functions_stay_what_they_are(tmp_path, machine):
    def double(x, y):
        y[...] = 2 * x

    x = lw.var("x", X.shape)
    body = lw.nn.relu(lw.nn.extern("test.reemit.double", x))
    lw.compile(lw.Function([x], body), target="x86-64-v4", jobs=1).save(tmp_path / "packed.lwlib")
    machine(V3)
    loaded = lw.load(tmp_path / "packed.lwlib")
    lw.register_func("test.reemit.double", double, override=True)
    np.testing.assert_array_equal(lw.Engine(loaded)([X])[0], np.maximum(2 * X, 0))
