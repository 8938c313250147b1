"""Loops and stages by their names: the same steps as by handles, and errors that list the names that there are."""

import re

import pytest

import loopwright as lw
from loopwright import te


def product(n=12, k=8, m=16):
    A = te.placeholder((n, k), "float32", name="A")
    B = te.placeholder((k, m), "float32", name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((n, m), lambda i, j: te.maximum(C[i, j], 0.0), name="D")
    return A, B, C, D


def fresh(tensors):
    return lw.create_schedule(tensors[-1])


@pytest.fixture
def tensors():
    return product()


def by_names(s):
    s.cache_read("A", "local", ["C"])
    s.cache_write("D", "local")
    s["D"].tile("i", "j", 4, 8)
    s["D"].fuse("i_outer", "j_outer")
    s["D"].parallel("i_outer_j_outer_fused")
    s["D"].vectorize("j_inner")
    s["D"].unroll("i_inner")
    s["D.local"].compute_at("D", "i_outer_j_outer_fused")
    s["C"].compute_at(s["D"], "i_outer_j_outer_fused")
    s["C"].split("r", factor=4)
    s["C"].reorder("r_outer", "i", "j", "r_inner")
    s["C"].prefetch("B", "r_outer", 2)
    s["A.local"].compute_at("C", "r_outer")
    s["A.local"].storage_align("ax0", 16)
    s["A.local"].annotate("ax1", "mine.note", 1)


def by_handles(s, tensors):
    A, B, C, D = tensors
    copy = s.cache_read(A, "local", C)
    local = s.cache_write(D, "local")
    yo, xo, yi, xi = s[D].tile(*s[D].op.axis, 4, 8)
    outer = s[D].fuse(yo, xo)
    s[D].parallel(outer)
    s[D].vectorize(xi)
    s[D].unroll(yi)
    s[local].compute_at(s[D], outer)
    s[C].compute_at(s[D], outer)
    ro, ri = s[C].split(s[C].op.reduce_axis[0], factor=4)
    s[C].reorder(ro, *s[C].op.axis, ri)
    s[C].prefetch(B, ro, 2)
    s[copy].compute_at(s[C], ro)
    s[copy].storage_align(s[copy].op.axis[0], 16)
    s[copy].annotate(s[copy].op.axis[1], "mine.note", 1)


def test_names_make_the_steps_that_handles_make(tensors):
    named, handled = fresh(tensors), fresh(tensors)
    by_names(named)
    by_handles(handled, tensors)
    assert named.trace == handled.trace
    assert str(named) == str(handled)


def test_a_reduction_is_factored_by_names(tensors):
    _, _, C, _ = tensors
    named, handled = fresh(tensors), fresh(tensors)
    named["C"].split("r", 4)
    named.rfactor("C", "r_inner")
    named["D"].reverse_compute_at("C", "i")
    _, inner = handled[C].split(C.op.reduce_axis[0], 4)
    handled.rfactor(C, inner)
    handled["D"].reverse_compute_at(handled[C], C.op.axis[0])
    assert named.trace == handled.trace


def test_a_view_of_a_stage_names_it_everywhere(tensors):
    s = fresh(tensors)
    assert s[s["C"]].name == "C"
    copy = s.cache_read(s["A"], "local", [s["C"]])
    assert copy.name == "A.local"
    s["C"].prefetch(s["B"], "r", 1)
    assert s.trace[-1].tensor == "B"


def test_a_name_means_the_loop_that_has_it_now(tensors):
    s = fresh(tensors)
    s["D"].split("i", 4)
    assert s["D"].loop_id("i_inner") == "D#3"
    s.cache_write("C", "local")
    assert [loop.name for loop in s["C.local"].loops] == ["i", "j", "r"]


def refused(text):
    return pytest.raises(lw.ScheduleError, match=re.escape(text))


STEPS = {
    "split": lambda s, loop: s["C"].split(loop, 4),
    "fuse": lambda s, loop: s["C"].fuse("i", loop),
    "fuse one": lambda s, loop: s["C"].fuse(loop),
    "tile": lambda s, loop: s["C"].tile("i", loop, 4, 4),
    "reorder": lambda s, loop: s["C"].reorder(loop, "i"),
    "vectorize": lambda s, loop: s["C"].vectorize(loop),
    "unroll": lambda s, loop: s["C"].unroll(loop),
    "parallel": lambda s, loop: s["C"].parallel(loop),
    "prefetch": lambda s, loop: s["C"].prefetch("A", loop, 1),
    "annotate": lambda s, loop: s["C"].annotate(loop, "mine.note", 1),
    "rfactor": lambda s, loop: s.rfactor("C", loop),
    "tensorize": lambda s, loop: s["C"].tensorize(loop, "nothing"),
    "reverse_compute_at": lambda s, loop: s["D"].reverse_compute_at("C", loop),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_an_unknown_name_is_refused_with_the_names_that_there_are(step, tensors):
    s = fresh(tensors)
    with refused("C has no loop k; its loops are i (C#0), j (C#1), r (C#2)"):
        step(s, "k")
    assert len(s.trace) == 0


@pytest.mark.parametrize("step", [step for name, step in STEPS.items() if name != "tile"])
def test_a_name_of_the_past_is_refused_with_what_became_of_it(step, tensors):
    s = fresh(tensors)
    s["C"].split("j", 4)
    with refused("loop j (C#1) of C is stale: an earlier step split into j_outer (C#3) and j_inner (C#4)"):
        step(s, "j")


def test_a_place_in_a_loop_that_is_not_there_is_refused(tensors):
    s = fresh(tensors)
    with refused("D has no loop r; its loops are i (D#0), j (D#1)"):
        s["C"].compute_at("D", "r")


def test_a_name_that_two_loops_have_is_refused_with_their_ids():
    A = te.placeholder((4, 8), "float32", name="A")
    axis = te.reduce_axis((0, 8), name="i")
    T = te.compute((4,), lambda i: te.sum(A[i, axis], axis=axis), name="T")
    s = lw.create_schedule(T)
    with refused('T has 2 loops named i\nName one by its id, outermost first: "T#0", "T#1".'):
        s["T"].split("i", 4)
    s["T"].split("T#1", 4)
    s["T"].split("i", 2)
    assert [loop.name for loop in s["T"].loops] == ["i_outer", "i_inner", "i_outer", "i_inner"]


def test_unknown_stages_are_refused_with_the_names_that_there_are(tensors):
    s = fresh(tensors)
    for step in (
        lambda: s["E"],
        lambda: s["C"].compute_at("E", "i"),
        lambda: s.cache_read("E", "local", "C"),
        lambda: s.cache_read("A", "local", ["E"]),
        lambda: s["C"].prefetch("E", "i", 1),
        lambda: s.rfactor("E", "r"),
    ):
        with refused("the schedule has no stage 'E'; there are A, B, C, D"):
            step()


def test_stages_of_computes_with_one_name_are_numbered():
    A = te.placeholder((4,), "float32", name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="B")
    s = lw.create_schedule(C)
    assert s["B"].op is B.op
    assert s["B_1"].op is C.op


def extremes(name):
    A = te.placeholder((4, 8), "float32", name="A")
    r = te.reduce_axis((0, 8), name="r")
    return te.compute((4,), lambda i: te.argmax(A[i, r], axis=r), name=name)


def test_a_stage_is_named_by_one_of_its_tensors():
    values, _ = extremes("S")
    s = lw.create_schedule(values)
    assert s["S.v1"].name == s["S"].name == "S"


def test_a_name_of_tensors_of_several_stages_is_refused_with_their_names():
    s = lw.create_schedule([extremes("S")[0], extremes("S")[0]])
    with refused("2 stages compute a tensor named S.v0: S, S_1; name one"):
        s["S.v0"]


def test_an_unknown_axis_has_no_stride_to_align(tensors):
    s = fresh(tensors)
    with refused("C has no axes named r; its axes are i, j: give the position of the dimension, from 0"):
        s["C"].storage_align("r", 16)


def test_an_input_has_no_loops_to_name(tensors):
    with refused("A is an input: it has no loops to schedule"):
        fresh(tensors)["A"].split("i", 4)
