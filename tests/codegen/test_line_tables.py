"""Line tables say where machine code comes from, and are the only thing that a build with them has more."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.nest_source import kept_source
from loopwright.artifact.options import CodegenOptions
from loopwright.codegen.compile import compile_module
from loopwright.codegen.marked_text import read_assembly_lines
from loopwright.codegen.profiling.elf import ElfObject
from loopwright.compiler.model.lower_function import lower_function
from loopwright.compiler.model.units import in_order
from loopwright.compiler.settings import CompileSettings
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.lowering.pipeline import lower

TARGETS = ("x86-64", "x86-64-v3", "x86-64-v4")


def product(n=20, m=36):
    A = te.placeholder((n, 24), name="A")
    B = te.placeholder((24, m), name="B")
    r = te.reduce_axis((0, 24), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    io, _jo, ii, ji = s[C].tile(*C.op.axis, 3, 16)
    s[C].reorder(r, ii, ji)
    s[C].vectorize(ji)
    s[C].unroll(ii)
    s[C].parallel(io)
    return s, [A, B, C]


def checked_rows():
    n = te.var("n")
    A = te.placeholder((n, 7), name="A")
    r = te.reduce_axis((0, 7), name="r")
    B = te.compute((n,), lambda i: te.sum(A[i, r], axis=r), name="B")
    return lw.create_schedule(B), [A, B]


def operators():
    """Functions of each family of operators, in the schedules that models get."""
    x, w = lw.var("x", (1, 8, 12, 12)), lw.var("w", (16, 8, 3, 3))
    yield lw.Function([x, w], lw.nn.relu(lw.nn.conv2d(x, w, padding=(1, 1, 1, 1))))
    a, b = lw.var("a", (9, 40)), lw.var("b", (40, 24))
    yield lw.Function([a, b], lw.nn.gelu(lw.nn.matmul(a, b)))
    yield lw.Function([a], lw.nn.softmax(a))
    yield lw.Function([a], lw.nn.transpose(lw.nn.exp(a)))
    yield lw.Function([x], lw.nn.max_pool(x, (3, 3)))
    yield lw.Function([a], lw.nn.sum(lw.nn.tanh(a), axes=(0,)))
    yield lw.Function([a], lw.nn.take(a, lw.const(np.array([3, 1, 4])), axis=0))


def code_sections(data):
    """The sections of an object file that reach memory, by name, and how they are patched there."""
    found = ElfObject(data)
    kept = [section for section in found.sections if section.name.startswith((".text", ".rodata", ".data"))]
    patches = [[(r.offset, r.symbol.name, r.addend) for r in found.relocations(s).values()] for s in kept]
    return [(s.name, s.data) for s in kept], patches


def assert_same_code(module, target, **options):
    plain, marked = (
        compile_module(module, target, CodegenOptions(cache=False, line_tables=lines, **options))
        for lines in (False, True)
    )
    assert code_sections(marked.object) == code_sections(plain.object)
    assert b"loopwright" in marked.object
    assert len(marked.object) > len(plain.object)
    assert marked.source is not None
    assert plain.source is None
    assert "!DILocation" not in plain.llvm_ir


@pytest.mark.parametrize("spec", TARGETS)
@pytest.mark.parametrize("make", [product, checked_rows])
def test_machine_code_of_schedules_is_the_same_byte_for_byte(make, spec):
    s, args = make()
    target = lw.resolve_target(spec)
    for options in ({}, {"precision": "fast"}, {"debug": True}):
        debug = bool(options.get("debug"))
        func = lower(s, args, "main", target, debug=debug)
        assert_same_code(outline_parallel(func, keep_loops=debug), target, **options)


@pytest.mark.parametrize("make", [product, checked_rows])
def test_elsewhere_the_instructions_are_the_same_but_for_their_order_where_functions_begin(make):
    s, args = make()
    for triple in ("aarch64-linux-gnu", "riscv64-linux-gnu"):
        plain, marked = (
            lw.build(s, args, f"llvm -mtriple={triple}", line_tables=lines).assembly for lines in (False, True)
        )
        rows = [line.text for line in read_assembly_lines(marked)]
        assert sorted(rows) == sorted(plain.rstrip("\n").split("\n"))


@pytest.mark.parametrize("function", list(operators()), ids=lambda f: str(f.body.op.name))
def test_machine_code_of_operators_is_the_same_byte_for_byte(function):
    for spec in ("x86-64", "x86-64-v4"):
        target = lw.resolve_target(spec)
        for unit in in_order(function)[0]:
            assert_same_code(
                outline_parallel(lower_function(unit.function, CompileSettings(target), "main").func), target
            )


def test_a_kernel_with_line_tables_runs_and_leaves_its_loop_nest_where_they_say():
    s, args = product()
    kernel = lw.build(s, args, name="product", line_tables=True)
    source = kernel.code.source
    assert str(source.path.parent).encode() in kernel.code.object
    assert source.path.name.encode() in kernel.code.object
    written = source.path.read_text()
    assert written.startswith("def product(A: float32[20, 24]")
    assert "def product_parallel_0(" in written
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((20, 24), (24, 36)))
    c = np.empty((20, 36), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_llvm_ir_does_not_depend_on_the_folder_of_the_cache(monkeypatch, tmp_path):
    s, args = product()
    texts = []
    for folder in ("one", 'a "quoted" \\ two'):
        monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / folder))
        kernel = lw.build(s, args, name="product", line_tables=True)
        assert kernel.code.source.path.parent == tmp_path / folder / "nests"
        assert str(tmp_path / folder).encode() in kernel.code.object
        texts.append(kernel.llvm_ir)
    assert texts[0] == texts[1]


def test_a_folder_that_cannot_be_written_costs_a_warning_only(monkeypatch, tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(blocked))
    s, args = product()
    kernel = lw.build(s, args, name="product", line_tables=True)
    kernel(np.ones((20, 24), np.float32), np.ones((24, 36), np.float32), np.empty((20, 36), np.float32))
    assert "going on without it: Not a directory" in caplog.text


def test_libraries_keep_the_sources_of_their_line_tables(monkeypatch, tmp_path):
    a = lw.var("a", (16, 40))
    graph = lw.Function([a], lw.nn.softmax(lw.nn.tanh(a)))
    library = lw.compile(graph, line_tables=True)
    library.save(tmp_path / "model.lwlib")
    for folder in ("here", "elsewhere"):
        monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / folder))
        loaded = lw.load(tmp_path / "model.lwlib")
        x = np.random.default_rng(0).standard_normal((16, 40)).astype(np.float32)
        (y,) = lw.Engine(loaded)([x])
        e = np.exp(np.tanh(x))
        np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
        for function in loaded.model.functions:
            assert function.source_text.startswith(f"def {function.symbol}(")
            (written,) = (tmp_path / folder / "nests").glob(f"{function.symbol}-*.loops")
            assert written.read_text() == function.source_text
    plain = lw.compile(graph)
    assert [f.source_text for f in plain.model.functions] == [""] * len(plain.model.functions)


def test_exported_models_have_the_loop_nests_of_their_functions_beside_them(tmp_path):
    a = lw.var("a", (16, 40))
    library = lw.compile(lw.Function([a], lw.nn.softmax(a)), line_tables=True)
    exported = library.export(tmp_path / "out", name="model")
    functions = library.model.functions
    assert [path.read_text() for path in exported.sources] == [f.source_text for f in functions]
    data = exported.code.read_bytes()
    for path in exported.sources:
        assert path.parent == tmp_path / "out"
        assert path.name.encode() in data
    assert str(tmp_path / "out").encode() in data
    assert lw.compile(lw.Function([a], lw.nn.softmax(a))).export(tmp_path / "plain", name="model").sources == ()


def test_no_name_of_an_entry_leads_out_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    source = kept_source("../../etc/x", "text")
    assert source.path.parent == tmp_path / "nests"
    source.write()
    assert source.path.read_text() == "text"
