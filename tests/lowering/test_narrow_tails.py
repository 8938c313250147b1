"""narrow_tails: of the last vector of a row, what is behind the end is not computed, where functions would be."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

TARGET = lw.resolve_target("x86-64-v4")
LANES = TARGET.lanes("float32")


def rows(body, lanes, columns=None, kept=False):
    """Rows of x in vectors of so many lanes, of which what ``body`` gives is stored; ``kept``, and read once more."""
    m, n = te.var("m"), te.var("n") if columns is None else columns
    x = te.placeholder((m, n), "float32", name="x")
    y = te.compute((m, n), lambda i, j: body(x[i, j]), name="y")
    z = te.compute((m, n), lambda i, j: y[i, j] + 1.0, name="z") if kept else y
    schedule = lw.create_schedule(z)
    row, column = schedule[z].loops
    vector, lane = schedule[z].split(column, factor=lanes)
    schedule[z].vectorize(lane)
    schedule[z].parallel(row)
    if kept:
        schedule[y].compute_at(schedule[z], vector)
        schedule[y].vectorize(schedule[y].loops[-1])
    return schedule, [x, z]


def doubled_tanh(x):
    return te.tanh(x * 2.0)


def lanes_of_tails(schedule, args):
    """How many lanes the stores under a mask have, in the order of the text."""
    text = str(lw.lower(schedule, args, target=TARGET))
    return [int(lanes) for lanes in re.findall(r"\[ramp\([^\[\]\n]*, 1, (\d+)\) where [^\n=]*\] = ", text)]


@pytest.mark.parametrize("vectors", [1, 2, 4, 8])
def test_a_tail_of_at_most_half_a_vector_is_computed_by_registers(vectors):
    tails = lanes_of_tails(*rows(doubled_tanh, vectors * LANES))
    assert tails == ([LANES] if vectors == 1 else [vectors * LANES, LANES])


def test_tails_without_functions_are_left_as_they_are():
    assert lanes_of_tails(*rows(lambda x: te.round(x * 2.0), 4 * LANES)) == [4 * LANES]


def test_tails_of_known_lengths_are_left_as_they_are():
    assert lanes_of_tails(*rows(doubled_tanh, 4 * LANES, columns=100)) == [4 * LANES]


def test_what_is_handed_on_in_registers_is_left_as_it_is():
    assert set(lanes_of_tails(*rows(doubled_tanh, 4 * LANES, kept=True))) == {4 * LANES}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("columns", [0, 1, 7, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 71, 96, 97, 100])
def test_rows_of_any_length_are_right(columns, kept):
    schedule, args = rows(doubled_tanh, 4 * LANES, kept=kept)
    x = np.linspace(-2, 2, 3 * columns, dtype=np.float32).reshape(3, columns)
    expected = np.tanh(x * 2) + kept
    func = lw.lower(schedule, args, target=TARGET)
    for run in (lw.build(schedule, args), lw.interpret(func)):
        found = np.full((3, columns), np.nan, np.float32)
        run(x, found)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_quotients_of_lanes_are_left_to_what_comes_before_the_rows():
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), "float32", name="x")
    y = te.compute((m, n + 2), lambda i, j: te.tanh(x[i, (j - 1) % n]), name="y")
    schedule = lw.create_schedule(y)
    _, lane = schedule[y].split(schedule[y].loops[1], factor=4 * LANES)
    schedule[y].vectorize(lane)
    assert set(lanes_of_tails(schedule, [x, y])) == {4 * LANES}
