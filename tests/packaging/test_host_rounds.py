"""The longest tests take turns in the rounds of ``run_described.py``, so that these end in time."""

import math
from collections import Counter

import pytest
from host_recorder import brief_seconds, turn_of
from hypothesis import given
from hypothesis import strategies as st

ROUNDS = st.lists(st.floats(1, 9), min_size=1, max_size=9)


def all_seconds(seconds, rounds, brief):
    """What all rounds take, where the longer tests are spread as is fair."""
    in_one = len(rounds) / sum(1 / slowness for slowness in rounds)
    return sum(each * (sum(rounds) if each <= brief else in_one) for each in seconds)


@given(st.lists(st.floats(0, 100), min_size=1), ROUNDS, st.floats(0, 1000))
def test_rounds_keep_to_their_budget_as_far_as_turns_can(seconds, rounds, budget):
    least = all_seconds(seconds, rounds, -1)
    found = all_seconds(seconds, rounds, brief_seconds(seconds, rounds, budget))
    assert found <= max(budget, least) * 1.001 + 1e-9


def test_every_test_runs_in_every_round_where_the_budget_allows():
    assert brief_seconds([1.0, 2.0, 3.0], [1.0] * 8, 48.1) == math.inf


def test_a_longer_test_never_runs_where_a_shorter_one_has_to_wait_its_turn():
    brief = brief_seconds([1.0, 1.0, 4.0, 8.0], [1.0] * 4, 32.0)
    assert 1.0 <= brief < 8.0


@pytest.mark.parametrize("rounds", [[1.0], [1.0] * 8, [1.0] * 8 + [5.0]])
def test_each_test_has_one_turn_and_slow_rounds_have_fewer(rounds):
    turns = Counter(turn_of(f"tests/test_file.py::test_{k}", rounds) for k in range(9000))
    shares = [1 / slowness for slowness in rounds]
    for turn, share in enumerate(shares):
        assert turns[turn] / 9000 == pytest.approx(share / sum(shares), rel=0.25)
