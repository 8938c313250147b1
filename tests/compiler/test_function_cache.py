"""The cache of compiled functions: what is told apart, what stays in memory, damage on disk, processes that race."""

import logging
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.artifact import cache_key
from loopwright.artifact.cache import DiskCache
from loopwright.artifact.cache_entry import About
from loopwright.artifact.choice import Choice
from loopwright.artifact.function import CompiledFunction
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.model import workers
from loopwright.compiler.model.compile_model import compile_model
from loopwright.compiler.model.function_cache import (
    SOURCES,
    FunctionCache,
    from_bytes,
    function_cache,
    function_key,
    to_bytes,
)
from loopwright.compiler.settings import CompileSettings

TARGET = lw.resolve_target("native")
CHOICE = Choice("relu", "relu(float32[4])", "relu.generic", "the only one")


def made(name):
    return CompiledFunction(
        name, f"{name}_entry", ("n",), (CHOICE,), ("a > 0",), "loops é", "llvm", b"\x00code\xff", ("f",)
    )


def model(name="x"):
    x = lw.var(name, (3,))
    return lw.Function((x,), lw.nn.relu(x))


@pytest.fixture
def cache(tmp_path):
    return FunctionCache(lambda: DiskCache(tmp_path), limit=2)


def test_a_key_depends_on_the_sources_of_all_folders_that_the_compiler_imports():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    may_import = project["tool"]["importlinter"]["contracts"][0]["may_import"]
    reached, left = set(), {"compiler"}
    while left:
        reached |= left
        left = {other for folder in left for other in may_import[folder]} - reached
    assert sorted(SOURCES) == sorted(reached)


def test_code_of_another_version_of_llvm_is_not_taken_from_the_cache(monkeypatch):
    parts = model(), CompileSettings(TARGET)
    before = function_key(*parts)
    assert function_key(*parts) == before
    monkeypatch.setattr(cache_key, "compiler_version", lambda: "another")
    assert function_key(*parts) != before


def test_a_function_is_read_back_as_it_was_written():
    assert from_bytes(to_bytes(made("a"))) == made("a")


def test_memory_holds_the_functions_used_last_and_disk_all(cache):
    keys = {name: letter * 64 for name, letter in (("one", "1"), ("two", "2"), ("three", "3"))}
    for name in ("one", "two"):
        cache.put(keys[name], made(name), TARGET)
    assert cache.get(keys["one"]) == made("one")
    cache.put(keys["three"], made("three"), TARGET)
    assert cache.info() == (1, 0, 0, 2, 2)
    assert cache.get(keys["one"]) == made("one")  # used since "two", so it stayed
    assert cache.info().memory_hits == 2
    assert cache.get(keys["two"]) == made("two")
    assert cache.info() == (2, 1, 0, 2, 2)
    assert cache.get("4" * 64) is None
    assert cache.info().misses == 1


def test_what_disk_holds_in_place_of_a_function_is_dropped_with_a_warning(cache, tmp_path, caplog):
    for content in (
        b"",
        b"\xff" * 40,
        to_bytes(made("a"))[:30],
        b"\x02" + bytes(7) + b"[]",
        b"\x02" + bytes(7) + b"{}",
    ):
        DiskCache(tmp_path).put("a" * 64, About("function", "a", "", ""), content)
        with caplog.at_level(logging.WARNING, "loopwright.cache"):
            assert cache.get("a" * 64) is None
        assert "no compiled function" in caplog.text
        assert DiskCache(tmp_path).entries() == []
        caplog.clear()


def test_equal_functions_of_other_models_are_taken_from_memory(monkeypatch, caplog):
    first = compile_model(model("first"), CompileSettings(TARGET))

    def fail(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(workers, "emit_function", fail)
    before = function_cache.info().memory_hits
    with caplog.at_level(logging.INFO, "loopwright.cache"):
        again = compile_model(model("second"), CompileSettings(TARGET))
    assert "functions: 1 from the cache, 0 compiled; " in caplog.text
    assert caplog.text.strip().endswith("of at most 256 are in memory")
    assert again.functions == first.functions
    assert function_cache.info().memory_hits == before + 1
    with pytest.raises(AssertionError, match="compiled again"):
        compile_model(model(), CompileSettings(TARGET, CodegenOptions(cache=False)))


def test_a_function_of_open_extents_whose_window_needs_more_than_one_is_taken_from_disk(caplog):
    rows = lw.te.var("rows")
    x = lw.var("x", (1, 1, rows, 16))
    function = lw.Function((x,), lw.nn.conv2d(x, lw.const(np.ones((1, 1, 4, 3), np.float32))))
    options = CodegenOptions()
    first = compile_model(function, CompileSettings(TARGET, options), jobs=1)
    function_cache.clear()
    with caplog.at_level(logging.INFO, "loopwright.cache"):
        again = compile_model(function, CompileSettings(TARGET, options), jobs=1)
    assert "1 from the cache, 0 compiled; " in caplog.text
    assert "dropping" not in caplog.text
    assert again.functions == first.functions


_COMPILES = """
import sys
import numpy as np
import loopwright as lw
x = lw.var("x", (3,))
sys.stdin.read()  # until all are there
for exponent in (1, 2, 3):
    library = lw.compile(lw.Function((x,), lw.nn.relu(lw.nn.multiply(x, lw.const(np.float32(exponent))))), jobs=1)
    (y,) = lw.Engine(library, threads=1)([np.array([-1, 0, 2], np.float32)])
    assert list(y) == [0, 0, 2 * exponent], y
"""


def test_processes_that_compile_the_same_at_once_share_the_cache(tmp_path):
    environment = os.environ | {"LOOPWRIGHT_CACHE_DIR": str(tmp_path)}
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _COMPILES], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    for racer in racers:
        racer.stdin.close()
        racer.stdin = None
    for racer in racers:
        _, errors = racer.communicate(timeout=600)
        assert racer.returncode == 0, errors.decode()
        assert errors == b""
    found = DiskCache(tmp_path).entries()
    assert len([e for e in found if e.about().kind == "function"]) == 3
    assert [e.problem() for e in found] == [None] * len(found)
