"""Autoscheduled computes of users' kinds: equal to numpy and the interpreter, replayed, never predicted worse."""

from functools import cache

import numpy as np
import pytest
from same_state import same_state
from te_computes import CASES

import loopwright as lw
from loopwright.schedules.auto.cost.predict import predict

TARGET = lw.resolve_target("llvm -mcpu=x86-64-v3 -threads=4")
SHAPES = {
    "blur": (21, 40),
    "unsharp": (18, 37),
    "jacobi_twice": (13, 33),
    "matmul": (13, 29, 17),
    "left_transposed": (9, 21, 12),
    "right_transposed": (9, 21, 33),
    "grouped_product": (2, 7, 19, 11),
    "scores": (2, 9, 18),
    "layer": (9, 27, 11),
    "softmax": (9, 61),
    "layer_norm": (7, 45),
    "sum_over_leading": (31, 77),
    "dot": (20_003,),
    "square_norm": (90, 121),
    "row_argmax": (9, 70),
    "bytes_sum": (10, 130),
    "bytes_product": (9, 21, 10),
    "running_sums": (7, 35),
    "convolution": (2, 3, 11),
    "pooling": (3, 9),
    "transposition": (19, 37),
    "gelu": (9, 41),
}
SLOW = {"unsharp", "left_transposed", "scores", "layer_norm", "square_norm", "convolution", "gelu", "jacobi_twice"}
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SHAPES]
INTERPRETED = ("blur", "matmul", "grouped_product", "softmax", "row_argmax", "running_sums", "pooling")


def case_of(name):
    return CASES[name](*SHAPES[name])


@cache
def scheduled(name):
    """A case with its schedule; few candidates, so that the tests are quick."""
    case = case_of(name)
    return case, lw.autoschedule(case.outputs, TARGET, candidates=2, seed=len(name))


def lowered(case, schedule):
    return lw.lower(schedule, [*case.inputs, *case.outputs], target=TARGET)


def check(case, arrays, found):
    expected = case.reference(*arrays)
    for own, other in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        if own.dtype.kind == "f":
            np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-4)
        else:
            np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_computes_what_numpy_does(name):
    case, schedule = scheduled(name)
    arrays, found = case.arrays(), case.results()
    lw.build(schedule, [*case.inputs, *case.outputs], target=TARGET)(*arrays, *found)
    check(case, arrays, found)


@pytest.mark.parametrize("name", INTERPRETED)
def test_the_lowered_nest_is_in_bounds_without_races_and_right(name):
    case, schedule = scheduled(name)
    arrays, found = case.arrays(), case.results()
    lw.interpret(lowered(case, schedule))(*arrays, *found)
    check(case, arrays, found)


@pytest.mark.parametrize("name", NAMES)
def test_the_trace_replays_and_the_cost_is_not_above_the_default(name):
    case, schedule = scheduled(name)
    again = lw.create_schedule(case.outputs)
    again.replay(lw.Trace.from_json(schedule.trace.to_json()))
    assert same_state(again.state, schedule.state)
    default = predict(lowered(case, lw.default_schedule(case.outputs, TARGET)), TARGET)
    assert predict(lowered(case, schedule), TARGET).cycles <= default.cycles


def test_equal_seeds_give_equal_schedules():
    made = [lw.autoschedule(case_of("layer").outputs, TARGET, candidates=4, seed=7) for _ in range(2)]
    assert made[0].trace.to_json() == made[1].trace.to_json()


def test_without_reassociation_no_sum_is_folded_otherwise_than_it_is_written():
    case = case_of("row_argmax"), case_of("dot")
    for each in case:
        schedule = lw.autoschedule(each.outputs, TARGET, candidates=3, reassociate=False)
        assert not any(step.primitive == "rfactor" for step in schedule.trace)
        assert not any(decision.reorders_sum for decision in schedule.decisions)
    each = case[1]
    lw.build(schedule, [*each.inputs, *each.outputs], target=TARGET, precision="strict")


def test_open_extents_take_what_is_legal_for_all():
    from loopwright import te

    n = te.var("n")
    A, B = te.placeholder((n, 24), name="A"), te.placeholder((24, 40), name="B")
    r = te.reduce_axis((0, 24), name="r")
    C = te.compute((n, 40), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    Y = te.compute((n, 40), lambda i, j: te.maximum(C[i, j], 0.0), name="Y")
    schedule = lw.autoschedule(Y, TARGET, candidates=4)
    kernel = lw.build(schedule, [A, B, Y], target=TARGET)
    rng = np.random.default_rng(0)
    b = rng.standard_normal((24, 40), np.float32)
    for rows in (1, 5, 64):
        a, y = rng.standard_normal((rows, 24), np.float32), np.zeros((rows, 40), np.float32)
        kernel(a, b, y)
        np.testing.assert_allclose(y, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


def test_ragged_reductions_keep_the_general_rules():
    from loopwright import te

    begin, V = te.placeholder((6,), "int32", name="begin"), te.placeholder((30, 8), name="V")

    def segment(i, j):
        r = te.reduce_axis((begin[i], begin[i + 1]), name="r")
        return te.sum(V[r, j], axis=r)

    S = te.compute((5, 8), segment, name="S")
    schedule = lw.autoschedule(S, TARGET, candidates=3)
    starts, v, found = np.array([0, 3, 3, 11, 20, 30], np.int32), np.ones((30, 8), np.float32), np.zeros((5, 8), "f4")
    lw.interpret(lw.lower(schedule, [begin, V, S], target=TARGET))(starts, v, found)
    np.testing.assert_array_equal(found, np.repeat(np.diff(starts)[:, None], 8, axis=1))


def test_odd_products_get_tiles_of_several_rows():
    case = CASES["matmul"](127, 129, 131)
    schedule = lw.autoschedule(case.outputs, TARGET, candidates=8)
    assert next(d.value for d in schedule.decisions if d.name == "C.rows") > 1


def test_rows_of_a_softmax_are_computed_together():
    case = CASES["softmax"](128, 1000)
    schedule = lw.autoschedule(case.outputs, TARGET, candidates=1)
    assert str(schedule).splitlines()[0].startswith("for ")  # one nest, not one a stage
