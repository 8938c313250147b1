"""The cache of whole models: what is found without a compilation, what is not, damage, files that change."""

import logging
import mmap
import os
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.api import compile as compile_step
from loopwright.api import model_cache
from loopwright.api.model_cache import VARIABLE
from loopwright.artifact import cache as cache_module
from loopwright.artifact.cache import disk_cache
from loopwright.artifact.section_file import SectionList
from loopwright.cli import main
from loopwright.compiler.model import compile_model as compile_model_module
from loopwright.compiler.model.function_cache import function_cache
from loopwright.ops.definition import foreign_code
from loopwright.runtime.library import model_content

X = np.linspace(-1, 1, 5 * 12, dtype=np.float32).reshape(5, 12)
WEIGHT = np.linspace(-2, 1, 12 * 8, dtype=np.float32).reshape(12, 8)


def network(weight=WEIGHT):
    """relu(x @ weight), with the rows of x open."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 12])]
    results = [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 8])]
    graph = helper.make_graph(nodes, "network", given, results, [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, in a process in which no other test has registered code from outside."""
    monkeypatch.setattr(foreign_code, "_digests", {})
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return disk_cache()


@pytest.fixture
def path(tmp_path, cache):
    onnx.save(network(), tmp_path / "network.onnx")
    return tmp_path / "network.onnx"


@pytest.fixture
def compilations(monkeypatch):
    """Grows with each model that is compiled and not found."""
    found = []
    compiled = compile_step.compile_model

    def counted(function, *args):
        found.append(function.name)
        return compiled(function, *args)

    monkeypatch.setattr(compile_step, "compile_model", counted)
    return found


def result(library):
    (z,) = lw.Engine(library)({"x": X})
    return z


def models(cache):
    return [entry for entry in cache.entries() if entry.about().kind == "model"]


def mapped_files(cache):
    return [p for p in (cache.folder / "mapped").rglob("*") if p.is_file()]


def mapped_file(cache):
    (file,) = mapped_files(cache)
    return file


def test_a_model_is_compiled_once_and_found_as_it_was_made(path, compilations):
    first, second = lw.compile(path), lw.compile(path)
    assert compilations == ["network"]
    made, found = SectionList(), SectionList()
    assert model_content(second.model, found) == model_content(first.model, made)
    assert all(
        np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
        for a, b in zip(made.sections, found.sections, strict=True)
    )
    np.testing.assert_allclose(result(second), np.maximum(X.astype(np.float64) @ WEIGHT, 0), rtol=1e-5, atol=1e-5)
    assert second.source == path
    assert [part.name for part in second.timings.parts] == ["model_entry", "find_model"]


def test_constants_of_a_model_that_is_found_are_mapped(path):
    lw.compile(path)
    base = lw.compile(path).model.constants[0]
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)


def test_another_process_finds_it_whatever_its_hash_seed(path):
    lw.compile(path, "x86-64-v3")
    program = (
        "import sys, loopwright as lw\n"
        "parts = lw.compile(sys.argv[1], 'x86-64-v3').timings.parts\n"
        "print(*(part.name for part in parts))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", program, path]
    run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout.split() == ["model_entry", "find_model"]


@pytest.mark.parametrize(
    "changed",
    [
        {"target": "x86-64"},
        {"shapes": {"x": (5, 12)}},
        {"precision": "strict"},
        {"arithmetic": "direct"},
        {"layouts": "keep"},
        {"alternatives": True},
        {"unfused": ["relu"]},
        {"line_tables": True},
        {"batch_invariant": True},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_a_compilation_goes_by_tells_entries_apart(path, compilations, changed):
    for options in ({}, changed, {}, changed):
        lw.compile(path, **options)
    assert len(compilations) == 2


def test_equal_shapes_are_one_entry_however_they_are_written(path, compilations):
    for shapes in ({"x": (5, 12)}, {"x": [np.int64(5), 12]}):
        lw.compile(path, shapes=shapes)
    for shapes in (None, {}, {"x": (None, 12)}, {"x": (-1, 12)}):
        lw.compile(path, shapes=shapes)
    assert len(compilations) == 3, "as declared, with 5 rows, and open rows that were asked for"


def test_a_file_with_other_bytes_is_another_model(path, compilations):
    lw.compile(path)
    onnx.save(network(-WEIGHT), path)
    np.testing.assert_allclose(result(lw.compile(path)), np.maximum(-X.astype(np.float64) @ WEIGHT, 0), 1e-5, 1e-5)
    assert len(compilations) == 2


def test_weights_in_files_beside_a_model_are_looked_at(tmp_path, cache, compilations):
    path = tmp_path / "network.onnx"
    for weight in (WEIGHT, WEIGHT, -WEIGHT):
        onnx.save(network(weight), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        wanted = np.maximum(X.astype(np.float64) @ weight, 0)
        np.testing.assert_allclose(result(lw.compile(path)), wanted, rtol=1e-5, atol=1e-5)
        (tmp_path / "weights.bin").rename(tmp_path / "old.bin")
    assert len(compilations) == 2


def test_a_file_beside_a_model_that_has_gone_is_an_error(tmp_path, cache):
    path = tmp_path / "network.onnx"
    onnx.save(network(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    lw.compile(path)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(lw.ModelError, match="no such file beside the model"):
        lw.compile(path)


def test_a_file_that_changes_meanwhile_is_not_kept(path, cache, monkeypatch):
    compiled = compile_step.compile_model

    def compile_and_write(*args):
        path.touch()
        return compiled(*args)

    monkeypatch.setattr(compile_step, "compile_model", compile_and_write)
    os.utime(path, (1e9, 1e9))
    lw.compile(path)
    assert not models(cache)


def test_code_from_outside_keeps_models_out(path, cache, monkeypatch, compilations):
    monkeypatch.setattr(foreign_code, "_digests", {print: "of another distribution"})
    lw.compile(path)
    lw.compile(path)
    assert len(compilations) == 2
    assert not models(cache)


def test_whole_models_can_be_left_out(path, cache, monkeypatch):
    """What is kept then are functions alone: LLVM makes the entry of a model again sooner than it is found."""
    monkeypatch.setenv(VARIABLE, "0")
    function_cache.clear()
    library = lw.compile(path)
    kinds = [entry.about().kind for entry in cache.entries()]
    assert kinds == ["function"] * len(library.functions)


def test_constants_are_written_while_functions_are_compiled(path, cache, monkeypatch):
    weight = np.ones((12, 1 << 17), np.float32)
    onnx.save(network(weight), path)
    seen = []
    compile_all = compile_model_module.compile_all

    def compiled(work, workers, progress):
        deadline = time.monotonic() + 60
        while not (sizes := [s for file in mapped_files(cache) if (s := file.stat().st_size) >= weight.nbytes]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        seen.extend(sizes)
        return compile_all(work, workers, progress)

    monkeypatch.setattr(compile_model_module, "compile_all", compiled)
    lw.compile(path, jobs=1)
    (before,) = seen
    assert weight.nbytes <= before < mapped_file(cache).stat().st_size < 2 * weight.nbytes


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, ValueError])
def test_nothing_is_left_of_a_model_that_could_not_be_compiled(path, cache, monkeypatch, error):
    threads = threading.active_count()

    def failing(*_):
        raise error

    monkeypatch.setattr(compile_model_module, "compile_all", failing)
    with pytest.raises((error, lw.OutOfMemoryError)):
        lw.compile(path, jobs=1)
    assert not models(cache)
    assert not mapped_files(cache)
    assert threading.active_count() == threads


def test_a_disk_with_little_room_gets_no_model(path, cache, monkeypatch):
    monkeypatch.setattr(cache_module, "_FREE_AT_LEAST", 1 << 60)
    assert result(lw.compile(path, jobs=1)).shape == (5, 8)
    assert not models(cache)
    assert not mapped_files(cache)


def test_a_pipe_is_no_file_to_be_digested(tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    assert model_cache._File.of(tmp_path / "pipe.onnx") is None


def test_files_are_told_apart_by_all_their_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(model_cache, "_PIECE", 4)
    texts = [b"", b"abcd", b"abcde", b"abcdabcd", b"abcdabce", b"abceabcd", b"abcdabcdabcd"]
    digests = set()
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_bytes(text)
        digests.add(model_cache._File.of(tmp_path / str(number)).digest)
    assert len(digests) == len(texts)


@pytest.mark.parametrize("cut", [0, 10, 200, -1], ids=["empty", "magic", "sections", "header"])
def test_a_file_that_is_cut_short_is_made_anew(path, cache, compilations, caplog, cut):
    lw.compile(path)
    file = mapped_file(cache)
    file.write_bytes(file.read_bytes()[:cut])
    with caplog.at_level(logging.WARNING, "loopwright.cache"):
        lw.compile(path)
        lw.compile(path)
    assert len(compilations) == 2
    assert "dropping a damaged entry of the cache" in caplog.text


def test_damage_to_code_is_found_and_the_model_made_anew(path, cache, compilations, caplog):
    library = lw.compile(path)
    file = mapped_file(cache)
    data = bytearray(file.read_bytes())
    data[data.index(library.functions[0].object) + 70] ^= 1
    file.write_bytes(data)
    assert result(lw.compile(path)).shape == (5, 8)
    assert len(compilations) == 2
    assert "does not have the digest that the header states" in caplog.text


def test_the_file_of_another_entry_is_not_taken(path, tmp_path, cache, compilations, caplog):
    lw.compile(path)
    own = mapped_file(cache).read_bytes()
    onnx.save(network(-WEIGHT), tmp_path / "other.onnx")
    lw.compile(tmp_path / "other.onnx")
    for file in (cache.folder / "mapped").rglob("*"):
        if file.is_file():
            file.write_bytes(own)
    wanted = np.maximum(-X.astype(np.float64) @ WEIGHT, 0)
    np.testing.assert_allclose(result(lw.compile(tmp_path / "other.onnx")), wanted, rtol=1e-5, atol=1e-5)
    assert "is of another entry" in caplog.text


def test_an_entry_whose_file_is_gone_is_dropped(path, cache, compilations, caplog):
    lw.compile(path)
    mapped_file(cache).unlink()
    lw.compile(path)
    assert len(compilations) == 2
    assert "the file beside it is not there" in caplog.text


def test_the_command_lists_checks_and_removes_models_with_their_weights(path, cache, capsys):
    lw.compile(path)
    (entry,) = models(cache)
    file = mapped_file(cache)
    assert entry.size == entry.path.stat().st_size + file.stat().st_size
    assert main(["cache", "verify"]) == 0
    data = file.read_bytes()
    (weight,) = [c for c in lw.compile(path).model.constants if c.nbytes > 64]
    file.write_bytes(data.replace(weight.tobytes(), (weight + 1).tobytes()))
    assert main(["cache", "verify"]) == 1
    assert "does not have the digest that the header states" in capsys.readouterr().out
    assert main(["cache", "prune", "--all"]) == 0
    assert not [p for p in cache.folder.rglob("*") if p.is_file()]


def test_what_is_mapped_without_an_entry_is_removed_when_it_is_old(path, cache):
    lw.compile(path)
    (entry,) = models(cache)
    entry.path.unlink()
    assert not cache.leftovers(3600)
    os.utime(mapped_file(cache), (1e9, 1e9))
    assert cache.leftovers(3600) == [mapped_file(cache)]


def test_a_model_that_is_found_tells_what_a_compilation_tells(path, caplog):
    told = []
    for _ in range(2):
        calls = []
        with caplog.at_level(logging.INFO, "loopwright"):
            lw.compile(path, jobs=1, progress=lambda *call, calls=calls: calls.append(call))
        texts = [record.getMessage() for record in caplog.records if record.name == "loopwright.compile_engine"]
        told.append((calls, texts))
        caplog.clear()
    assert told[0] == told[1]
    with pytest.raises(lw.RuntimeArgumentError, match="jobs should be"):
        lw.compile(path, jobs=0)
