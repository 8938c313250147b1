"""Two builds give the same bytes: schedule, loop IR, LLVM IR, optimized LLVM IR and object, whatever the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SPEC = "x86-64-v3"


@pytest.fixture(scope="module")
def built(example_kernels, tmp_path_factory):
    return example_kernels(SPEC, PYTHONHASHSEED="1", LOOPWRIGHT_CACHE_DIR=str(tmp_path_factory.mktemp("first")))


@pytest.mark.parametrize(
    ("seed", "modules"),
    [
        ("2", ()),
        (
            "3",
            (
                "loopwright.runtime.kernel",
                "loopwright.codegen.vector_math.emit",
                "loopwright.lowering.passes.vectorize",
            ),
        ),
        ("random", ("loopwright.te", "loopwright.ir.simplify", "loopwright.lowering.primitives.caching")),
    ],
)
def test_hash_seed_and_import_order_do_not_matter(example_kernels, built, tmp_path, seed, modules):
    again = example_kernels(SPEC, *modules, PYTHONHASHSEED=seed, LOOPWRIGHT_CACHE_DIR=str(tmp_path))
    assert again == built


def test_what_comes_out_of_the_cache_is_what_went_in(example_kernels, tmp_path):
    cache = {"LOOPWRIGHT_CACHE_DIR": str(tmp_path / "cache"), "PYTHONHASHSEED": "0"}
    cold = example_kernels(SPEC, **cache)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert kept
    warm = example_kernels(SPEC, **cache)
    assert warm == cold
    assert all(kernel["object"] == kernel["object_uncached"] for kernel in warm.values())
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(kept)


def test_a_model_is_the_same_whether_compiled_by_one_process_or_two(tmp_path):
    """Each compile starts with an empty cache, and with another order of sets."""
    script = Path(__file__).with_name("compile_model.py")

    def compiled(jobs, seed):
        command = [sys.executable, str(script), "squeezenet", str(jobs)]
        environment = {"PYTHONHASHSEED": seed, "LOOPWRIGHT_CACHE_DIR": str(tmp_path / f"{jobs}-{seed}")}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    serial, parallel = compiled(1, "1"), compiled(2, "2")
    assert len(serial["functions"]) > 20
    assert parallel == serial
