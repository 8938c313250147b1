"""Hints that make no sense where they are asked for are refused, and steps that would lose them."""

import pytest

import loopwright as lw
from loopwright import te


@pytest.fixture
def stages():
    A = te.placeholder((64, 64), name="A")
    I = te.placeholder((64,), "int32", name="I")
    P = te.compute((64, 64), lambda i, j: A[i, j] + 1.0, name="P")
    B = te.compute((64, 64), lambda i, j: P[i, j] * A[I[i], j], name="B")
    return lw.create_schedule(B), A, I, P, B


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


@pytest.mark.parametrize("distance", [0, -1, 1.5, True, "8", (1 << 20) + 1])
def test_a_distance_is_a_positive_integer(stages, distance):
    s, _A, I, _P, B = stages
    with refused("distance must be a positive integer"):
        s[B].prefetch(I, B.op.axis[0], distance)


def test_what_is_prefetched_is_read(stages):
    s, A, I, P, B = stages
    i, j = B.op.axis
    with refused("I cannot be prefetched at loop i of P: P does not read I"):
        s[P].prefetch(I, P.op.axis[0], 1)
    with refused("A cannot be prefetched at loop j of B: its index .* depends on what is in memory"):
        s[B].prefetch(A, j, 1)
    with refused("an iteration reads 256 cache lines of it, more than 64"):
        s[P].prefetch(A, s[P].split(P.op.axis[0], 64)[0], 1)
    with refused("no stage 'Z'"):
        s[B].prefetch("Z", i, 1)
    with refused("has no loop"):
        s[B].prefetch(P, "B#9", 1)
    s[B].prefetch(P, i, 1)
    with refused("P is prefetched at loop i of B already"):
        s[B].prefetch(P, i, 2)


def test_a_tile_of_rows_in_images_of_open_extents_is_not_fetched_as_all_of_them():
    """The box around 8 pixels in a row, which may stand at the end of one row and the begin of the next one."""
    shape = te.var("n"), te.var("h"), te.var("w"), 16
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda n, i, j, c: A[n, i, j, c] + 1.0, name="B")
    s = lw.create_schedule(B)
    pixel, _tile = s[B].split(s[B].fuse(*B.op.axis[:3]), 8)
    for tensor in (A, B):
        with refused("what 128 iterations inside access may be .* apart"):
            s[B].prefetch(tensor, pixel, 1)


def test_a_prefetch_is_neither_vectorized_nor_lost(stages):
    s, A, _I, P, B = stages
    i, j = B.op.axis
    s[B].prefetch(P, i, 1)
    for act in (lambda: s[B].split(i, factor=4), lambda: s[B].fuse(i, j)):
        with refused("loop i of B: P is prefetched at it"):
            act()
    with refused("P cannot be prefetched at loop i of B: it is vectorized, or inside"):
        s[B].vectorize(i)
    with refused("P is inlined, and has no memory"):
        s[P].compute_inline()
    with refused("P lives in memory inside it, which is not there before"):
        s[P].compute_at(s[B], i)
    with refused("B does not read P"):
        s.cache_read(P, "local", [B])
    s[P].prefetch(A, P.op.axis[0], 1)
    with refused("scheduled already: a prefetch stands in its loops"):
        s.cache_write(P, "local")
    s[B].vectorize(j)
    with refused("it is vectorized, or inside a vectorized loop"):
        s[B].prefetch("I", j, 1)


def test_a_stage_with_a_prefetch_in_its_loops_is_not_inlined(stages):
    s, A, _I, P, _B = stages
    s[P].prefetch(A, P.op.axis[0], 1)
    with refused("A cannot be prefetched at loop i of P: P would be inlined, and has no loops then"):
        s[P].compute_inline()


def test_a_divisor_is_not_moved_to_where_it_is_0():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i // (8 - i)], name="B")
    s = lw.create_schedule(B)
    with refused("divides by what may be 0 further on"):
        s[B].prefetch(A, B.op.axis[0], 1)


def test_annotations_are_known_or_ones_own(stages):
    s, _A, _I, _P, B = stages
    i, j = B.op.axis
    for key in ("partiton", "unroll", "", "a b", ".x", 3):
        with refused("there is no annotation .*; there are: partition: False keeps the loop whole"):
            s[B].annotate(i, key, True)
    with refused("the value of 'partition' is 0, expected True or False"):
        s[B].annotate(i, "partition", 0)
    with refused("the value of 'mine.x' is 1.5, expected a string, an integer or a bool"):
        s[B].annotate(i, "mine.x", 1.5)
    s[B].annotate(i, "mine.x", 1)
    with refused("has a note 'mine.x' already"):
        s[B].annotate(i, "mine.x", 2)
    with refused("cannot split loop i of B: 'mine.x' is noted at it"):
        s[B].split(i, factor=4)
    with refused("cannot fuse loop i of B: 'mine.x' is noted at it"):
        s[B].fuse(i, j)
    with refused("cannot cache_write B: it is scheduled already: its loops are annotated"):
        s.cache_write(B, "local")


def test_rfactor_does_not_take_noted_loops_away():
    A = te.placeholder((64,), name="A")
    r = te.reduce_axis((0, 64), name="r")
    S = te.compute((), lambda: te.sum(A[r], axis=r), name="S")
    s = lw.create_schedule(S)
    outer, inner = s[S].split(r, factor=8)
    s[S].annotate(outer, "mine.x", 1)
    with refused("remove loop r_outer of S, which has a prefetch or a note"):
        s.rfactor(S, inner)
    s = lw.create_schedule(S)
    outer, inner = s[S].split(r, factor=8)
    s[S].prefetch(A, outer, 1)
    with refused("remove loop r_outer of S, which has a prefetch or a note"):
        s.rfactor(S, inner)
