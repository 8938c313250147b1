"""The stages of a schedule are those seen elsewhere, and their lines are linked from the compute down to assembly."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.explorer.stages import provenance


def tiled_product_and_exp():
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


def rows(text):
    """The columns of a text, line by line."""
    return zip(text.lines, text.sources, text.origins, text.loops, text.stores, strict=True)


@pytest.fixture(scope="module")
def product():
    s, args = tiled_product_and_exp()
    return s, args, provenance(s, args, "x86-64-v3", "product")


def test_texts_are_those_of_the_schedule_its_passes_and_the_kernel(product):
    s, args, found = product
    kernel = lw.build(s, args, "x86-64-v3", "product")
    assert str(found.start) == str(lw.create_schedule(args[-1]))
    assert str(found.steps[-1].nest) == str(s)
    assert "\n".join(step.python for step in found.steps) == str(s.trace)
    records = []
    lw.lower(s, args, "product", "x86-64-v3", trace_passes=records)
    assert [p.name for p in found.passes] == [r.name for r in records]
    assert [str(p.text) for p in found.passes if p.changed] == [r.text for r in records if r.text is not None]
    assert str(found.llvm_ir) == kernel.llvm_ir.rstrip("\n")
    assert str(found.llvm_ir_optimized) == kernel.llvm_ir_optimized.rstrip("\n")
    assert str(found.assembly) == kernel.assembly.rstrip("\n")
    assert found.report == kernel.vector_report()


def test_a_decision_is_a_step_that_leaves_the_nest_as_it_was():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
    s = lw.create_schedule(B, {"lanes": 8})
    s[B].vectorize(s[B].split("i", factor=s.decide("lanes", [4, 8], 4))[1])
    found = provenance(s, [A, B], "x86-64-v3", "doubled")
    assert found.steps[0].python == 's.decide("lanes", [4, 8], 4, value=8)'
    assert str(found.steps[0].nest) == str(found.start)
    assert "\n".join(step.python for step in found.steps) == str(s.trace)


def test_the_compute_reads_as_it_was_declared(product):
    found = product[2].compute
    assert found.lines == (
        'A = placeholder((32, 24), "float32")',
        'B = placeholder((24, 32), "float32")',
        "r = reduce_axis((0, 24))",
        "C = compute((32, 32), lambda i, j: sum(A[i, r] * B[r, j], axis=[r]))",
        "D = compute((32, 29), lambda i, j: exp(C[i, j]))",
    )
    assert found.stores == ("A", "B", "C", "C", "D")


def test_loops_lead_back_to_the_step_that_made_them(product):
    found = product[2]
    maker = {}
    for line, _, _, loop, _ in rows(found.steps[-1].nest):
        if loop is not None:
            step = found.loops[loop].made_by
            maker[line.split()[1]] = None if step is None else found.steps[step].python.split("\n")[-1]
    split = {
        name: f'{name}_outer, {name}_inner = s["C"].split({name}, factor={n})' for name, n in (("i", 2), ("j", 16))
    }
    assert maker["i_outer"] == maker["i_inner"] == maker["i_inner_init"] == split["i"]
    assert maker["j_outer"] == maker["j_inner"] == split["j"]
    assert maker["r"] is maker["i"] is None
    assert maker["j_inner_1"] == 'j_outer_1, j_inner_1 = s["D"].split(j_1, factor=8)'
    (axis,) = (k for k, loop in enumerate(found.loops) if loop.id == "C#1")
    inner = found.loops[found.loops[axis].became[1]]
    assert (inner.name, inner.made_of) == ("j_inner", (axis,))
    assert [found.steps[k].python for k in inner.changed_by][-1] == 's["C"].vectorize(j_inner)'


def test_instructions_lead_to_the_statement_and_the_loop_of_the_nest(product):
    found = product[2]
    nest = {origin: line for line, _, origin, loop, store in rows(found.steps[-1].nest) if loop is not None or store}
    fused = [row for row in rows(found.assembly) if "vfmadd231ps" in row[0] and row[1] in (9, 10)]
    assert len(fused) == 4
    for _, source, origin, _, _ in fused:
        assert found.loop_ir.lines[source - 1].strip().startswith("C_reg")
        assert nest[origin].strip().startswith("C[i_outer * 2 + i_inner")
        around = [nest[loop].split()[1] for loop in found.statements[origin].around]
        assert around == ["i_outer", "j_outer", "r", "i_inner", "j_inner"]
    branch = next(row for row in rows(found.llvm_ir) if row[0].strip().startswith('%"r" = phi'))
    assert found.loops[branch[3]].name == "r"
    assert found.statements[branch[2]].report.name == "r"


def test_bodies_of_parallel_loops_belong_to_the_loop(product):
    found = product[2]
    launch = next(row for row in rows(found.loop_ir) if "launch(" in row[0])
    loop = next(row for row in rows(found.loop_ir) if row[0].strip().startswith("for i in range(begin, end)"))
    assert launch[2] == loop[2]
    assert found.statements[loop[2]].report.kind == "parallel"
    assert any(origin is not None and loop[2] in found.statements[origin].around for origin in found.assembly.origins)


def test_an_id_that_comes_again_is_another_loop():
    X = te.placeholder((8, 8), name="X")
    Y = te.compute((8, 8), lambda i, j: X[i, j] + 1.0, name="Y")
    s = lw.create_schedule(Y)
    cache = s.cache_write(Y, "local")
    s[cache].compute_at(s[Y], s[Y].loops[0])
    found = provenance(s, [X, Y], "x86-64-v3")
    first = found.start.loops[0]
    last = found.steps[-1].nest.loops[0]
    assert found.loops[first].id == found.loops[last].id == "Y#0"
    assert first != last
    assert found.loops[last].made_by == 0


def test_every_column_is_as_long_as_the_text(product):
    found = product[2]
    texts = [found.compute, found.start, found.loop_ir, found.llvm_ir, found.llvm_ir_optimized, found.assembly]
    for text in [*texts, *(step.nest for step in found.steps), *(p.text for p in found.passes)]:
        assert list(rows(text))
        assert all(origin in found.statements for origin in text.origins if origin is not None)
        assert all(0 <= loop < len(found.loops) for loop in text.loops if loop is not None)


def test_inlined_stages_and_metadata_of_the_optimiser_are_no_trouble():
    A = te.placeholder((9, 20), name="A")
    B = te.compute((9, 20), lambda i, j: te.cos(A[i, j]), name="B")  # whose rare path has weights of branches
    C = te.compute((9, 20), lambda i, j: B[i, j] + 1.0, name="C")
    s = lw.create_schedule(C)
    s[B].compute_inline()
    s[C].vectorize(s[C].split(C.op.axis[1], 8)[1])
    found = provenance(s, [A, C], "x86-64-v3")
    kernel = lw.build(s, [A, C], "x86-64-v3")
    assert "!prof" in str(found.llvm_ir_optimized)
    assert str(found.llvm_ir_optimized) == kernel.llvm_ir_optimized.rstrip("\n")
    assert str(found.llvm_ir) == kernel.llvm_ir.rstrip("\n")
    assert str(found.assembly) == kernel.assembly.rstrip("\n")
    assert set(found.steps[-1].nest.stores) == {None, "C"}


def test_loops_of_an_extern_belong_to_no_step():
    A = te.placeholder((8,), name="A")

    def doubled(ins, outs):
        ib = te.IRBuilder()
        A, B = map(ib.buffer_ptr, (*ins, *outs))
        with ib.for_range(0, 8, name="i") as i:
            B[i] = A[i] * 2.0
        return ib.get()

    B = te.extern((8,), [A], doubled, name="B")
    found = provenance(lw.create_schedule(B), [A, B], "x86-64-v3")
    (loop,) = (row for row in rows(found.start) if row[0].lstrip().startswith("for "))
    assert loop[3] is None
    assert found.statements[loop[2]].loop is None
    assert found.statements[loop[2]].report.kind == "serial"
    assert found.compute.lines[1] == "B = extern([A]) as"
