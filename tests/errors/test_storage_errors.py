"""Layouts, strides and scopes that cannot be are refused when they are asked for."""

import pytest

import loopwright as lw
from loopwright import te


@pytest.fixture
def stages():
    A = te.placeholder((6, 8), name="A")
    B = te.compute((6, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((6, 8), lambda i, j: B[i, j] * 2.0, name="C")
    return lw.create_schedule(C), A, B, C


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


def acts(view):
    return (
        lambda: view.set_scope("local"),
        lambda: view.storage_align(0, 16),
        lambda: view.transform_layout(lambda i, j: (j, i)),
    )


def test_memory_of_the_caller_is_left_as_it_is(stages):
    s, A, B, C = stages
    for act in acts(s[A]):
        with refused("A: it is an input, whose memory is the caller's\nTake a copy of it that cache_read makes"):
            act()
    for act in acts(s[C]):
        with refused("C: it is an output, whose memory is the caller's\nTake the stage that cache_write"):
            act()
    s[B].compute_inline()
    for act in acts(s[B]):
        with refused("B: it is inlined: it has no memory"):
            act()


def test_scopes_are_known_by_name(stages):
    s, _A, B, _C = stages
    with refused("there is no scope 'shared'; there are global, local, register"):
        s[B].set_scope("shared")


@pytest.mark.parametrize("dim", [1, 2, -1, True, 0.5])
def test_only_dimensions_before_the_last_have_a_stride_to_choose(stages, dim):
    s, _A, B, _C = stages
    with refused(f"no stride to choose for dimension {dim!r}; dimensions of which there is: 0 to 0"):
        s[B].storage_align(dim, 16)


@pytest.mark.parametrize(("factor", "offset"), [(0, 0), (-4, 0), (16, 16), (16, -1), (4097, 0), (2.0, 0), (8, None)])
def test_a_stride_is_a_multiple_plus_an_offset_below_it(stages, factor, offset):
    s, _A, B, _C = stages
    with refused("expected integers with 0 <= offset < factor <= 4096"):
        s[B].storage_align(0, factor, offset)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (lambda i, j: (i, i), "may put two of the .6, 8. elements in one place"),
        (lambda i, j: (i + j,), "may put two"),
        (lambda i, j: (i - j, j), "negative or unbounded"),
        (lambda i: (i,), "the tensor has 2 dimensions, but the index map takes 1"),
        (lambda i, j: (), "at least one index"),
        (lambda i, *, j: (i, j), "takes its indices by position"),
        (lambda i, j: (te.var("n"), i, j), "made of its indices, integers"),
        (lambda i, j: (te.minimum(i, 3), i, j), "made of its indices, integers"),
        (lambda i, j: (i // j, i, j), "divides by positive integers"),
        ("lambda i, j: (i, k)", "made of its indices"),
        ("lambda i, j: (i, __import__('os'))", "made of its indices"),
        ("lambda i, j: i +", "written as a lambda"),
        ("(i, j)", "written as a lambda"),
        ("lambda i, j: (" + "i + " * 400 + "i, j)", "written as a lambda"),
        (7, "a function of the indices, or its text"),
    ],
)
def test_a_layout_gives_each_element_a_place_of_its_own(stages, layout, message):
    s, _A, B, _C = stages
    before = s.state
    with refused(message):
        s[B].transform_layout(layout)
    assert s.state is before


def test_a_layout_comes_before_its_strides(stages):
    s, _A, B, _C = stages
    s[B].storage_align(0, 16)
    with refused("Call transform_layout first, then storage_align"):
        s[B].transform_layout(lambda i, j: (j, i))


def test_cache_write_comes_before_a_layout(stages):
    s, _A, B, _C = stages
    s[B].transform_layout(lambda i, j: (j, i))
    with refused("scheduled already"):
        s.cache_write(B, "local")


def test_a_later_step_does_not_break_a_layout():
    """Whole, B has 8 elements; how many a row of C needs is not known, and their places may collide."""
    m = te.var("m")
    B = te.compute((8,), lambda i: te.cast(i, "float32"), name="B")
    C = te.compute((4, m), lambda i, j: B[j] * 2.0, name="C")
    s = lw.create_schedule(C)
    s[B].transform_layout(lambda i: (i % 8,))
    before = s.state
    with refused(r"layout of B, lambda i: \(i % 8,\), may put two of the \(m\) elements in one place"):
        s[B].compute_at(s[C], C.op.axis[0])
    assert s.state is before


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("lambda i, j: (i * 2, j)", "do not tell which of the \\(6, 8\\) elements they are at\nWrite down all digits"),
        ("lambda i, j: (i + j, j)", "do not tell which"),
        ("lambda i, j: (i // 2, j)", "do not tell which"),
        ("lambda i: (i,)", "the tensor has 2 dimensions, but the index map takes 1"),
        ("lambda i, j: (i * 9 + j,)", "some elements of the copy are none of it\nSay what they hold: pad=0"),
    ],
)
def test_axes_of_a_copy_tell_every_element(stages, axes, message):
    s, A, B, _C = stages
    with refused(message):
        s.cache_read(A, "local", B, axes=axes)
    if "pad" not in message:
        with refused(message):
            s.cache_write(B, "local", axes=axes)


def test_what_lies_between_elements_reads_nothing_beyond_the_ends(stages):
    s, A, B, _C = stages
    with refused("between its elements .* may be beyond the ends of A, along dimension 1\nLet it read a copy of A"):
        s.cache_write(B, "local", axes="lambda i, j: (i * 9 + j,)")
    s.cache_read(A, "local", B, pad=0, axes="lambda i, j: (i * 9 + j,)")
    s.cache_write(B, "local", axes="lambda i, j: (i * 9 + j,)")


def test_stages_with_ragged_loops_keep_their_axes():
    ends, A = te.placeholder((4,), "int64", name="ends"), te.placeholder((8,), name="A")

    def total(i):
        r = te.reduce_axis((0, ends[i]), name="r")
        return te.sum(A[r], axis=r)

    C = te.compute((4,), total, name="C")
    with refused("cannot cache_write C with axes: it has loops whose extent varies"):
        lw.create_schedule(C).cache_write(C, "local", axes="lambda i: (i // 2, i % 2)")
