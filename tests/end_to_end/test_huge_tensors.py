"""Tensors of more than 2**32 elements: no index is computed in 32 bits, whatever the schedule."""

import mmap

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

ROWS = COLUMNS = 70_000
SIZE = ROWS * COLUMNS


@pytest.fixture(scope="module")
def zeros():
    """4.9e9 bytes that cost no memory where they are only read: pages of one anonymous mapping. The last is a 7."""
    made = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)
    made[-1] = 7
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("symbolic", "debug"), [(False, False), (True, False), (True, True)])
def test_an_element_behind_4e9_others_is_found(zeros, symbolic, debug):
    rows, columns = (te.var("n"), te.var("m")) if symbolic else (ROWS, COLUMNS)
    A, j = te.placeholder((rows, columns), "uint8", name="A"), te.reduce_axis((0, columns), name="j")
    C = te.compute((rows,), lambda i: te.max(A[i, j], axis=j), name="C")
    s = lw.create_schedule(C)
    s[C].parallel(C.op.axis[0])
    found = np.full(ROWS, 1, np.uint8)
    lw.build(s, [A, C], debug=debug)(zeros.reshape(ROWS, COLUMNS), found)
    assert found[-1] == 7
    assert not found[:-1].any()


@pytest.mark.slow
def test_a_loop_runs_on_beyond_32_bits(zeros):
    n = te.var("n")
    A, r = te.placeholder((n,), "uint8", name="A"), te.reduce_axis((0, n), name="r")
    C = te.compute((1,), lambda i: te.max(A[r], axis=r), name="C")
    found = np.zeros(1, np.uint8)
    lw.build(lw.create_schedule(C), [A, C])(zeros, found)
    assert found[0] == 7


def read_at(debug):
    n = te.var("n")
    A, P = te.placeholder((n,), "uint8", name="A"), te.placeholder((4,), "int64", name="P")
    B = te.compute((4,), lambda i: A[P[i]], name="B")
    return lw.build(lw.create_schedule(B), [A, P, B], debug=debug)


@pytest.mark.slow
@pytest.mark.parametrize("debug", [False, True])
def test_indices_from_data_reach_the_end(zeros, debug):
    places = np.array([SIZE - 1, SIZE - 2, (SIZE - 1) % 2**32, SIZE - 1])
    found = np.ones(4, np.uint8)
    read_at(debug)(zeros, places, found)
    assert found.tolist() == [7, 0, 0, 7]


@pytest.mark.slow
def test_a_debug_build_sees_the_end(zeros):
    with pytest.raises(lw.BoundsError, match=f"reads A\\[{SIZE}\\], but dimension 0 of A has extent {SIZE}"):
        read_at(debug=True)(zeros, np.array([0, SIZE - 1, SIZE, 0]), np.zeros(4, np.uint8))
