"""The candidates of calls: which there are, and that each is legal."""

import random

import pytest

import loopwright as lw
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.settings import CompileSettings
from loopwright.tuning.space import CallSpace, drawn, neighbours

V3 = lw.resolve_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
A, B = lw.var("a", (24, 64)), lw.var("b", (64, 48))
PRODUCT = lw.nn.matmul(A, B)
MODEL = lw.Function([A, B], lw.nn.relu(PRODUCT))


def task_of(model=MODEL, target=V3, **more):
    (task,) = lw.tasks(model, target, **more)
    return task


def test_the_untuned_choice_comes_first():
    space = task_of().space()
    assert space.implementations[0] == lw.tasks(MODEL, V3)[0].untuned == "matmul.paneled"
    assert set(space.implementations) == set(task_of().implementations)


def test_the_default_candidate_has_the_default_decisions():
    settled = task_of().space().settle("matmul.paneled", {})
    assert settled.candidate.decided == {d.name: d.default for d in lw.decisions(PRODUCT, V3)}


def test_drawn_candidates_have_legal_values():
    space, rng = task_of().space(), random.Random(1)
    for _ in range(5):
        settled = drawn(space, "matmul.paneled", rng)
        made = lw.decisions(PRODUCT, V3, "matmul.paneled", settled.candidate.decided)
        assert tuple((d.name, d.value) for d in made) == settled.candidate.decisions


def test_a_value_that_is_not_legal_becomes_the_nearest_and_a_name_that_is_unknown_is_left_out():
    settled = task_of().space().settle("matmul.paneled", {"rows": 1000, "of": "another"})
    (rows,) = (d for d in settled.decisions if d.name == "rows")
    assert rows.value == max(rows.legal)


def test_neighbours_are_candidates():
    space = task_of().space()
    settled = space.settle("matmul.paneled", {})
    around = neighbours(space, settled)
    assert any(candidate.implementation != "matmul.paneled" for candidate in around)
    for candidate in around:
        assert space.settle(candidate.implementation, candidate.decided).candidate == candidate


def test_strict_precision_keeps_the_order_of_sums():
    class Reordering:
        name, plevel = "x", 10

        def decisions(self, call, target, decided=None):
            value = (decided or {}).get("folds", 1)
            return (lw.Decision("folds", (1, 2), 1, value, reorders_sum=True),)

    strict = CallSpace(PRODUCT, CompileSettings(V3, CodegenOptions(precision="strict")), "x", ())
    strict._offered = {"x": Reordering()}
    assert strict.settle("x", {"folds": 2}).candidate.decided == {"folds": 1}
    free = CallSpace(PRODUCT, CompileSettings(V3), "x", ())
    free._offered = {"x": Reordering()}
    assert free.settle("x", {"folds": 2}).candidate.decided == {"folds": 2}


def test_a_search_begins_with_records_of_this_workload_then_of_near_shapes():
    near, far = (lw.nn.matmul(lw.var("a", (m, 64)), lw.var("b", (64, 48))) for m in (32, 4096))
    other = lw.resolve_target("x86-64-v4")
    records = lw.TuningRecords(
        [
            lw.TuningRecord.of(far, V3, "matmul.paneled", [1.0], decisions={"rows": 1}),
            lw.TuningRecord.of(near, V3, "matmul.paneled", [1.0], decisions={"rows": 2}),
            lw.TuningRecord.of(PRODUCT, other, "matmul.paneled", [1.0], decisions={"rows": 3}),
            lw.TuningRecord.of(lw.nn.softmax(A), V3, "softmax.rows", [1.0]),
        ]
    )
    assert [start.decided["rows"] for start in task_of().space(records).starts] == [3, 2, 1]


# Tasks.


def test_equal_functions_are_one_task_and_the_largest_comes_first():
    w = lw.var("w", (48, 48))
    y = lw.nn.relu(PRODUCT)
    for _ in range(3):
        y = lw.nn.relu(lw.nn.matmul(y, w))
    found = lw.tasks(lw.Function([A, B, w], y), V3)
    assert [sum(use.calls for use in task.uses) for task in found] == [3, 1]
    assert found[0].share > found[1].share > 0
    assert sum(task.share for task in found) == pytest.approx(1)


def test_a_workload_in_two_functions_is_one_task():
    c = lw.var("c", (24, 64))
    both = lw.Function([A, B, c], lw.nn.relu(PRODUCT) + lw.nn.exp(lw.nn.matmul(c, B)))
    (task,) = lw.tasks(both, V3, only=["nn.matmul"])
    assert sorted(use.function.name for use in task.uses) == sorted({use.function.name for use in task.uses})
    assert len(task.uses) == 2


def test_only_the_operators_that_are_asked_for():
    model = lw.Function([A, B], lw.nn.softmax(lw.nn.relu(PRODUCT)))
    assert [task.workload.op for task in lw.tasks(model, V3, only=["nn.matmul"])] == ["nn.matmul"]
    assert lw.tasks(model, V3, only=["nn.conv2d"]) == ()


def test_calls_without_a_choice_or_with_open_dimensions_are_no_tasks():
    assert lw.tasks(lw.Function([A], lw.nn.relu(A)), V3) == ()
    x = lw.var("x", (lw.te.var("n"), 64))
    assert lw.tasks(lw.Function([x, B], lw.nn.matmul(x, B)), V3) == ()


def test_the_key_of_a_task_does_not_depend_on_records():
    known = lw.TuningRecords([lw.TuningRecord.of(PRODUCT, V3, "matmul.direct", [1.0])])
    assert task_of().key == task_of(records=known).key
    assert task_of().key != task_of(target="x86-64-v4").key
