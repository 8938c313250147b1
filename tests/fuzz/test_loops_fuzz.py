"""Random loops of numbers and strings that change their length give what numpy makes of them, by iterations: a few of
what ``call_campaign.py loops`` draws."""

import random

import check_loop
import loop_plans
import numpy as np
import pytest


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 150))])
def test_random_loops(seed):
    check_loop.check_loop(check_loop.random_loop(seed))


def test_a_loop_that_gives_something_else_is_an_error():
    plan = loop_plans.draw(random.Random(3), 0)
    assert check_loop.check(plan)["error"] is None
    loop = check_loop.random_loop(plan["seed"])
    first = loop.expected[-1][0]
    loop.expected[-1][0] = np.append(first, np.zeros(1, first.dtype))
    with pytest.raises(AssertionError):
        check_loop.check_loop(loop)
