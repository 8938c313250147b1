"""chunk_rows: tasks go through rows of a fused loop, and divide once a row."""

import loopwright as lw
from loopwright import te
from loopwright.ir.expr import Var
from loopwright.ir.stmt import For, LetStmt
from loopwright.ir.visit import walk
from loopwright.lowering.passes.outline_parallel import outline_parallel


def fused(fuse=2, unrolled=False):
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    A = te.placeholder((n, m, k), name="A")
    B = te.compute((n, m, k), lambda i, j, l: A[i, j, l] + te.cast(i * 3 + j, "float32"), name="B")
    s = lw.create_schedule(B)
    s[B].parallel(s[B].fuse(*s[B].loops[:fuse]))
    if unrolled:
        s[B].unroll(s[B].split(s[B].loops[-1], factor=16)[1])
    return lw.lower(s, [A, B])


def loops(task):
    return [node for node in walk(task.body) if isinstance(node, For)]


def test_text():
    _, task = outline_parallel(fused()).functions
    assert [line.strip() for line in str(task).splitlines()[1:5]] == [
        "for row in range(begin // max(m, 1), (end + m - 1) // max(m, 1)):",
        "for column in range(max(begin - row * m, 0), min(end - row * m, m)):",
        "i_j_fused = row * m + column",
        "for l in range(k):",
    ]


def test_what_divides_a_row_is_computed_once_for_it():
    _, task = outline_parallel(fused(3)).functions
    rows, columns = loops(task)
    defined = [node.value for node in walk(rows.body) if isinstance(node, LetStmt)]
    assert [value.op for value in defined[:2]] == ["//", "%"]
    assert not any(isinstance(node, LetStmt) and isinstance(node.value.a, Var) for node in walk(columns.body))


def test_long_bodies_divide():
    _, task = outline_parallel(fused(unrolled=True)).functions
    assert loops(task)[0].var.name == "i_j_fused"


def test_debug_builds_keep_the_loops():
    _, task = outline_parallel(fused(), keep_loops=True).functions
    assert len(loops(task)) == 2
