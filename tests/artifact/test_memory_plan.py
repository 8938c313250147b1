"""The arena: values that live together never overlap, and memory is used again."""

import random

from loopwright.artifact.memory_plan import Lifetime, plan_memory


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
        for a, la in values.items():
            assert offsets[a] % 64 == 0
            assert offsets[a] + la.size <= size
            for b, lb in values.items():
                if a < b and la.overlaps(lb) and la.size and lb.size:
                    assert offsets[a] + la.size <= offsets[b] or offsets[b] + lb.size <= offsets[a]
