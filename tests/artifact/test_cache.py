"""The cache on disk: hits, damage, races between processes, folders that cannot be written."""

import logging
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from loopwright.artifact.cache import DiskCache, cache_folder, disk_cache
from loopwright.artifact.cache_entry import About
from loopwright.artifact.cache_key import cache_key
from loopwright.artifact.options import CodegenOptions
from loopwright.codegen import compile as compile_step
from loopwright.codegen.compile import compile_module
from loopwright.codegen.host import resolve_target
from loopwright.codegen.machine import feature_string
from loopwright.ir.build import make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Load
from loopwright.ir.stmt import IRModule, PrimFunc, Store

KEY = "ab" * 32
ABOUT = About("object", "twice", "llvm -mcpu=x86-64", "LLVM 0")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    feature_string(resolve_target("native"))  # what LLVM says of it is remembered elsewhere
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    return tmp_path


def module():
    A = make_buffer("A", [4], "float32")
    zero = const(0, "index")
    return IRModule((PrimFunc("twice", (A,), Store(A, (zero,), Load(A, (zero,)) * 2.0), (A,)),))


def entries(folder):
    return sorted(p for p in folder.rglob("*") if p.is_file())


def test_a_second_compilation_takes_the_object_from_disk(folder, monkeypatch):
    assert cache_folder() == folder
    target = resolve_target("native")
    first = compile_module(module(), target)
    assert len(entries(folder)) == 1

    def fail(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(compile_step, "_optimized", fail)
    assert compile_module(module(), target).object == first.object
    with pytest.raises(AssertionError, match="compiled again"):
        compile_module(module(), target, CodegenOptions(opt_level=1))


def test_the_key_depends_on_all_that_an_entry_depends_on():
    native, options = resolve_target("native"), CodegenOptions()

    def key(kind="object", program="text", target=native, options=options, folders=("codegen",), more=""):
        return cache_key(kind, program, target, options, folders, more)

    different = [
        key(),
        key(kind="function"),
        key(program="text "),
        key(target=resolve_target("x86-64")),
        key(target=replace(native, l1_bytes=1)),
        key(target=replace(native, keys=("mine", *native.keys))),
        key(target=replace(native, threads=native.threads + 1)),
        key(options=CodegenOptions(precision="strict")),
        key(options=CodegenOptions(opt_level=2)),
        key(options=CodegenOptions(debug=True)),
        key(folders=("codegen", "ir")),
        key(more="records"),
    ]
    assert len(set(different)) == len(different)
    assert key(options=CodegenOptions(cache=False)) == key()
    assert key(target=replace(native, features=frozenset(sorted(native.features, reverse=True)))) == key()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign", "moved"])
def test_damaged_entries_are_dropped_with_a_warning(tmp_path, damage, caplog):
    cache = DiskCache(tmp_path)
    cache.put(KEY, ABOUT, b"machine code")
    (path,) = entries(tmp_path)
    data = path.read_bytes()
    key = KEY
    match damage:
        case "flip":
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        case "cut":
            path.write_bytes(data[:-3])
        case "empty":
            path.write_bytes(b"")
        case "foreign":
            path.write_bytes(b"\x7fELF" + data)
        case "moved":
            key = "ab" + "cd" * 31
            path.rename(path.with_name(key[2:]))
    with caplog.at_level(logging.WARNING, "loopwright.cache"):
        assert cache.get(key) is None
    assert "damaged" in caplog.text
    assert entries(tmp_path) == []
    cache.put(key, ABOUT, b"anew")
    assert cache.get(key) == b"anew"


_WRITER = """
import sys
from pathlib import Path
from loopwright.artifact.cache import DiskCache
from loopwright.artifact.cache_entry import About
cache = DiskCache(Path(sys.argv[1]))
about = About("object", sys.argv[2], "", "")
content = bytes([int(sys.argv[2])]) * 100_000
for _ in range(100):
    cache.put("ab" * 32, about, content)
    found = cache.get("ab" * 32)
    assert found is not None and len(found) == 100_000 and len(set(found)) == 1, "a torn entry"
"""


def test_concurrent_writers_and_readers_see_whole_entries(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), str(n)], stderr=subprocess.PIPE) for n in (1, 2)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=600)
        assert writer.returncode == 0, errors.decode()
        assert errors == b""
    assert len(entries(tmp_path)) == 1


def test_an_unusable_folder_is_reported_once_and_compilation_goes_on(tmp_path, monkeypatch, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(blocked))
    with caplog.at_level(logging.WARNING, "loopwright.cache"):
        for level in (1, 2):
            assert compile_module(module(), resolve_target("native"), CodegenOptions(opt_level=level)).object
    assert caplog.text.count("going on without it") == 1


def test_the_default_folder_is_the_users_cache(monkeypatch):
    monkeypatch.delenv("LOOPWRIGHT_CACHE_DIR")
    assert cache_folder().name == "loopwright"
    assert disk_cache() is disk_cache()
    assert os.fspath(cache_folder()).startswith(os.path.expanduser("~"))  # noqa: PTH111
