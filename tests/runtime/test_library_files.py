"""The file of a library: what is mapped, what damage is found, and when."""

import mmap
import random
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.artifact.section_file import FORMAT, MAGIC, write_sections
from loopwright.base.aligned import ARENA_ALIGNMENT
from loopwright.base.state import State

X = np.arange(-6, 6, dtype=np.float32).reshape(2, 6)
WEIGHT = np.arange(-9, 9, dtype=np.float32).reshape(6, 3)
WANTED = np.maximum(X @ WEIGHT, 0)


@pytest.fixture(scope="module")
def library():
    x = lw.var("x", X.shape)
    return lw.compile(lw.Function([x], lw.nn.relu(lw.nn.matmul(x, lw.const(WEIGHT)))), jobs=1)


@pytest.fixture
def path(library, tmp_path):
    library.save(tmp_path / "small.lwlib")
    return tmp_path / "small.lwlib"


def runs(library):
    np.testing.assert_allclose(lw.Engine(library)({"x": X})[0], WANTED)
    return True


def memory_of(array):
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array


def with_byte(data, position, value):
    return data[:position] + bytes([value]) + data[position + 1 :]


def position_of_weight(library, data):
    (weight,) = library.model.constants
    return data.index(weight.tobytes())


def test_constants_are_mapped_on_cache_lines_and_run(path):
    loaded = lw.load(path)
    (weight,) = loaded.model.constants
    assert isinstance(memory_of(weight), mmap.mmap)
    assert weight.ctypes.data % ARENA_ALIGNMENT == 0
    assert not weight.flags.writeable
    assert runs(loaded)


def test_all_of_a_library_comes_back(library, path):
    loaded = lw.load(path, verify=True).model
    assert [f.object for f in loaded.functions] == [f.object for f in library.model.functions]
    assert [f.llvm_ir for f in loaded.functions] == [f.llvm_ir for f in library.model.functions]
    assert [f.choices for f in loaded.functions] == [f.choices for f in library.model.functions]
    assert (loaded.steps, loaded.inputs) == (library.model.steps, library.inputs)


def test_a_library_is_still_there_when_another_takes_its_place(library, path):
    loaded = lw.load(path)
    library.save(path)
    assert runs(loaded)
    assert runs(lw.load(path))


@pytest.mark.parametrize("array", [np.float32(2.5), np.zeros((0, 3), np.float32), np.arange(6)[::2], np.array([True])])
def test_constants_of_all_shapes_come_back(library, tmp_path, array):
    model = replace(library.model, constants=(np.asarray(array), *library.model.constants))
    lw.Library(model).save(tmp_path / "more.lwlib")
    found = lw.load(tmp_path / "more.lwlib", verify=True).model.constants[0]
    assert (found.shape, found.dtype) == (np.shape(array), np.asarray(array).dtype)
    assert np.array_equal(found, array)


def test_a_file_that_is_cut_short_is_refused(path):
    data = path.read_bytes()
    for size in {*range(0, len(data), 199), 16, 56, len(data) - 1}:
        path.write_bytes(data[:size])
        with pytest.raises(lw.ModelError, match="no library of this version, or is damaged"):
            lw.load(path)


def test_a_byte_that_is_changed_is_found_or_means_nothing(library, path):
    data, seed = path.read_bytes(), random.randrange(1 << 32)
    choose = random.Random(seed)
    found = 0
    for _ in range(300):
        position = choose.randrange(len(data))
        changed = with_byte(data, position, data[position] ^ (1 << choose.randrange(8)))
        path.write_bytes(changed)
        try:
            loaded = lw.load(path, verify=True)
        except lw.ModelError:
            found += 1
            continue
        assert data[position] == 0, f"seed {seed}: byte {position}"  # between two sections
        assert loaded.model.functions[0].object == library.model.functions[0].object
    assert found > 250, f"seed {seed}"


def test_damage_to_constants_is_found_where_they_are_read(library, path):
    data = path.read_bytes()
    position = position_of_weight(library, data)
    path.write_bytes(with_byte(data, position + 1, data[position + 1] ^ 1))
    lw.load(path)
    with pytest.raises(lw.ModelError, match="does not have the digest that the header states"):
        lw.load(path, verify=True)


def test_damage_to_code_is_found_before_it_runs(library, path):
    data = path.read_bytes()
    position = data.index(library.model.functions[0].object) + 80
    path.write_bytes(with_byte(data, position, data[position] ^ 1))
    with pytest.raises(lw.ModelError, match="does not have the digest that the header states"):
        lw.load(path)


@pytest.mark.parametrize("content", [None, [], {}, {"name": 5}, {"name": "x", "functions": [{"symbol": "y"}]}, 3.5])
def test_content_of_something_else_is_refused(content, tmp_path):
    write_sections(tmp_path / "other", content, [b"abc"])
    with pytest.raises(lw.ModelError, match="no library of this version, or is damaged"):
        lw.load(tmp_path / "other")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 a zip archive", b"\x7fELF not ours", b"loopwright model"])
def test_foreign_files_are_refused(data, tmp_path):
    (tmp_path / "foreign").write_bytes(data)
    with pytest.raises(lw.ModelError, match="no library of this version"):
        lw.load(tmp_path / "foreign")


def test_a_file_with_its_header_first_as_formats_up_to_15_had_it_is_told_of(tmp_path):
    header = b'{"format": 15, "sections": [], "content": {}}'
    old = MAGIC + len(header).to_bytes(8, "little") + sha256(header).digest() + header
    (tmp_path / "old.lwlib").write_bytes(old)
    with pytest.raises(lw.ModelError, match=f"it has a format before {FORMAT}, which this version reads"):
        lw.load(tmp_path / "old.lwlib")


def test_a_library_for_another_machine_is_refused_with_what_is_missing(library, tmp_path):
    other = lw.resolve_target("llvm -mtriple=riscv64-linux-gnu")
    lw.Library(replace(library.model, target=other)).save(tmp_path / "other.lwlib")
    with pytest.raises(lw.TargetError, match=r"other\.lwlib cannot run here: .* compiled for riscv64"):
        lw.load(tmp_path / "other.lwlib")


def test_a_library_for_another_system_is_compiled_once_more(tmp_path, caplog):
    x = lw.var("x", (2, 8))
    arch = lw.resolve_target("native").arch
    found = lw.compile(lw.Function([x], lw.nn.relu(x)), f"llvm -mtriple={arch}-pc-windows-gnu", jobs=1)
    found.save(tmp_path / "other.lwlib")
    (y,) = lw.Engine(lw.load(tmp_path / "other.lwlib"))([np.full((2, 8), -1, np.float32)])
    np.testing.assert_array_equal(y, np.zeros((2, 8)))
    assert "once more: the kernel was compiled for" in caplog.text
    assert "-pc-windows-gnu, but this machine is" in caplog.text


def test_a_failed_save_leaves_the_old_file_alone(library, path):
    before = path.read_bytes()
    broken = replace(library.model, constants=(*library.model.constants, object()))
    with pytest.raises(Exception, match="object"):
        lw.Library(broken).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_nothing_is_left_behind_in_the_folder(library):
    with tempfile.TemporaryDirectory() as folder:
        library.save(Path(folder) / "small.lwlib")
        assert [p.name for p in Path(folder).iterdir()] == ["small.lwlib"]


def test_a_file_has_the_permissions_that_new_files_have(library, tmp_path):
    (tmp_path / "plain").touch()
    library.save(tmp_path / "saved.lwlib")
    assert (tmp_path / "saved.lwlib").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_machine_code_is_loaded_without_a_look_at_what_the_cpu_implies(path, monkeypatch):
    """LLVM takes 26 MiB to tell, which only a process that compiles needs."""
    monkeypatch.setattr("loopwright.codegen.machine.implied_features", lambda *_: pytest.fail("it was asked"))
    assert runs(lw.load(path))


@pytest.mark.parametrize("damage", ["empty", "random", "cut", "another machine's", "another's"])
def test_code_that_is_no_object_file_is_refused_though_its_digest_is_right(library, tmp_path, damage):
    code = library.functions[0].object
    forged = {
        "empty": b"",
        "random": bytes(range(256)) * 4,
        "cut": code[: len(code) // 2],
        "another machine's": code[:0x12] + (183).to_bytes(2, "little") + code[0x14:],
        "another's": library.model.entry_object,
    }[damage]
    functions = tuple(replace(function, object=forged) for function in library.functions)
    lw.Library(replace(library.model, functions=functions)).save(tmp_path / "forged.lwlib")
    with pytest.raises(lw.ModelError, match=r"forged\.lwlib is damaged: the code of \w+ "):
        lw.load(tmp_path / "forged.lwlib")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"states": (State(0, 1),)}, "a state is an input or output that the model does not have"),
        ({"states": (State(0, 0, 2),)}, "a state has an axis that its tensor does not have"),
        ({"states": (State(0, 0), State(0, 0))}, "two states are one tensor"),
        ({"repeated": ((0, 2),)}, "what is repeated is an axis that no input has"),
        ({"segments": -1}, "the number of growing segments is negative"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(library, tmp_path, fields, problem):
    lw.Library(replace(library.model, **fields)).save(tmp_path / "wrong.lwlib")
    with pytest.raises(lw.ModelError, match=problem):
        lw.load(tmp_path / "wrong.lwlib")
