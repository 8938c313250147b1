"""Stages that a schedule computes more than twice: print(schedule) and the vector report name them."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.recomputed import recomputations


def chain(extent=64, shift=0):
    """C reads B, ``shift`` elements further on as well."""
    A = te.placeholder((extent,), name="A")
    B = te.compute((extent,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((extent,), lambda i: B[i] + B[te.minimum(i + shift, extent - 1)], name="C")
    return A, B, C


def tiled(B, C, factor):
    s = lw.create_schedule(C)
    outer, _ = s[C].split(C.op.axis[0], factor=factor)
    s[B].compute_at(s[C], outer)
    return s


def test_a_stage_computed_three_times_is_named_with_its_factor():
    A, B, C = chain(shift=8)
    s = tiled(B, C, 4)
    message = "B is computed 3 times: 192 elements in all iterations of i_outer of C, of a tensor of 64"
    assert str(s).splitlines()[0] == f"# {message}"
    report = lw.build(s, [A, C], target="x86-64-v3").vector_report()
    assert report.warnings == (message,)
    assert f"! {message}" in str(report)


@pytest.mark.parametrize("factor", [8, 16, 64])
def test_tiles_that_overlap_by_less_are_not_worth_a_word(factor):
    A, B, C = chain(shift=8)
    s = tiled(B, C, factor)
    assert not recomputations(s.state)
    assert "#" not in str(s)
    assert not lw.build(s, [A, C], target="x86-64-v3").vector_report().warnings


def test_each_loop_around_counts():
    _, B, C = chain(shift=8)
    D = te.compute((5, 64), lambda k, i: C[i] * 2.0, name="D")
    s = lw.create_schedule(D)
    outer, _ = s[D].split(D.op.axis[1], factor=16)
    s[C].compute_at(s[D], outer)
    s[B].compute_at(s[C], C.op.axis[0])
    found = {each.stage: each.factor for each in recomputations(s.state)}
    assert found == {"C": 5, "B": 45}


def test_open_extents_count_as_1024():
    n = te.var("n")
    _, B, C = chain(n, shift=8)
    (found,) = recomputations(tiled(B, C, 2).state)
    assert (found.stage, found.factor) == ("B", 5)
    assert str(found).endswith("of a tensor of 1024, for open extents of 1024")
