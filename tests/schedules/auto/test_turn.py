"""What is read across its rows, turned in registers by rule: against numpy, natively and by the interpreter."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.schedules.auto.sketch import make_sketch

TARGET = lw.resolve_target("llvm -mcpu=x86-64-v3 -threads=4")


def across(shape, dtype="float32"):
    X = te.placeholder(shape, dtype, name="X")
    return (
        [X],
        te.compute((shape[0], shape[2], shape[1]), lambda b, i, j: X[b, j, i] * 2, name="Y"),
        lambda x: 2 * x.swapaxes(1, 2),
    )


def behind_an_inlined_stage(shape):
    X, Z = te.placeholder(shape, name="X"), te.placeholder((shape[0], shape[2], shape[1]), name="Z")
    scaled = te.compute(shape, lambda b, i, j: X[b, i, j] * 0.5, name="scaled")
    Y = te.compute(Z.shape, lambda b, i, j: scaled[b, j, i] + Z[b, i, j], name="Y")
    return [X, Z], Y, lambda x, z: x.swapaxes(1, 2) * np.float32(0.5) + z


def outermost_last(shape):
    X = te.placeholder(shape, name="X")
    Y = te.compute((*shape[1:][::-1], shape[0]), lambda i, j, b: X[b, j, i] + 1.0, name="Y")
    return [X], Y, lambda x: x.transpose(2, 1, 0) + 1


def decided(Y):
    """The sketch with its loops by the rule, which has to be offered for that."""
    schedule = make_sketch(Y, TARGET, lw.schedule_rules(), decided={"Y.loops": "turn", "scaled.form": "inline"})
    assert {d.name: d.value for d in schedule.decisions}.get("Y.loops") == "turn"
    return schedule


@pytest.mark.parametrize("shape", [(2, 8, 16), (3, 13, 9)], ids=str)
@pytest.mark.parametrize("make", [across, behind_an_inlined_stage, outermost_last])
def test_tiles_turned_by_the_rule_hold_what_numpy_gives(make, shape):
    shape = (9, 3, shape[2]) if make is outermost_last else shape
    inputs, Y, reference = make(shape)
    schedule = decided(Y)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([int(e) for e in X.shape]).astype(np.float32) for X in inputs]
    expected = reference(*arrays)
    for run in (
        lw.build(schedule, [*inputs, Y], target=TARGET),
        lw.interpret(lw.lower(schedule, [*inputs, Y], target=TARGET)),
    ):
        found = np.full(expected.shape, np.nan, np.float32)
        run(*arrays, found)
        np.testing.assert_array_equal(found, expected)


def test_bytes_are_turned_in_tiles_of_sixteen():
    inputs, Y, reference = across((1, 40, 33), "int8")
    x = np.arange(-60, 60, dtype=np.int8)[np.arange(1 * 40 * 33).reshape(1, 40, 33) % 120]
    schedule = decided(Y)
    assert {d.name: d.value for d in schedule.decisions}["Y.side"] == 16
    found = np.zeros((1, 33, 40), np.int8)
    lw.build(schedule, [*inputs, Y], target=TARGET)(x, found)
    np.testing.assert_array_equal(found, reference(x))


@pytest.mark.parametrize(
    "body",
    [
        lambda X, i, j: X[i, j] + 1.0,  # along the rows
        lambda X, i, j: X[j, i] + X[j, i + 1],  # two elements
        lambda X, i, j: X[j + i, i],  # a diagonal
        lambda X, i, j: X[j, i * 2],  # every second
        lambda X, i, j: X[j // 2, i],  # rows twice
    ],
)
def test_nothing_is_turned_that_is_not_read_across_its_rows(body):
    X = te.placeholder((64, 64), name="X")
    Y = te.compute((32, 32), lambda i, j: body(X, i, j), name="Y")
    schedule = make_sketch(Y, TARGET, lw.schedule_rules())
    assert all("turn" not in d.legal for d in schedule.decisions)


def test_autoschedule_turns_a_transpose():
    X = te.placeholder((500, 700), name="X")
    Y = te.compute((700, 500), lambda i, j: X[j, i] * 2.0, name="Y")
    schedule = lw.autoschedule(Y, TARGET)
    assert {d.name: d.value for d in schedule.decisions}["Y.loops"] == "turn"
