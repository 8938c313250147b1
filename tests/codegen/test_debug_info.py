"""Debug information says what line each instruction comes from, and does not change the instructions."""

import re

import pytest

import loopwright as lw
from loopwright import te
from loopwright.codegen.compile import texts_with_lines
from loopwright.ir.printer import module_lines
from loopwright.ir.stmt import For, Store
from loopwright.lowering.passes.outline_parallel import outline_parallel


def tiled_matmul_and_exp():
    A = te.placeholder((32, 24), name="A")
    B = te.placeholder((24, 32), name="B")
    r = te.reduce_axis((0, 24), name="r")
    C = te.compute((32, 32), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((32, 29), lambda i, j: te.exp(C[i, j]), name="D")
    s = lw.create_schedule(D)
    _io, jo, ii, ji = s[C].tile(*C.op.axis, 2, 16)
    s[C].reorder(jo, C.op.reduce_axis[0], ii, ji)
    s[C].vectorize(ji)
    s[C].unroll(ii)
    s[D].vectorize(s[D].split(D.op.axis[1], 8)[1])
    s[D].parallel(D.op.axis[0])
    return s, [A, B, D]


def symbolic_row_sum():
    n = te.var("n")
    A = te.placeholder((n, 7), name="A")
    r = te.reduce_axis((0, 7), name="r")
    B = te.compute((n,), lambda i: te.sum(A[i, r], axis=r), name="B")
    return lw.create_schedule(B), [A, B]


def instructions(assembly):
    lines = assembly.partition(".debug_abbrev")[0].splitlines()
    return [re.sub(r"\.L\w+", ".L", line) for line in lines if re.match(r"\t[^.\s]", line)]


@pytest.mark.parametrize("make", [tiled_matmul_and_exp, symbolic_row_sum])
@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "x86-64-v4", "llvm -mtriple=aarch64-linux-gnu"])
def test_debug_information_leaves_the_instructions_as_they_are(make, target):
    s, args = make()
    kernel = lw.build(s, args, target=target)
    marked = texts_with_lines(outline_parallel(kernel.func), kernel.target, kernel.code.options).assembly
    assert instructions(marked) == instructions(kernel.assembly)
    assert ".loc" in marked
    assert ".loc" not in kernel.assembly


def test_instructions_are_marked_with_the_lines_of_their_statements():
    s, args = tiled_matmul_and_exp()
    kernel = lw.build(s, args, target="x86-64-v3")
    module = outline_parallel(kernel.func)
    text = str(module).splitlines()
    line = 0
    fused, exponents, stores = set(), set(), set()
    for row in texts_with_lines(module, kernel.target, kernel.code.options).assembly.splitlines():
        if mark := re.match(r"\t\.loc\t0 (\d+)", row):
            line = int(mark[1])
        if "vfmadd231ps" in row and "ymm" in row:
            fused.add(text[line - 1].split("=")[0].strip())
        if "vpslld" in row:
            exponents.add(text[line - 1].split("[")[0].strip())
        if "vmaskmovps" in row:
            stores.add(text[line - 1])
    assert {"C_reg[0]", "C_reg[1]"} <= fused
    assert exponents == {"D"}
    assert stores == {row for row in text if " where " in row}


def test_each_statement_has_the_line_that_its_text_begins_on():
    s, args = tiled_matmul_and_exp()
    module = outline_parallel(lw.lower(s, args, target="x86-64-v3"))
    text = str(module).splitlines()
    found = module_lines(module)
    for stmt, line in found.items():
        if isinstance(stmt, For):
            assert text[line - 1].strip().startswith(f"for {stmt.var.name}")
        if isinstance(stmt, Store):
            assert text[line - 1].strip().startswith(f"{stmt.buffer.name}[")
    heads = [line for line, row in enumerate(text, start=1) if row and not row.startswith("def ")]
    assert sorted(found.values()) == heads
