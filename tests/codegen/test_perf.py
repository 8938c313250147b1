"""perf gets names, code and lines of what is loaded, on request only, in files that are read here as it reads them."""

import ctypes
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.profiling import perf
from loopwright.codegen.profiling.dwarf_lines import line_rows
from loopwright.codegen.profiling.elf import ElfObject

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="perf is for Linux")


def product():
    A = te.placeholder((64, 48), name="A")
    B = te.placeholder((48, 64), name="B")
    r = te.reduce_axis((0, 48), name="r")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    io, _jo, ii, ji = s[C].tile(*C.op.axis, 4, 16)
    s[C].reorder(r, ii, ji)
    s[C].vectorize(ji)
    s[C].unroll(ii)
    s[C].parallel(io)
    return s, [A, B, C]


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where files for perf go in this test."""
    monkeypatch.setattr(perf, "FOLDER", tmp_path)
    monkeypatch.setattr(perf, "_own_dump", perf._OwnDump())
    return tmp_path


def test_nothing_is_written_unless_asked_for(monkeypatch, folder):
    monkeypatch.delenv(perf.VARIABLE, raising=False)
    kept = lw.build(*product(), line_tables=True)
    assert kept.code.source is not None
    assert list(folder.iterdir()) == []


def test_a_map_has_the_names_and_places_of_all_functions(monkeypatch, folder):
    monkeypatch.setenv(perf.VARIABLE, "map")
    kernel = lw.build(*product(), name="product")
    rows = (folder / f"perf-{os.getpid()}.map").read_text().splitlines()
    found = {name: (int(start, 16), int(size, 16)) for start, size, name in (row.split(" ") for row in rows)}
    assert {"product", "product.body", "product_parallel_0", "product_parallel_0.task"} <= set(found)
    assert found["product"][0] == kernel._address
    sizes = {s.name: s.size for s in ElfObject(kernel.code.object).symbols}
    assert all(size == sizes[name] > 0 for name, (_, size) in found.items() if name.startswith("product"))


def test_functions_of_models_are_in_the_map(monkeypatch, folder):
    x = lw.var("x", (4, 8))
    library = lw.compile(lw.Function([x], lw.nn.exp(x)))
    monkeypatch.setenv(perf.VARIABLE, "map")
    engine = lw.Engine(library)
    engine([np.zeros((4, 8), np.float32)])
    names = (folder / f"perf-{os.getpid()}.map").read_text()
    assert library.model.functions[0].symbol in names


def read_dump(data):
    """The head of a jitdump, and for each function its name, address, code, and lines with their addresses and file.

    Written from tools/perf/Documentation/jitdump-specification.txt.
    """
    magic, version, size, machine, _, pid, _, flags = struct.unpack_from("<IIIIIIQQ", data)
    assert (magic, version, size, flags) == (0x4A695444, 1, 40, 0)
    functions, at, lines, last = [], size, {}, 0
    while at < len(data):
        kind, length, when = struct.unpack_from("<IIQ", data, at)
        assert when >= last
        last, end, at = when, at + length, at + 16
        if kind == 2:
            address, count = struct.unpack_from("<QQ", data, at)
            at += 16
            for _ in range(count):
                where, line, _ = struct.unpack_from("<QII", data, at)
                stop = data.index(b"\0", at + 16)
                lines.setdefault(address, []).append((where, line, data[at + 16 : stop].decode()))
                at = stop + 1
        else:
            assert kind == 0
            own, _, address, again, count, number = struct.unpack_from("<IIQQQQ", data, at)
            stop = data.index(b"\0", at + 40)
            assert (own, again, number) == (pid, address, len(functions))
            name, code = data[at + 40 : stop].decode(), data[stop + 1 : end]
            assert len(code) == count
            functions.append((name, address, code, lines.get(address, [])))
            at = end
        assert at == end
    return machine, functions


def test_a_jitdump_has_the_code_and_the_lines_of_each_function(monkeypatch, folder):
    monkeypatch.setenv(perf.VARIABLE, "jitdump")
    kernel = lw.build(*product(), name="product", line_tables=True)
    found = ElfObject(kernel.code.object)
    machine, functions = read_dump((folder / f"jit-{os.getpid()}.dump").read_bytes())
    assert machine == found.machine
    own = {name: rest for name, *rest in functions if name.startswith("product")}
    assert set(own) == {"product", "product.body", "product_parallel_0", "product_parallel_0.task"}
    assert own["product"][0] == kernel._address
    text = kernel.code.source.path.read_text().splitlines()
    for address, code, lines in own.values():
        assert code == ctypes.string_at(address, len(code))
        assert [where for where, _, _ in lines] == sorted(where for where, _, _ in lines)
        assert all(address <= where < address + len(code) for where, _, _ in lines)
        assert {file for _, _, file in lines} <= {str(kernel.code.source.path)}
    shown = [text[line - 1].strip() for _, line, _ in own["product_parallel_0"][2]]
    assert any(row.startswith("for r in range(48)") for row in shown)
    assert sum(row.startswith("C_reg[") for row in shown) >= 4
    assert own["product_parallel_0.task"][2] == []


def test_lines_of_models_are_in_the_jitdump(monkeypatch, folder):
    x = lw.var("x", (4, 8))
    library = lw.compile(lw.Function([x], lw.nn.exp(x)), line_tables=True)
    monkeypatch.setenv(perf.VARIABLE, "jitdump")
    engine = lw.Engine(library)
    engine([np.zeros((4, 8), np.float32)])
    _, functions = read_dump((folder / f"jit-{os.getpid()}.dump").read_bytes())
    (function,) = library.model.functions
    lines = [line for name, _, _, found in functions if name.startswith(function.symbol) for _, line, _ in found]
    shown = [function.source_text.splitlines()[line - 1] for line in lines]
    assert any("exp(" in row for row in shown)


def test_a_forked_child_has_a_jitdump_of_its_own(tmp_path):
    program = f"""
import os, pathlib, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import loopwright as lw
from loopwright.codegen.profiling import perf
from test_perf import product
perf.FOLDER = pathlib.Path({str(tmp_path)!r})
lw.build(*product(), name="first")
child = os.fork()
lw.build(*product(), name="child" if child == 0 else "second")
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(os.getpid(), child)
"""
    environment = {**os.environ, perf.VARIABLE: "jitdump", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    parent, child = done.stdout.split()

    def names(pid):
        return {name.partition(".")[0] for name, *_ in read_dump((tmp_path / f"jit-{pid}.dump").read_bytes())[1]}

    assert {"first", "second"} <= names(parent)
    assert "child" not in names(parent)
    assert "child" in names(child)
    assert "first" not in names(child)


def test_a_jitdump_takes_the_place_of_what_an_older_process_left(monkeypatch, folder):
    path = folder / f"jit-{os.getpid()}.dump"
    victim = folder / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    monkeypatch.setenv(perf.VARIABLE, "jitdump")
    lw.build(*product(), name="product")
    assert victim.read_text() == "precious"
    assert not path.is_symlink()
    assert read_dump(path.read_bytes())[1]


def test_a_folder_that_cannot_be_written_costs_a_warning_only(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(perf, "FOLDER", tmp_path / "missing")
    monkeypatch.setattr(perf, "_own_dump", perf._OwnDump())
    for how in ("map", "jitdump"):
        caplog.clear()
        monkeypatch.setenv(perf.VARIABLE, how)
        lw.build(*product(), name="product")
        assert "perf is not told of product" in caplog.text


@pytest.mark.parametrize("made", ["link", "FIFO", "second name"])
def test_a_map_that_another_has_made_is_not_written(monkeypatch, folder, caplog, made):
    path, other = folder / f"perf-{os.getpid()}.map", folder / "other"
    other.write_text("")
    match made:
        case "link":
            path.symlink_to(other)
        case "FIFO":
            os.mkfifo(path)
        case "second name":
            path.hardlink_to(other)
    monkeypatch.setenv(perf.VARIABLE, "map")
    lw.build(*product(), name="product")
    assert "perf is not told of product" in caplog.text
    assert other.read_text() == ""


@pytest.mark.parametrize("target", ["x86-64-v3", "llvm -mtriple=aarch64-linux-gnu"])
def test_line_tables_are_read_as_llvm_reads_them(target, tmp_path):
    dump = needed_tools.program("llvm-dwarfdump", "llvm-dwarfdump-19", package="llvm-19")
    kernel = lw.build(*product(), target, name="product", line_tables=True)
    path = tmp_path / "product.o"
    path.write_bytes(kernel.code.object)
    said = subprocess.run([dump, "--debug-line", path], capture_output=True, text=True, check=True).stdout
    expected = [
        (int(row[1], 16), 0 if "end_sequence" in row[3] else int(row[2]))
        for row in re.finditer(r"^0x([0-9a-f]{16})\s+(\d+)(.*)$", said, re.MULTILINE)
    ]
    rows = line_rows(ElfObject(kernel.code.object))
    assert len(rows) > 20
    assert [(row.address, row.line) for row in rows] == expected


PROGRAM = """
import pathlib, sys
import numpy as np
import loopwright as lw
from loopwright.codegen.profiling import perf
sys.path.insert(0, sys.argv[1])
from test_perf import product
perf.FOLDER = pathlib.Path(sys.argv[2])
kernel = lw.build(*product(), name="product", line_tables=True)
arrays = [np.ones(shape, np.float32) for shape in ((64, 48), (48, 64), (64, 64))]
for _ in range(30000):
    kernel(*arrays, threads=1)
"""


def test_perf_annotates_the_loop_nest(tmp_path):
    program = needed_tools.program("perf", package="linux-perf")

    def run(*arguments, **more):
        return subprocess.run(
            [program, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=tmp_path, **more
        )

    recorded, injected = tmp_path / "perf.data", tmp_path / "perf.jit.data"
    record = ("record", "-k", "mono", "-e", "cpu-clock", "-o", recorded)
    if run(*record, "true").returncode != 0:
        pytest.skip("perf may not record here")
    environment = {**os.environ, perf.VARIABLE: "jitdump", "HOME": str(tmp_path)}
    here = Path(__file__).parent
    done = run(*record, sys.executable, "-c", PROGRAM, here, tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    run("inject", "--jit", "-i", recorded, "-o", injected, env=environment)
    if not list(tmp_path.glob("jitted-*.so")):
        pytest.skip("this perf cannot inject jitdump files")
    said = run("annotate", "-i", injected, "--stdio", "-l", "product_parallel_0", env=environment).stdout
    assert re.search(r"\d+\.\d+ .*product-[0-9a-f]{12}\.loops:\d+", said)
    assert "def product_parallel_0(begin: index" in said
