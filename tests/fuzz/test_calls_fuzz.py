"""Random calls of operators and random graphs against numpy, the same at each run: a few of what ``call_campaign.py``
draws."""

import os
import random
import subprocess
import sys
from pathlib import Path

import check_graph
import check_operator
import graph_plans
import numpy as np
import operator_plans
import pytest
from draw import assert_close
from worker import Worker

from loopwright.compiler.selection import select as selection
from loopwright.ops.definition.registry import all_ops
from loopwright.ops.definition.strategy import strategy_of

GRAPHS, OPERATORS = 32, len(check_operator.DRAWS)
PARTS = 8


@pytest.fixture(scope="module", params=["check_operator.py", "check_graph.py"])
def checker(request, private_cache):
    made = Worker(request.param)
    yield made, graph_plans if "graph" in request.param else operator_plans
    made.close()


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls_and_graphs(checker, part):
    worker, plans = checker
    for number in range(part, GRAPHS if plans is graph_plans else OPERATORS, PARTS):
        plan = plans.draw(random.Random(f"1 {number}"), number)
        error = worker.ask(plan)["error"]
        assert error is None, f"{plan}\n{error}"


def test_the_long_run_finds_what_tests_share():
    command = [sys.executable, Path(__file__).with_name("call_campaign.py"), "operators", "--count=1", "--jobs=1"]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run([*command, "--seed=1"], check=False, capture_output=True, text=True, env=own)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_operator_is_drawn():
    """One that is new needs a function in ``operators_….py`` that draws its calls."""
    assert set(check_operator.DRAWS) == {op.name for op in all_ops()}


def plan_of(op, **more):
    plan = {"op": op, "seed": 3, "size": 0, "outliers": False, "strict": False, "relu": False, "layouts": "keep"}
    plan |= {"symbolic": False}
    return plan | {"how": "run", "target": 0} | more


def test_a_wrong_value_is_found(monkeypatch):
    monkeypatch.setitem(check_operator.DRAWS, "exp", check_operator.DRAWS["tanh"])
    assert check_operator.check(plan_of("exp"))["error"] is None
    wrong = check_operator.operators_simple.unary("tanh", np.sin)
    monkeypatch.setitem(check_operator.DRAWS, "exp", wrong)
    assert check_operator.check(plan_of("exp"))["error"].startswith("AssertionError")


def test_a_refused_schedule_is_found(monkeypatch, fallbacks):
    def refuse(attrs, anchor, outputs, target):
        raise check_operator.lw.ScheduleError("not this one")

    def with_more(*arguments):
        made = strategy_of(*arguments)
        (first, *_) = [implementation for _, implementation in made.candidates()]
        made.add_implementation(first.compute, refuse, "refusing", 99)
        return made

    monkeypatch.setattr(selection, "strategy_of", with_more)
    assert "refusing is refused: not this one" in check_operator.check(plan_of("trunc", how="lower"))["error"]
    fallbacks.clear()


@pytest.mark.parametrize(
    ("found", "wanted", "magnitude", "same"),
    [
        (1.0, 1.0001, None, False),
        (1e10, 1e10 + 1e5, None, True),
        (1.0, 1.0001, 100.0, True),
        (np.nan, 1.0, None, False),
        (1.0, np.nan, None, False),
        (np.inf, np.nan, None, False),
        (np.inf, -np.inf, None, False),
        (np.inf, 1e39, None, True),
        (3.4e38, 1e39, None, False),
        (np.nan, 1.0, 2e38, True),
        (1e-40, 0.0, 0.0, True),
        (np.nan, np.nan, None, True),
    ],
)
def test_results_are_compared_by_class_and_by_the_size_of_summands(found, wanted, magnitude, same):
    arrays = np.float32([found]), np.float64([wanted])
    if same:
        assert_close(*arrays, magnitude)
    else:
        with pytest.raises(AssertionError, match="the result is"):
            assert_close(*arrays, magnitude)


@pytest.mark.parametrize(
    ("found", "references", "same"),
    [
        (1.0, (1.0, 1.0001), True),
        (1.0, (1.1, 1.10001), False),
        (np.nan, (1.0, 1.1), False),
        (np.nan, (1.0, np.inf), True),
        (np.inf, (np.inf, np.inf), True),
        (np.inf, (3.4e38, 3.4e38), True),
        (np.inf, (1e30, 1e30), False),
        (1.0, (np.nan, np.nan), False),
    ],
)
def test_graphs_are_as_exact_as_rounding_lets_them_be(found, references, same):
    given = np.float32([found]), [np.float64([value]) for value in references]
    if same:
        check_graph.assert_same(*given, "it")
    else:
        with pytest.raises(AssertionError, match="it is"):
            check_graph.assert_same(*given, "it")


def test_plans_are_made_smaller():
    for plans in (graph_plans, operator_plans):
        plan = plans.draw(random.Random(5), 5)
        smaller = list(plans.simpler(plan))
        assert smaller
        assert plan not in smaller
