"""accumulate is refused where elements do not go on from those before them, and later steps that would break it."""

import pytest

import loopwright as lw
from loopwright import te

A = te.placeholder((6, 8), name="A")


def schedule(end=lambda k: k + 1, begin=0, term=lambda i, j, k: A[i, j]):
    def element(i, k):
        j = te.reduce_axis((begin, end(k)), name="j")
        return te.sum(term(i, j, k), axis=j)

    B = te.compute((6, 8), element, name="B")
    C = te.compute((6, 8), lambda i, k: B[i, k] + 1.0, name="C")
    return lw.create_schedule(C)


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


@pytest.mark.parametrize(
    "options",
    [
        {"end": lambda k: te.minimum(k + 2, 8)},
        {"end": lambda k: te.minimum(2 * k, 8)},
        {"end": lambda k: 8},
        {"begin": 1},
        {"term": lambda i, j, k: A[i, j] * te.cast(k, "float32")},
        {"term": lambda i, j, k: te.if_then_else(k > 3, A[i, j], 1.0)},
    ],
)
def test_elements_that_are_not_those_before_with_one_more_term(options):
    s = schedule(**options)
    with refused("cannot accumulate along loop k of B: its elements are not those before them.*\nAlong k, te.sum"):
        s["B"].accumulate("k")


def test_a_reader_that_is_rounded_up_along_the_loop():
    s = schedule()
    core = s.cache_write("C", "local")
    s["B"].accumulate("k")
    with refused("B accumulates along loop k, but not just all of these elements would be computed"):
        s[core].round_up("k", 5)


def test_loops_that_are_no_whole_axis():
    s = schedule()
    with refused("along loop i of B: its elements are not"):
        s["B"].accumulate("i")
    with refused("along loop j of B: its elements are not"):
        s["B"].accumulate("j")
    with refused("along loop k of C: its elements are not"):
        s["C"].accumulate("k")
    s["B"].split("j", 2)
    with refused("its reduction loop is not what it was\nAccumulate before"):
        s["B"].accumulate("k")
    s = schedule()
    s["B"].split("k", 2)
    with refused("along loop k_inner of B: its elements are not"):
        s["B"].accumulate("k_inner")


def test_loops_with_an_annotation():
    s = schedule()
    s["B"].parallel("k")
    with refused("cannot accumulate along loop k of B: it is parallel already"):
        s["B"].accumulate("k")
    s = schedule()
    s["B"].annotate("j", "mine.note", 1)
    with refused("cannot fold away loop j of B: 'mine.note' is noted at it"):
        s["B"].accumulate("k")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda b: b.split("k", 2), "B accumulates along loop k, which stays one loop\nSplit, fuse"),
        (lambda b: b.fuse("i", "k"), "which stays one loop"),
        (lambda b: b.round_up("k", 16), "which stays one loop"),
        (lambda b: b.parallel("k"), "which cannot be parallel\nTake loops over other axes"),
        (lambda b: b.vectorize("k"), "which cannot be vectorized"),
        (lambda b: b.vectorize("i"), "which stands in no vectorized loop\nReorder so that k stands around it"),
        (lambda b: b.compute_at("C", "k"), "but not just all of these elements would be computed\nCompute B where"),
        (lambda b: b.split("j", 2), r"\(accumulate\) folds its terms along k \(B#1\)"),
        (lambda b: b.accumulate("k"), "its reduction loop is not what it was"),
    ],
)
def test_steps_after_it(step, message):
    s = schedule()
    s["B"].accumulate("k")
    with refused(message):
        step(s["B"])


@pytest.mark.parametrize("tail", ["guard", "peel", "shift", "round_up"])
def test_the_loop_stays_one_loop_with_a_reader_inside_of_it(tail):
    s = schedule()
    s["C"].reverse_compute_at("B", "i")
    s["B"].accumulate("k")
    with refused("B accumulates along loop k, which stays one loop\nSplit, fuse"):
        s["B"].split("k", 16, tail=tail)
