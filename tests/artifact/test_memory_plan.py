"""The arena: values that live together never overlap, and memory is used again."""

import random

from loopwright.artifact import repeated_plan
from loopwright.artifact.memory_plan import Lifetime, plan_memory
from loopwright.artifact.repeated_plan import RepeatedPlan


def test_values_that_never_live_together_share_memory():
    offsets, size = plan_memory({"a": Lifetime(100, 0, 1), "b": Lifetime(100, 1, 2), "c": Lifetime(100, 2, 3)})
    assert offsets["a"] == offsets["c"] != offsets["b"]
    assert size == 256


def test_no_values_need_no_memory():
    assert plan_memory({}) == ({}, 0)


def test_random_plans_keep_living_values_apart():
    rng = random.Random(7)
    for _ in range(200):
        values = {}
        for k in range(rng.randint(1, 20)):
            first = rng.randint(0, 10)
            values[k] = Lifetime(rng.randint(0, 500), first, first + rng.randint(0, 5))
        offsets, size = plan_memory(values)
        check(values, offsets, size)


def check(values, offsets, size):
    """No two values share memory during a step."""
    for a, la in values.items():
        assert offsets[a] % 64 == 0
        assert offsets[a] + la.size <= size
        for b, lb in values.items():
            if a < b and la.overlaps(lb) and la.size and lb.size:
                assert offsets[a] + la.size <= offsets[b] or offsets[b] + lb.size <= offsets[a]


def test_plans_for_other_sizes_of_the_same_values_keep_them_apart(monkeypatch):
    exact = []
    monkeypatch.setattr(repeated_plan, "plan_memory", lambda values: exact.append(1) or plan_memory(values))
    rng = random.Random(11)
    for _ in range(40):
        lives = [(first, first + rng.randint(0, 5)) for first in (rng.randint(0, 10) for _ in range(15))]
        plan = RepeatedPlan(lives)
        for _ in range(10):
            values = {k: Lifetime(rng.choice([0, 1, 64, 100, 5000]), *life) for k, life in enumerate(lives)}
            offsets, size = plan.place([value.size for value in values.values()])
            check(values, offsets, size)
            assert size <= 1.1 * plan_memory(values)[1]
    assert len(exact) < 400
    exact.clear()
    plan = RepeatedPlan(lives := [(0, 1), (1, 2), (2, 4), (1, 4), (4, 5)])
    for n in range(1, 300):
        values = {k: Lifetime(s, *lives[k]) for k, s in enumerate([n * 40, 512, n * 80, n, 300])}
        assert plan.place([value.size for value in values.values()])[1] <= plan_memory(values)[1]
    assert len(exact) < 20
    assert RepeatedPlan([]).place([]) == ([], 0)
