"""Searchers on a space of made-up decisions, whose best candidate is known."""

import random

import pytest
from tuning_spaces import TILED, MadeUpSpace, gain_of, searched

import loopwright as lw
from loopwright.lowering.decisions import beside
from loopwright.tuning.candidate import TuningCandidate
from loopwright.tuning.descent import ThenDescent
from loopwright.tuning.evolutionary_search import EvolutionarySearch
from loopwright.tuning.grid_search import GridSearch
from loopwright.tuning.random_search import RandomSearch
from loopwright.tuning.searcher import Searcher, searcher_named
from loopwright.tuning.space import drawn, neighbours

SPACE = MadeUpSpace()
ALL = list(SPACE.all())
BEST = max(ALL, key=gain_of)
NAMES = ("evolution", "random", "grid")


def of_seed(name, seed=0, space=SPACE):
    return searcher_named(name)(space, random.Random(seed))


def keys(candidates):
    return [candidate.key for candidate in candidates]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_proposed_is_legal_and_new(name):
    found = keys(searched(of_seed(name)))
    assert len(found) == len(set(found)) > 5
    assert set(found) <= set(keys(ALL))


def test_grid_search_tries_each_candidate_once():
    assert sorted(keys(searched(of_seed("grid"))), key=str) == sorted(keys(ALL), key=str)


def test_random_search_ends_in_a_small_space_when_nothing_new_turns_up():
    found = keys(searched(of_seed("random")))
    assert len(found) > len(ALL) / 2


@pytest.mark.parametrize("seed", range(8))
def test_evolution_finds_the_best_without_trying_all(seed):
    found = searched(of_seed("evolution", seed))
    assert BEST.key in keys(found)
    assert max(found, key=gain_of) == BEST


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_a_search(name):
    assert keys(searched(of_seed(name, 3))) == keys(searched(of_seed(name, 3)))


def test_other_seeds_are_other_searches():
    assert keys(searched(of_seed("random", 1))) != keys(searched(of_seed("random", 2)))


def test_evolution_begins_with_defaults_and_what_records_say():
    start = TuningCandidate(TILED, (("rows", 100), ("vectors", 2), ("pack", True)))
    first = EvolutionarySearch(MadeUpSpace([start]), random.Random(0)).propose(3)
    assert list(map(str, first)) == [
        "matmul.paneled(rows=4, vectors=1, pack=False)",
        "matmul.direct()",
        "matmul.paneled(rows=12, vectors=2, pack=True)",
    ]


def test_evolution_ends_when_nothing_is_gained():
    found = searched(EvolutionarySearch(SPACE, random.Random(0)), gain=lambda _: 1.0)
    assert len(found) < len(ALL)


def test_evolution_goes_on_when_all_fail():
    assert len(searched(EvolutionarySearch(SPACE, random.Random(0)), gain=lambda _: 0.0)) > 20


class Fixed:
    """Proposes some candidates, and no more."""

    def __init__(self, *candidates):
        self.left = list(candidates)

    def propose(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def observe(self, results):
        pass


def test_the_descent_leads_to_where_no_neighbour_is_better():
    start = SPACE.settle(TILED, {"rows": 2, "vectors": 1}).candidate
    found = searched(ThenDescent(SPACE, Fixed(start)))
    best = max(found, key=gain_of)
    settled = SPACE.settle(best.implementation, best.decided)
    around = keys(neighbours(SPACE, settled))
    assert set(around) <= set(keys(found))
    assert gain_of(best) == max(gain_of(candidate) for candidate in [best, *neighbours(SPACE, settled)])
    assert gain_of(best) > gain_of(start)


def test_there_is_no_descent_from_failures():
    start = SPACE.settle(TILED, {}).candidate
    assert searched(ThenDescent(SPACE, Fixed(start)), gain=lambda _: 0.0) == [start]


def test_neighbours_differ_in_one_step():
    settled = SPACE.settle(TILED, {"rows": 4, "vectors": 2})
    assert sorted(map(str, neighbours(SPACE, settled))) == [
        "matmul.direct()",
        "matmul.paneled(rows=3, vectors=2, pack=False)",
        "matmul.paneled(rows=4, vectors=1, pack=False)",
        "matmul.paneled(rows=4, vectors=2, pack=True)",
        "matmul.paneled(rows=4, vectors=3, pack=False)",
        "matmul.paneled(rows=5, vectors=2, pack=False)",
    ]


def test_what_is_beside_a_value_is_in_order_of_numbers():
    assert beside(lw.Decision("d", (8, 1, 4), 4, 4)) == [1, 8]
    assert beside(lw.Decision("d", (8, 1, 4), 4, 8)) == [4]
    assert beside(lw.Decision("d", ("a", "b", "c"), "a", "b")) == ["a", "c"]
    assert beside(lw.Decision("d", (False, True), False, True)) == [False]


def test_draws_reach_all_values():
    rng = random.Random(0)
    found = [drawn(SPACE, TILED, rng) for _ in range(600)]
    reached = {settled.candidate.decided["vectors"] for settled in found if settled is not None}
    assert len(reached) > 12


def test_searchers_of_ours_are_searchers():
    assert all(isinstance(of_seed(name), Searcher) for name in NAMES)
    assert isinstance(GridSearch(SPACE, random.Random(0)), Searcher)
    assert searcher_named(RandomSearch) is RandomSearch
