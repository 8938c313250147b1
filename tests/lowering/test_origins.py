"""Loops and stores keep, through all passes, the number of the one in the schedule's nest that they come from."""

import loopwright as lw
from loopwright import te
from loopwright.ir.origin import enclosed
from loopwright.ir.stmt import For, Store
from loopwright.ir.structural import structural_equal
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.lowering.pipeline import lower_numbered

TARGET = lw.resolve_target("x86-64-v3")


def scheduled():
    A = te.placeholder((30, 20), name="A")
    B = te.placeholder((20, 27), name="B")
    r = te.reduce_axis((0, 20), name="r")
    C = te.compute((30, 27), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((30, 27), lambda i, j: C[i, j] + 1.0, name="D")
    s = lw.create_schedule(D)
    io, _, _, ji = s[D].tile(*D.op.axis, 4, 8)
    s[D].vectorize(ji)
    s[D].parallel(io)
    s[C].compute_at(s[D], s[D].loops[1])
    ci, cj = s[C].op.axis
    s[C].reorder(r, ci, cj)
    s[C].vectorize(cj)
    s[C].unroll(ci)
    return s, [A, B, D]


def test_loops_and_stores_know_where_they_come_from():
    s, args = scheduled()
    func, nest = lower_numbered(s, args, "main", TARGET)
    assert [loop.id for loop in nest.loops.values()] == [
        *("D#2", "D#4"),
        *("C#0", "C#1"),  # of the initial values
        *("C#2", "C#0", "C#1"),
        *("D#3", "D#5"),
    ]
    assert [loop.kind for loop in nest.loops.values()][-2:] == ["serial", "vectorized"]
    origin_of_buffer = {"C": set(), "D": set()}
    for part in outline_parallel(func).functions:
        for stmt, around in enclosed(part.body):
            loops = tuple(abs(loop.origin) for loop in around if isinstance(loop, For))
            if isinstance(stmt, For):
                assert stmt.var.name.startswith(nest.loops[abs(stmt.origin)].name)
                assert loops == tuple(n for n in nest.loops[abs(stmt.origin)].around if n in loops)
            if isinstance(stmt, Store):
                assert set(loops) <= set(nest.stores[abs(stmt.origin)])
                origin_of_buffer[stmt.buffer.name[0]].add(abs(stmt.origin))
    assert len(origin_of_buffer["C"]) == 2
    assert len(origin_of_buffer["D"]) == 1


def test_copies_for_borders_are_told_from_the_main_part():
    X = te.placeholder((61,), name="X")
    Y = te.compute((61,), lambda i: X[i] * 2.0, name="Y")
    s = lw.create_schedule(Y)
    s[Y].split(Y.op.axis[0], factor=8)
    func, _ = lower_numbered(s, [X, Y], "main", TARGET)
    found = [(stmt.origin, str(stmt).partition(":")[0]) for stmt, _ in enclosed(func.body) if isinstance(stmt, For)]
    assert found == [(3, "for i_outer in range(7)"), (2, "for i_inner in range(8)"), (-2, "for i_inner in range(5)")]


def test_numbering_changes_nothing_of_the_program():
    s, args = scheduled()
    plain = lw.lower(s, args, target=TARGET)
    numbered, _ = lower_numbered(s, args, "main", TARGET)
    assert str(numbered) == str(plain)
    assert structural_equal(numbered, lower_numbered(s, args, "main", TARGET)[0])
