"""How `make test-hosts` shares tests among its rounds: brief ones run in each, the longest in one of them."""

import math

from host_recorder import brief_seconds
from hypothesis import given
from hypothesis import strategies as st


def round_seconds(seconds, rounds, brief):
    """What a round takes on average."""
    return sum(each if each <= brief else each / rounds for each in seconds)


@given(st.lists(st.floats(0, 100), min_size=1), st.integers(1, 9), st.floats(0, 1000))
def test_rounds_keep_to_their_budget_as_far_as_turns_can(seconds, rounds, budget):
    brief = brief_seconds(seconds, rounds, budget)
    least = sum(seconds) / rounds
    assert round_seconds(seconds, rounds, brief) <= max(budget, least) * 1.001 + 1e-9


def test_every_test_runs_in_every_round_where_the_budget_allows():
    assert brief_seconds([1.0, 2.0, 3.0], 8, 6.1) == math.inf


def test_a_longer_test_never_runs_where_a_shorter_one_has_to_wait_its_turn():
    brief = brief_seconds([1.0, 1.0, 4.0, 8.0], 4, 8.0)
    assert 1.0 <= brief < 8.0
