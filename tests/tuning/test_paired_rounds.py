"""Rounds, ratios and bounds, by clocks that tests make."""

import itertools
import random
from math import comb

import pytest

from loopwright.tuning.bounds import is_clear, lower_bound
from loopwright.tuning.bursts import BURSTS, fastest_burst
from loopwright.tuning.paired_rounds import PairedRounds, RoundLimits, take_turns


def steady(seconds):
    return lambda: seconds


def noisy(seconds, seed, spread=0.5):
    rng = random.Random(seed)
    return lambda: seconds * (1 + spread * rng.random())


def test_steady_times_need_the_fewest_rounds():
    turns = take_turns(steady(2.0), steady(1.0), RoundLimits(), random.Random(0))
    assert turns.ratios == (2.0,) * 5


def test_noise_needs_more_rounds():
    turns = take_turns(noisy(1.0, 1), noisy(1.0, 2), RoundLimits(), random.Random(0))
    assert len(turns.ratios) == RoundLimits().most


def test_what_is_clearly_slower_is_not_measured_for_longer():
    turns = take_turns(noisy(1.0, 1), noisy(4.0, 2), RoundLimits(), random.Random(0))
    assert len(turns.ratios) == RoundLimits().least


def test_both_run_once_a_round_in_an_order_that_changes():
    order = []
    take_turns(
        lambda: order.append("r") or random.random() + 0.1,
        lambda: order.append("c") or random.random() + 0.1,
        RoundLimits(12, 12),
        random.Random(0),
    )
    rounds = (
        ["".join(pair) for pair in itertools.batched(order, 2)]
        if hasattr(itertools, "batched")
        else ["".join(order[k : k + 2]) for k in range(0, len(order), 2)]
    )
    assert set(rounds) == {"rc", "cr"}
    assert len(rounds) == 12


def test_a_drift_of_the_machine_is_in_both():
    clock = itertools.count(1)
    turns = take_turns(lambda: 2.0 * next(clock), lambda: 1.0 * next(clock), RoundLimits(15, 15), random.Random(0))
    assert 1.5 < sorted(turns.ratios)[7] < 2.7


def test_what_disturbs_most_rounds_of_one_of_the_two_is_no_gain():
    assert PairedRounds((1.0, 9.0, 9.0), (1.0, 1.0, 1.0)).ratio == 1.0
    assert PairedRounds((2.0, 2.0, 2.0), (1.0, 1.0, 4.0)).ratio == 2.0


def test_no_ratio_of_no_time():
    assert PairedRounds((1.0, 1.0), (1.0, 0.0)).ratios == ()
    assert take_turns(steady(1.0), steady(0.0), RoundLimits(), random.Random(0)).ratios == ()


def exceeded(position, count):
    """How likely it is that the value at a position, of so many in order, is above the median: all cases counted."""
    return sum(comb(count, below) for below in range(position + 1)) / 2**count


@pytest.mark.parametrize("count", [1, 5, 6, 12, 36])
@pytest.mark.parametrize("doubt", [0.05, 0.001])
def test_the_bound_is_the_largest_value_that_is_sure_enough(count, doubt):
    ratios = [1 + k / 100 for k in range(count)]
    random.Random(0).shuffle(ratios)
    bound = lower_bound(ratios, doubt)
    sure = [value for k, value in enumerate(sorted(ratios)) if exceeded(k, count) <= doubt]
    assert bound == (sure[-1] if sure else 0.0)


def test_few_rounds_prove_nothing():
    assert lower_bound([2.0] * 4, 0.05) == 0.0
    assert lower_bound([2.0] * 5, 0.05) == 2.0


def test_no_gain_is_seldom_taken_for_one():
    rng = random.Random(7)
    wrong = sum(lower_bound([rng.lognormvariate(0, 0.1) for _ in range(20)], 0.05) > 1 for _ in range(1000))
    assert wrong <= 75  # at most 50 are expected; more than 75 are of a probability of 0.0004


def test_rounds_are_clear_on_either_side_of_one():
    assert is_clear([1.1] * 15, 0.025)
    assert is_clear([0.9] * 15, 0.025)
    assert not is_clear([0.9, 1.1] * 15, 0.025)
    assert not is_clear([1.1] * 4, 0.025)


def test_the_fastest_burst_of_a_sample_counts():
    disturbed = iter([9.0, 1.0, 5.0, 1.5, 9.0, 9.0, 9.0, 9.0])
    assert fastest_burst(lambda calls: calls * next(disturbed), 8 * 25) == 1.0


def test_a_sample_of_few_calls_has_fewer_bursts():
    asked = []
    assert fastest_burst(lambda calls: asked.append(calls) or 2.0, 3) == 2.0
    assert asked == [1, 1, 1]
    fastest_burst(lambda calls: asked.append(calls) or 2.0, 20)
    assert asked[3:] == [2] * BURSTS
