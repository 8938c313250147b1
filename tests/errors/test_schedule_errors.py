"""Illegal schedules are refused when the primitive is called; the error shows the nest, the rule, and a way out."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te


@pytest.fixture
def matmul():
    A = te.placeholder((12, 8), name="A")
    B = te.placeholder((8, 20), name="B")
    r = te.reduce_axis((0, 8), name="r")
    C = te.compute((12, 20), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((12, 20), lambda i, j: C[i, j] * 2.0, name="D")
    E = te.compute((12, 20), lambda i, j: D[i, j] + C[i, j], name="E")
    s = lw.create_schedule(E)
    return s, A, B, C, D, E


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


@pytest.mark.parametrize("factor", [0, -4, 2.5, "8", True, None])
def test_split_needs_a_positive_integer(matmul, factor):
    s, *_, E = matmul
    with refused("positive integer|either factor or nparts"):
        s[E].split(E.op.axis[0], factor=factor)


def test_an_integer_of_numpy_is_an_integer(matmul):
    s, *_, E = matmul
    s[E].split(E.op.axis[0], factor=np.int64(4))
    twin = lw.create_schedule(E)
    twin.replay(lw.Trace.from_json(s.trace.to_json()))
    assert str(twin) == str(s)


def test_readers_of_a_cache_are_stages(matmul):
    s, A, *_ = matmul
    with refused("a stage is named by its tensor"):
        s.cache_read(A, "local", 3)


def test_split_takes_factor_or_nparts_but_not_both(matmul):
    s, *_, E = matmul
    with refused("either factor or nparts"):
        s[E].split(E.op.axis[0], factor=2, nparts=2)


def test_a_stale_loop_says_what_became_of_it(matmul):
    s, *_, E = matmul
    i, _j = E.op.axis
    s[E].split(i, factor=4)
    with refused(r"loop i \(E#0\) of E is stale: an earlier step split into i_outer \(E#2\) and i_inner \(E#3\)"):
        s[E].split(i, factor=2)
    io, ii, _ = s[E].loops
    s[E].fuse(io, ii)
    with refused("fused into i_outer_i_inner_fused"):
        s[E].vectorize(ii)


def test_the_error_marks_the_loop_in_the_nest(matmul):
    s, *_, C, _D, _E = matmul
    with refused(r"for r in range\(8\):  # <-- here") as caught:
        s[C].vectorize(C.op.reduce_axis[0])
    assert "for j in range(20):\n" in str(caught.value)


@pytest.mark.parametrize("verb", ["vectorize", "parallel"])
def test_reductions_are_neither_vectorized_nor_parallel(matmul, verb):
    s, _, _, C, _, _ = matmul
    with refused("reduction axis"):
        getattr(s[C], verb)(C.op.reduce_axis[0])


def test_fuse_needs_adjacent_loops_of_one_kind(matmul):
    s, _, _, C, _, _ = matmul
    i, j = C.op.axis
    (r,) = C.op.reduce_axis
    with refused("not directly inside"):
        s[C].fuse(i, r)
    with refused("not directly inside"):
        s[C].fuse(j, i)
    with refused("reduction axis"):
        s[C].fuse(j, r)


def test_an_annotation_is_not_lost(matmul):
    s, *_, E = matmul
    i, _j = E.op.axis
    s[E].parallel(i)
    with refused("it is parallel already"):
        s[E].vectorize(i)
    with refused("it is parallel already"):
        s[E].split(i, factor=2)


def test_one_loop_of_a_stage_is_its_vector(matmul):
    s, *_, E = matmul
    i, j = E.op.axis
    s[E].vectorize(j)
    with refused("vectorized already"):
        s[E].vectorize(i)


def test_vectorize_needs_a_constant_extent():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    s = lw.create_schedule(B)
    with refused("expected a constant of at most 256"):
        s[B].vectorize(B.op.axis[0])
    with refused("expected a constant of at most 4096"):
        s[B].unroll(B.op.axis[0])


def test_outputs_and_reductions_are_not_inlined(matmul):
    s, _, _, C, D, E = matmul
    with refused("is an output"):
        s[E].compute_inline()
    with refused("is a reduction"):
        s[C].compute_inline()
    with refused("is an output"):
        s[E].compute_at(s[D], D.op.axis[0])


def test_inlined_stages_have_no_loops(matmul):
    s, *_, D, _ = matmul
    i, _ = D.op.axis
    s[D].compute_inline()
    for act in (lambda: s[D].vectorize(i), lambda: s[D].split(i, factor=2)):
        with refused("D is inlined: it has no loops"):
            act()
    s[D].compute_root()
    s[D].parallel(i)


def test_no_loop_is_parallel_inside_a_vectorized_one(matmul):
    s, *_, E = matmul
    i, j = E.op.axis
    s[E].vectorize(i)
    with refused("loop j of E cannot be parallel inside the vectorized loop i"):
        s[E].parallel(j)
    s[E].reorder(j, i)
    s[E].parallel(j)
    with refused("loop j of E cannot be parallel inside the vectorized loop i"):
        s[E].reorder(i, j)
    with refused("loop i of D cannot be parallel|loop j of D cannot be parallel"):
        s["D"].parallel(s["D"].loops[1])
        s["D"].vectorize(s["D"].loops[0])


def test_inputs_have_no_loops(matmul):
    s, A, *_ = matmul
    with refused("A is an input"):
        s[A].compute_inline()
    with refused("A is an input"):
        s[A].split("A#0", factor=2)


def test_compute_at_needs_a_loop_around_all_readers(matmul):
    s, _, _, C, D, E = matmul
    with refused("E reads it outside that loop"):
        s[C].compute_at(s[D], D.op.axis[0])
    s[D].compute_at(s[E], E.op.axis[0])
    s[C].compute_at(s[E], E.op.axis[0])


def test_compute_at_inside_a_vectorized_loop_is_refused(matmul):
    s, _, _, _C, D, E = matmul
    i, j = E.op.axis
    s[E].vectorize(j)
    with refused("inside a vectorized loop"):
        s[D].compute_at(s[E], j)
    s[D].compute_at(s[E], i)
    with refused("D is computed inside it"):
        s2 = lw.create_schedule(E)
        s2[D].compute_at(s2[E], j)
        s2[E].vectorize(j)


def test_a_loop_that_holds_a_stage_is_not_split_fused_or_moved(matmul):
    s, _, _, _C, D, E = matmul
    i, j = E.op.axis
    s[D].compute_at(s[E], i)
    for act in (lambda: s[E].split(i, factor=2), lambda: s[E].fuse(i, j), lambda: s[E].reorder(j, i)):
        with refused("D is computed at"):
            act()


def test_a_stage_does_not_leave_the_loop_in_which_its_inputs_are_computed(matmul):
    s, _A, _B, C, D, E = matmul
    i, j = E.op.axis
    s[D].compute_at(s[E], j)
    s[C].compute_at(s[E], j)
    would_read = "C is computed at loop j of E, but D would read it outside that loop"
    with refused(would_read):
        s[D].compute_root()
    with refused(would_read):
        s[D].compute_at(s[E], i)
    with refused("D.local would read it outside"):
        s.cache_write(D, "local")
    with refused("C.local would read it outside"):
        s.cache_read(C, "local", [D])
    s[C].compute_root()
    s[D].compute_root()


def test_tile_and_fuse_change_all_or_nothing(matmul):
    s, _, _, C, _, E = matmul
    i, j = E.op.axis
    before = s.state
    with refused("positive integer"):
        s[E].tile(i, j, 2, 0)
    with refused("reduction axis"):
        s[C].fuse(*C.op.axis, *C.op.reduce_axis)
    assert s.state is before
    assert len(s.trace) == 0


def test_caches_name_stages_that_read(matmul):
    s, A, _B, C, _D, E = matmul
    with refused("does not read it"):
        s.cache_read(A, "local", [E])
    with refused("no scope"):
        s.cache_read(A, "shared", [C])
    with refused("different readers"):
        s.cache_read(A, "local", [])


def test_cache_write_comes_first(matmul):
    s, _, _, C, _, _ = matmul
    s[C].split(C.op.axis[0], factor=2)
    with refused("scheduled already"):
        s.cache_write(C, "local")


def test_loops_and_stages_of_others_are_refused(matmul):
    s, _, _, _C, D, E = matmul
    with refused("belongs to stage D"):
        s[E].split(s[D].loops[0], factor=2)
    with refused("is not one of E"):
        s[E].split(D.op.axis[0], factor=2)
    with refused("has no loop E#99"):
        s[E].split("E#99", factor=2)
    with refused("no stage 'Z'"):
        s["Z"]
    with refused("not part of this schedule"):
        s[te.placeholder((3,), name="other")]
    with refused("named twice"):
        s[E].reorder(E.op.axis[0], E.op.axis[0])


def test_a_refused_step_changes_nothing(matmul):
    s, _, _, C, _, _ = matmul
    before, text = s.state, str(s)
    with pytest.raises(lw.ScheduleError):
        s[C].vectorize(C.op.reduce_axis[0])
    assert s.state is before
    assert str(s) == text
    assert len(s.trace) == 0


def test_lower_needs_all_arguments(matmul):
    s, A, B, C, _D, E = matmul
    with refused("leave out B"):
        lw.lower(s, [A, E])
    with refused("computed on the way"):
        lw.lower(s, [A, B, C, E])
    with refused("named twice"):
        lw.lower(s, [A, B, E, E])
    with refused("identifier"):
        lw.lower(s, [A, B, E], name="a b")


def test_a_schedule_needs_something_to_compute():
    with refused("is an input"):
        lw.create_schedule(te.placeholder((3,), name="A"))
    with refused("sequence of tensors"):
        lw.create_schedule([])


def test_an_unknown_dimension_is_told():
    n = te.var("n")
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: te.if_then_else(i < n, A[i], 0.0), name="B")
    with refused("value of n is not known"):
        lw.lower(lw.create_schedule(B), [A, B])


def test_split_knows_four_tails(matmul):
    s, *_, E = matmul
    with refused("split has no tail 'cut'; there are guard, mask, peel, shift"):
        s[E].split(E.op.axis[0], factor=5, tail="cut")


def test_a_reduction_is_not_split_into_tiles_that_overlap(matmul):
    s, _, _, C, _, _ = matmul
    (r,) = C.op.reduce_axis
    with refused("loop r of C with tail='shift': it runs over a reduction axis(.|\n)*Take tail='mask' or tail='peel'"):
        s[C].split(r, factor=3, tail="shift")


def test_no_reduction_loop_stands_outside_tiles_that_overlap(matmul):
    s, _, _, C, _, _ = matmul
    i, j = C.op.axis
    (r,) = C.op.reduce_axis
    io, ii = s[C].split(i, factor=5, tail="shift")
    s[C].reorder(io, r, ii, j)
    with refused("reduction loop r of C cannot stand outside loop i_outer, whose last tile is shifted") as caught:
        s[C].reorder(r, io)
    assert "for r in range(8):  # <-- here" in str(caught.value)
    s2 = lw.create_schedule(C)
    s2[C].reorder(r, i)
    with refused("reduction loop r of C cannot stand outside loop i_outer"):
        s2[C].split(i, factor=5, tail="shift")


@pytest.mark.parametrize("verb", ["vectorize", "parallel"])
def test_tiles_that_overlap_run_one_after_the_other(matmul, verb):
    s, *_, E = matmul
    i, j = E.op.axis
    io, ii = s[E].split(i, factor=4, tail="shift")
    with refused("the last tile of loop i is shifted, so that two iterations write the same elements"):
        getattr(s[E], verb)(io)
    oo, oi = s[E].split(io, factor=2)
    with refused("the last tile of loop i is shifted"):
        getattr(s[E], verb)(oi)
    s[E].reorder(ii, oo)
    with refused("loop i_inner of E cannot be"):
        getattr(s[E], verb)(ii)
    s[E].reorder(oo, oi, ii)
    getattr(s[E], verb)(ii)
    with refused("loop i_inner of E cannot be"):
        s[E].reorder(ii, oo)
    getattr(lw.create_schedule(E)[E], verb)(j)


def test_a_loop_made_from_overlapping_tiles_is_not_parallel(matmul):
    s, *_, E = matmul
    i, j = E.op.axis
    io, ii = s[E].split(i, factor=5, tail="shift")
    s[E].reorder(io, j, ii)
    fused = s[E].fuse(io, j)
    with refused("loop i_outer_j_fused of E cannot be parallel"):
        s[E].parallel(fused)
