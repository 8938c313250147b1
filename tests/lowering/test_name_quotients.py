"""name_quotients: loops over products take their variable apart once an iteration."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.expr import Binary, Const
from loopwright.ir.stmt import For, LetStmt
from loopwright.ir.visit import walk
from loopwright.lowering.passes.name_quotients import name_quotients


def fused(parallel=True):
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    A = te.placeholder((n, m, k), name="A")
    B = te.compute((n, m, k), lambda i, j, l: A[i, j, l] + te.cast(i * 3 + j, "float32"), name="B")
    s = lw.create_schedule(B)
    i, j, _ = s[B].loops
    both = s[B].fuse(i, j)
    if parallel:
        s[B].parallel(both)
    return s, A, B


@pytest.mark.parametrize("parallel", [True, False])
def test_quotients_are_computed_outside_of_the_loops_inside(parallel):
    s, A, B = fused(parallel)
    func = lw.lower(s, [A, B])
    outer = func.body
    assert isinstance(outer, For)
    assert isinstance(outer.body, LetStmt)
    inner = [node for node in walk(outer.body) if isinstance(node, For)]
    divided = [node for loop in inner for node in walk(loop) if isinstance(node, Binary) and node.op in ("//", "%")]
    assert len(inner) == 1
    assert divided == []


def test_what_has_multiples_of_an_extent_tells_that_it_is_not_negative():
    """As behind an operator that makes images twice as large: rows of 2n + 2 elements are at least two."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((m * 2, n * 2), name="A")
    B = te.compute((m * 2, n * 2 + 2), lambda i, j: te.if_then_else(j >= 2, A[i, j - 2], te.const(0.0)), name="B")
    s = lw.create_schedule(B)
    s[B].fuse(*s[B].loops)
    func = lw.lower(s, [A, B])
    assert {stmt.var.name for stmt in walk(func.body) if isinstance(stmt, LetStmt)} >= {"quotient", "remainder"}


def test_what_may_be_divided_by_zero_stays():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n,), "int64", name="A")
    B = te.compute((n,), lambda i: te.if_then_else(m > 0, A[i] + te.cast(i // m, "int64"), A[i]), name="B")
    C = te.placeholder((m,), name="C")
    func = lw.lower(lw.create_schedule(B), [A, C, B])
    assert not any(isinstance(node, LetStmt) for node in walk(func.body))
    assert any(isinstance(e, Binary) and e.op == "//" and not isinstance(e.b, Const) for e in walk(func.body))
    assert name_quotients(func).body is func.body


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 2), (0, 3, 2), (3, 0, 2), (5, 1, 0)])
def test_results_are_those_of_the_definition(shape):
    s, A, B = fused()
    kernel = lw.build(s, [A, B])
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    b = np.zeros_like(a)
    kernel(a, b)
    i, j = np.arange(shape[0])[:, None, None], np.arange(shape[1])[None, :, None]
    np.testing.assert_allclose(b, a + (i * 3 + j), rtol=1e-6)


def padded_rows(lanes=4):
    """A padded copy whose rows, of which there are two more than of the source, are one loop with the channels."""
    n, h, w = te.var("n"), te.var("h"), te.var("w")
    A = te.placeholder((n, h, w), name="A")

    def element(i, y, x):
        return te.if_then_else(te.all(y >= 1, y <= h, x >= 1, x <= w), A[i, y - 1, x - 1], 0.0)

    B = te.compute((n, h + 2, w + 2), element, name="B")
    s = lw.create_schedule(B)
    i, y, x = s[B].loops
    _, lane = s[B].split(x, factor=lanes)
    s[B].vectorize(lane)
    s[B].parallel(s[B].fuse(i, y))
    return s, A, B


def test_divisors_that_are_positive_are_no_matter_of_masks():
    """Nothing is divided in vectors, with 1 for lanes that are off, and nothing within the inner loops."""
    s, A, B = padded_rows()
    func = lw.lower(s, [A, B])
    divisions = {e for e in walk(func.body) if isinstance(e, Binary) and e.op in ("//", "%") and "+ 2" in str(e.b)}
    assert len(divisions) == 2
    assert all(e.dtype.lanes == 1 for e in divisions)
    inner = [node for node in walk(func.body.body) if isinstance(node, For)]
    assert not any(e in divisions for loop in inner for e in walk(loop))


@pytest.mark.parametrize("shape", [(2, 3, 9), (1, 0, 5), (2, 4, 0), (0, 2, 2), (3, 1, 1)])
def test_padded_rows_are_right(shape):
    s, A, B = padded_rows()
    kernel = lw.build(s, [A, B])
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    b = np.full((shape[0], shape[1] + 2, shape[2] + 2), np.nan, np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(b, np.pad(a, ((0, 0), (1, 1), (1, 1))))
