"""Random changes to cases of onnxruntime's own operators, the same at each run: a few of what the campaign draws."""

import random

import check_contrib
import contrib_plans
import pytest
from worker import Worker

PLANS = 8


@pytest.fixture(scope="module")
def checker(private_cache):
    made = Worker(contrib_plans.SCRIPT)
    yield made
    made.close()


def test_random_changes_to_cases(checker):
    for number in range(0, len(check_contrib.CASES), len(check_contrib.CASES) // PLANS):
        plan = contrib_plans.draw(random.Random(f"1 {number}"), number)
        error = checker.ask(plan)["error"]
        assert error is None, f"{plan}\n{error}"


def test_all_changes_are_drawn():
    assert set(contrib_plans.CHANGES) == set(check_contrib.CHANGES)


def test_a_wrong_value_is_found(monkeypatch):
    plan = {"case": 0, "changes": [], "opened": False}
    assert check_contrib.check(plan)["error"] is None
    right = check_contrib.run
    monkeypatch.setattr(check_contrib, "run", lambda *given: [y + 1 for y in right(*given)])
    assert check_contrib.check(plan)["error"].startswith("AssertionError")
