"""Kernels compile for targets near and far, with vector instructions, and need no library but a few C functions."""

import re

import pytest

import loopwright as lw
from loopwright import te

ALLOWED = {
    "lw_parallel_for", "posix_memalign", "aligned_alloc", "free", "memset", "memcpy", "memmove",
    "fma",  # of float64, where the target has no instruction
}  # fmt: skip


@pytest.mark.parametrize(
    "spec",
    [
        "x86-64",
        pytest.param("x86-64-v3", marks=pytest.mark.slow),
        "x86-64-v4",
        "llvm -mtriple=aarch64-unknown-linux-gnu",
        pytest.param("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-v1", marks=pytest.mark.slow),
    ],
)
def test_objects_need_no_library(example_kernels, spec):
    found = example_kernels(spec)
    assert set(found) == {"matmul", "chain", "softmax", "conv2d", "digits", "default"}
    foreign = {name: sorted(set(kernel["undefined"]) - ALLOWED) for name, kernel in found.items()}
    assert {name: symbols for name, symbols in foreign.items() if symbols} == {}
    assert "lw_parallel_for" in found["matmul"]["undefined"]  # the reader of symbols reads something


@pytest.fixture(scope="module")
def product():
    A, B = (te.placeholder((32, 32), "float32", name=name) for name in "AB")
    k = te.reduce_axis((0, 32), name="k")
    return A, B, te.compute((32, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


@pytest.mark.parametrize(
    ("spec", "begins", "machine", "instructions", "scalar"),
    [
        ("x86_64-unknown-linux-gnu -mcpu=x86-64", b"\x7fELF", 62, r"mulps", r"mulss"),
        ("aarch64-unknown-linux-gnu", b"\x7fELF", 183, r"fmla\s+v\d+\.4s", r"fmadd\s"),
        ("aarch64-unknown-linux-gnu -mcpu=neoverse-v1", b"\x7fELF", 183, r"fmla\s+v\d+\.4s", r"fmadd\s"),
        ("x86_64-pc-windows-gnu -mcpu=x86-64-v3", b"\x64\x86", None, r"vfmadd\w+ps\s.*ymm", r"vfmadd\w+ss"),
        ("arm64-apple-macosx12.0.0 -mcpu=apple-m1", b"\xcf\xfa\xed\xfe", None, r"fmla\.4s\s+v\d+", r"fmadd\s"),
        ("riscv64-unknown-linux-gnu -mattr=+v", b"\x7fELF", 243, r"vfm(?:acc|add)\.v[vf]", r"fmadd\.s"),
        ("riscv64-unknown-linux-gnu", b"\x7fELF", 243, r"fmadd\.s", r"\bv[a-z]+\.v[vf]"),  # it has no vectors
        ("wasm32-unknown-unknown -mattr=+simd128", b"\0asm", None, r"f32x4\.mul", r"\bf32\.mul"),
    ],
)
def test_objects_have_the_form_and_the_vectors_of_their_target(
    product, tmp_path, spec, begins, machine, instructions, scalar
):
    target = lw.resolve_target(f"llvm -mtriple={spec}")
    kernel = lw.build(lw.default_schedule(product[-1], target), product, target, "product")
    found = kernel.export(tmp_path).code.read_bytes()
    assert found.startswith(begins)
    assert machine is None or int.from_bytes(found[18:20], "little") == machine
    # The product of 32 by 32 needs 8 vectors of 4 elements a row, or what is unrolled of that.
    assert len(re.findall(instructions, kernel.assembly)) >= 4
    assert not re.search(scalar, kernel.assembly)


def test_a_model_for_webassembly_has_its_weights_inside(tmp_path):
    w = lw.const([[float(i + j) for i in range(8)] for j in range(8)])
    x = lw.var("x", (4, 8), "float64")
    library = lw.compile(lw.Function([x], lw.nn.matmul(x, w)), "llvm -mtriple=wasm32-unknown-unknown", jobs=1)
    (constant,) = library.model.constants
    assert constant.tobytes() in library.export(tmp_path).code.read_bytes()
