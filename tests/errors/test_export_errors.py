"""What cannot be exported, and how exports fail: whole or not at all."""

import re
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.export.c_words import FUNCTIONS, WORDS
from loopwright.codegen.export.names import c_function_name, c_name, c_names


@pytest.fixture(scope="module")
def library():
    x = lw.var("x", (2, 4))
    w = lw.const(np.arange(12, dtype=np.float32).reshape(4, 3))
    return lw.compile(lw.Function([x], lw.nn.matmul(x, w), "double"), jobs=1)


def kernel(**options):
    A = te.placeholder((4,), "float32", name="A")
    B = te.compute((4,), lambda i: A[i] * 2.0, name="B")
    return lw.build(lw.create_schedule(B), [A, B], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "dll"}, "an export is one of object, shared, llvm, found kind='dll'"),
        ({"weights": "outside"}, "weights are inside or beside, found weights='outside'"),
        ({"kind": "llvm", "weights": "inside"}, 'export with weights="beside"'),
    ],
)
def test_options_that_do_not_exist(library, tmp_path, options, message):
    with pytest.raises(lw.RuntimeArgumentError, match=message):
        library.export(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("triple", "options", "message"),
    [
        ("x86_64-pc-windows-msvc", {"kind": "shared"}, "for x86_64-pc-windows-msvc are not made; export an object"),
        ("wasm32-unknown-unknown", {"weights": "beside"}, 'which wasm32-unknown-unknown cannot: .* weights="inside"'),
        ("wasm32-unknown-unknown", {"kind": "shared"}, "shared libraries for wasm32-unknown-unknown are not made"),
        ("i686-pc-windows-gnu", {}, "addresses have 64 bits, and i686-pc-windows-gnu has 32"),
        ("i686-unknown-linux-gnu", {}, "addresses have 64 bits, and i686-unknown-linux-gnu has 32"),
    ],
)
def test_targets_that_cannot_have_it(tmp_path, triple, options, message):
    x = lw.var("x", (2, 4))
    y = lw.nn.add(x, lw.const(np.ones((2, 4), np.float32)))
    library = lw.compile(lw.Function([x], y), target=f"llvm -mtriple={triple}", jobs=1)
    with pytest.raises(lw.TargetError, match=message):
        library.export(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_linker_that_fails_or_is_missing_leaves_nothing_behind(library, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "false")
    with pytest.raises(lw.TargetError, match=r"`false -shared .*` failed"):
        library.export(tmp_path, "shared")
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr("loopwright.runtime.exports.linker.find_spec", lambda name: None)
    with pytest.raises(lw.TargetError, match=r"no linker .* tried no-such-compiler, and the ziglang wheel .*; export"):
        library.export(tmp_path, "shared")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(library, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(lw.ModelError, match=r"the export cannot be written to .*file: "):
        library.export(tmp_path / "file")


def test_a_folder_is_named_by_text_or_a_path(library):
    with pytest.raises(lw.RuntimeArgumentError, match=r"a path is text or a pathlib\.Path, found 3"):
        library.export(3)


def test_weights_too_large_for_an_object(library, tmp_path):
    large = np.broadcast_to(np.float32(0), (1 << 10, 1 << 10))  # of no memory
    model = replace(library.model, constants=(large,) * 300)
    with pytest.raises(lw.ModelError, match=r'12\d{8} bytes of weights, too many .* export with weights="beside"'):
        lw.Library(model).export(tmp_path)


def test_a_debug_build_stays_in_python(tmp_path):
    with pytest.raises(lw.LoopwrightError, match=r"debugged is a debug build, .* export one without debug"):
        kernel(name="debugged", debug=True).export(tmp_path)


@needed_tools.needs("nm", package="binutils")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where the library lies on Linux")
def test_no_function_takes_the_name_of_one_of_libm():
    maps = Path("/proc/self/maps").read_text()
    path = next((line.split()[-1] for line in maps.splitlines() if "libm.so" in line or "libm-" in line), None)
    if path is None:
        pytest.skip("no libm is loaded")
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
    plain = {name for name in names if name.isalnum() and not re.search(r"f(16|32|64|128)", name)}  # of one system
    assert len(plain) > 200
    assert sorted(plain - FUNCTIONS) == []


def test_no_function_takes_the_name_of_one_that_exports_for_windows_call():
    text = resources.files("loopwright.runtime.exports").joinpath("windows.ll").read_text()
    called = re.findall(r"^declare .*@(\w+)\(", text, re.MULTILINE)
    assert "CloseHandle" in called
    assert [name for name in called if c_function_name(name) == name] == []


@needed_tools.needs("cc", package="gcc")
@pytest.mark.parametrize(("language", "headers"), [("c", "complex.h math.h"), ("c++", "cmath")])
def test_headers_with_parameters_of_such_names_compile(tmp_path, language, headers):
    text = "".join(f"#include <{h}>\n" for h in (*headers.split(), "stdio.h", "stdlib.h", "string.h", "unistd.h"))
    text += "#include <stdint.h>\n#include <stddef.h>\n#include <errno.h>\n#include <assert.h>\n#include <limits.h>\n"
    text += "".join(f"int take{k}(int {c_name(word)});\n" for k, word in enumerate(sorted(WORDS)))
    text += "".join(f"int {c_function_name(word)}(int x);\n" for word in sorted(FUNCTIONS))
    done = subprocess.run(
        ["cc", "-x", language, "-fsyntax-only", "-"], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_names_become_identifiers_of_c(library, tmp_path):
    assert [c_name(n) for n in ("a b", "1", "int", "_x", "a__b", "free", "é", "x*/", "I", "co_await", "IN")] == [
        "a_b", "x_1", "int_", "x", "a_b", "free", "x", "x", "I_", "co_await_", "IN_",
    ]  # fmt: skip
    assert [c_function_name(n) for n in ("free", "pthread_create", "memset", "main", "fmodf", "read", "scale")] == [
        "free_", "pthread_create_", "memset_", "main_", "fmodf_", "read_", "scale",
    ]  # fmt: skip
    assert [c_function_name(n) for n in ("sem", "timer", "mtx", "sema")] == ["sem_", "timer_", "mtx_", "sema"]
    assert c_names(["x", "X", "x", "threads"], ["threads"]) == ["x", "X_2", "x_3", "threads_2"]
    assert library.export(tmp_path).code.name == "double_.o"
    assert kernel().export(tmp_path).header.name == "main_.h"
    assert library.export(tmp_path, name="other one").code.name == "other_one.o"


def test_an_export_replaces_an_older_one_and_leaves_nothing_else(library, tmp_path):
    for _ in range(2):
        library.export(tmp_path, "llvm", name="net")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.h", "net.ll", "net.weights"]
