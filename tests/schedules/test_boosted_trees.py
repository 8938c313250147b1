"""Boosted trees learn functions of features, and correct predictions by what was measured."""

import numpy as np
import pytest
from te_computes import CASES

import loopwright as lw
from loopwright.schedules.auto.candidates import Candidates, Scheduling
from loopwright.schedules.auto.learned.boosted_trees import BoostedTrees, BoostingOptions
from loopwright.schedules.auto.learned.cost_correction import CostCorrection


def table(seed, rows=600):
    x = np.random.default_rng(seed).uniform(-1, 1, (rows, 6))
    return x, np.where(x[:, 0] > 0.2, 2.0, 0.0) + x[:, 1] * (x[:, 2] > 0)


def test_trees_learn_steps_and_products():
    x, y = table(0)
    trees = BoostedTrees.fit(x, y, np.ones(len(y)), BoostingOptions(trees=120, rate=0.15))
    other, expected = table(1)
    error = np.mean((trees.predict(other) - expected) ** 2) / np.var(expected)
    assert error < 0.05


def test_weights_say_what_counts():
    x = np.zeros((20, 1))
    y = np.repeat([0.0, 1.0], 10)
    weights = np.repeat([1e-9, 1.0], 10)
    trees = BoostedTrees.fit(x, y, weights, BoostingOptions(shrink=1e-6, least=0.0))
    assert trees.predict(x[:1])[0] == pytest.approx(1.0, abs=1e-3)


def test_equal_seeds_give_equal_trees_and_other_seeds_others():
    x, y = table(2)
    one, two, other = (BoostedTrees.fit(x, y, np.ones(len(y)), BoostingOptions(seed=s)).predict(x) for s in (0, 0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_no_rows_and_constant_features_are_fine():
    trees = BoostedTrees.fit(np.ones((9, 2)), np.arange(9.0) - 4, np.ones(9))
    assert trees.predict(np.ones((3, 2))) == pytest.approx([0.0] * 3, abs=0.1)
    assert trees.predict(np.ones((0, 2))).shape == (0,)


def made(seed=0):
    case = CASES["matmul"](24, 48, 32)
    candidates = Candidates(Scheduling(case.outputs, lw.resolve_target("x86-64-v3"), lw.schedule_rules()))
    wanted = [{"C.rows": rows, "C.vectors": vectors} for rows in (1, 2, 3, 4, 6, 8) for vectors in (1, 2, 3)]
    found = [each for each in map(candidates.sketched, wanted) if each is not None]
    return list({each.nest: each for each in found}.values())


def test_few_measurements_leave_the_analytic_model_as_it_is():
    candidates = made()
    correction = CostCorrection.learn(candidates[:3], [3.0, 2.0, 1.0])
    assert correction.trees is None
    assert correction.logarithms(candidates) == pytest.approx(np.log2([each.cost.cycles for each in candidates]))


def test_measurements_that_contradict_the_model_change_the_order():
    candidates = made()
    seconds = [1 / each.cost.cycles for each in candidates]
    correction = CostCorrection.learn(candidates, seconds)
    corrected = correction.logarithms(candidates)
    assert np.corrcoef(corrected, np.log2(seconds))[0, 1] > 0.5


def test_features_are_the_same_numbers_for_all_computes():
    target = lw.resolve_target("x86-64-v3")
    names = set()
    for name, sizes in (
        ("blur", (30, 40)),
        ("softmax", (8, 40)),
        ("bytes_product", (9, 20, 8)),
        ("running_sums", (5, 9)),
    ):
        candidates = Candidates(Scheduling(CASES[name](*sizes).outputs, target, lw.schedule_rules()))
        for each in (candidates.default(), candidates.sketched({})):
            names.add(tuple(each.features))
            assert all(np.isfinite(value) for value in each.features.values())
    assert len(names) == 1
