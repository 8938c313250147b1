"""Exports for Windows and macOS. What they link to is read from the files; and code for Windows runs here, in an object
of ELF that keeps the calling convention there, with ``kernel32.c`` in the place of that system."""

import platform
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import needed_tools
import numpy as np
import pytest
from exported_network import SIZES, X, in_a_row, network

import loopwright as lw
from loopwright import te
from loopwright.runtime.exports.linker import linker_for

HERE = Path(__file__).parent
MINGW = "gcc-mingw-w64-x86-64-win32"
RUNTIME = re.compile(r"KERNEL32\.dll|api-ms-win-crt-.*\.dll|msvcrt\.dll|ucrtbase\.dll", re.IGNORECASE)
FUNCTIONS = ["net_create", "net_destroy", "net_message", "net_run", "net_verify"]


def compiled(triple):
    found = lw.compile(network()[0], target=f"llvm -mtriple={triple}", jobs=1)
    assert any("lw_parallel_for" in f.llvm_ir for f in found.functions)
    return found


def by_windows_convention(header):
    """The functions of a header are called as on Windows."""
    functions = re.compile(r"^(?=(int|void|const char \*)\s*\w+\(.*\);$)", re.MULTILINE)
    header.write_text(functions.sub("__attribute__((ms_abi)) ", header.read_text()))


@pytest.mark.skipif(not sys.platform.startswith("linux") or platform.machine() != "x86_64", reason="runs on Linux here")
@needed_tools.needs("gcc", package="gcc")
@needed_tools.needs("objcopy", package="binutils")
def test_the_code_for_windows_runs_with_another_in_the_place_of_its_system(tmp_path):
    files = compiled("x86_64-pc-windows-gnu-elf").export(tmp_path, weights="beside")
    by_windows_convention(files.header)
    memory = [f"--redefine-sym={name}=windows_{name}" for name in ("memcmp", "memcpy", "memmove", "memset")]
    subprocess.run(["objcopy", *memory, files.code], check=True)
    program = tmp_path / "run"
    macros = [f'-DMODEL_HEADER="{files.header}"', "-DBESIDE", *SIZES]
    sources = [HERE / "run_export.c", HERE / "kernel32.c", files.code]
    command = ["gcc", "-Wall", "-Werror", *macros, *sources, "-o", program, "-lm", "-pthread"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    check_runs([program], tmp_path)


def check_runs(program, folder):
    """It computes what it should on several threads, and says so where the weights are others or none."""
    (folder / "other").write_bytes(b"0" * (folder / "net.weights").stat().st_size)

    def run(threads, weights):
        arguments = [*program, threads, weights]
        return subprocess.run(arguments, input=X.tobytes(), capture_output=True, check=False, timeout=600, cwd=folder)

    for threads in ("1", "2", "3"):
        done = run(threads, "net.weights")
        assert done.returncode == 0, done.stderr
        for found in np.frombuffer(done.stdout, np.float32).reshape(2, -1):
            np.testing.assert_allclose(found, in_a_row(network()[1]), rtol=1e-4, atol=1e-5)
    for name in ("other", "missing"):
        done = run("1", name)
        assert (done.returncode, done.stderr.split(b"\n")[0][:31]) == (1, b"-3 the file of weights cannot b")


def test_a_library_for_windows_runs_in_wine(tmp_path, monkeypatch):
    wine = needed_tools.program("wine", package="wine")
    compiler = needed_tools.program("x86_64-w64-mingw32-gcc", package=MINGW)
    monkeypatch.setenv("WINEPREFIX", str(tmp_path / "wine"))
    monkeypatch.setenv("WINEDEBUG", "-all")
    files = compiled("x86_64-pc-windows-gnu").export(tmp_path, "shared", weights="beside")
    macros = [f'-DMODEL_HEADER="{files.header}"', "-DBESIDE", *SIZES]
    command = [compiler, *macros, HERE / "run_export.c", files.code, "-o", tmp_path / "run.exe", "-static", "-lpthread"]
    subprocess.run(command, check=True)
    check_runs([wine, "run.exe"], tmp_path)


class PortableExecutable:
    """A reader of what a library for Windows shows and wants."""

    def __init__(self, data):
        self.data = data
        header = self.number("I", 0x3C)
        assert data[:2] == b"MZ"
        assert data[header : header + 4] == b"PE\0\0"
        self.machine, count = self.number("H", header + 4), self.number("H", header + 6)
        self.is_library = bool(self.number("H", header + 22) & 0x2000)
        optional = header + 24
        assert self.number("H", optional) == 0x20B  # PE32+
        self.directories = optional + 112
        first = optional + self.number("H", header + 20)
        self.sections = [struct.unpack_from("<4I", data, first + 40 * k + 8) for k in range(count)]

    def number(self, kind, at):
        return struct.unpack_from(f"<{kind}", self.data, at)[0]

    def place(self, address):
        """Where in the file something lies, by its address."""
        _, begin, _, at = next(s for s in self.sections if s[1] <= address < s[1] + max(s[0], s[2]))
        return at + address - begin

    def text(self, address):
        at = self.place(address)
        return self.data[at : self.data.index(b"\0", at)].decode()

    def exports(self):
        table = self.place(self.number("I", self.directories))
        names = self.place(self.number("I", table + 32))
        return [self.text(self.number("I", names + 4 * k)) for k in range(self.number("I", table + 24))]

    def libraries(self):
        """What it is linked to."""
        table = self.place(self.number("I", self.directories + 8))
        while name := self.number("I", table + 12):
            yield self.text(name)
            table += 20


def test_a_library_for_windows_shows_its_interface_and_needs_windows_alone(tmp_path):
    try:
        linker_for(lw.resolve_target("llvm -mtriple=x86_64-pc-windows-gnu"))
    except lw.TargetError:
        needed_tools.missing("a linker for Windows", MINGW)
    files = compiled("x86_64-pc-windows-gnu").export(tmp_path, "shared", weights="beside")
    assert files.code == tmp_path / "net.dll"
    found = PortableExecutable(files.code.read_bytes())
    assert (found.machine, found.is_library) == (0x8664, True)
    assert found.exports() == FUNCTIONS
    libraries = list(found.libraries())
    assert "KERNEL32.dll" in libraries
    assert [name for name in libraries if not RUNTIME.fullmatch(name)] == []


def symbols(code):
    """The external symbols of an object for Windows: those that it defines, and those that it wants."""
    assert struct.unpack_from("<H", code)[0] == 0x8664
    table, count = struct.unpack_from("<II", code, 8)
    strings, defined, wanted, k = table + 18 * count, [], [], 0
    while k < count:
        name, _, section, _, storage, more = struct.unpack_from("<8sIhHBB", code, table + 18 * k)
        begin = strings + struct.unpack("<I", name[4:])[0]
        text = name.rstrip(b"\0") if name[:4] != bytes(4) else code[begin : code.index(b"\0", begin)]
        if storage == 2:
            (defined if section > 0 else wanted).append(text.decode())
        k += 1 + more
    return sorted(defined), sorted(wanted)


def test_an_object_for_windows_shows_its_interface_and_needs_nothing_of_posix(tmp_path):
    defined, wanted = symbols(compiled("x86_64-pc-windows-gnu").export(tmp_path, weights="beside").code.read_bytes())
    assert defined == FUNCTIONS
    assert set(wanted).isdisjoint(["open", "mmap", "getpid", "aligned_alloc", "free", "pthread_create"])
    assert {"CreateFileA", "CreateThread", "_aligned_malloc"} <= set(wanted)


def test_a_kernel_for_windows_brings_the_pool_of_threads(tmp_path):
    A = te.placeholder((64, 64), "float32", name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")
    s = lw.create_schedule(B)
    s[B].parallel(s[B].op.axis[0])
    kernel = lw.build(s, [A, B], target="llvm -mtriple=x86_64-pc-windows-gnu", name="twice")
    defined, wanted = symbols(kernel.export(tmp_path).code.read_bytes())
    assert defined == ["twice", "twice_message"]
    assert "CreateThread" in wanted
    assert [name for name in wanted if name.startswith("pthread_")] == []


@pytest.mark.parametrize("triple", ["x86_64-pc-windows-gnu", "x86_64-w64-mingw32"])
def test_mingw_links_for_windows_where_it_is_installed(monkeypatch, triple):
    monkeypatch.setattr(shutil, "which", {"x86_64-w64-mingw32-gcc": "/usr/bin/x86_64-w64-mingw32-gcc"}.get)
    assert linker_for(lw.resolve_target(f"llvm -mtriple={triple}")) == ["x86_64-w64-mingw32-gcc"]


@pytest.mark.parametrize(("arch", "cpu"), [("arm64", 0x0100000C), ("x86_64", 0x01000007)])
def test_a_library_for_macos_is_found_by_its_name(tmp_path, arch, cpu):
    needed_tools.module("ziglang", "zig")  # links for macOS
    files = compiled(f"{arch}-apple-macosx12.0.0").export(tmp_path, "shared")
    assert files.code == tmp_path / "net.dylib"
    code = files.code.read_bytes()
    assert struct.unpack_from("<2I4xI", code) == (0xFEEDFACF, cpu, 6)  # MH_DYLIB
    assert b"@rpath/net.dylib\0" in code
    assert str(tmp_path).encode() not in code
    assert b"_net_run\0" in code
