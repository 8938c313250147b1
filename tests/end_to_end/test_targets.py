"""The kernels of the examples compile for targets near and far, and need no library but a few C functions."""

import pytest

ALLOWED = {
    "lw_parallel_for", "posix_memalign", "aligned_alloc", "free", "memset", "memcpy", "memmove",
    "fma",  # of float64, where the target has no instruction
}  # fmt: skip


@pytest.mark.parametrize(
    "spec",
    [
        "x86-64",
        "x86-64-v3",
        "x86-64-v4",
        "llvm -mtriple=aarch64-unknown-linux-gnu",
        "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-v1",
    ],
)
def test_objects_need_no_library(example_kernels, spec):
    found = example_kernels(spec)
    assert set(found) == {"matmul", "chain", "softmax", "conv2d", "digits", "default"}
    foreign = {name: sorted(set(kernel["undefined"]) - ALLOWED) for name, kernel in found.items()}
    assert {name: symbols for name, symbols in foreign.items() if symbols} == {}
    assert "lw_parallel_for" in found["matmul"]["undefined"]  # the reader of symbols reads something
