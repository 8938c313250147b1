"""A search that ranks: what is measured first, and that nothing is lost of what another searcher does."""

import random

import numpy as np
from te_computes import CASES

import loopwright as lw
from loopwright.schedules.auto.candidates import Scheduling
from loopwright.tuning.compute_space import ComputeSpace
from loopwright.tuning.evolutionary_search import EvolutionarySearch
from loopwright.tuning.ranked_search import PredictsCost, RankedSearch
from loopwright.tuning.searcher import Searcher, TrialResult, searcher_named


def space_of(name="matmul", *sizes):
    case = CASES[name](*(sizes or (24, 48, 32)))
    return ComputeSpace(Scheduling(case.outputs, lw.resolve_target("x86-64-v3").with_threads(1), lw.schedule_rules()))


def searched(space, searcher, gain, rounds=4, count=4):
    """All that is proposed, with the gain that each is told."""
    found = []
    for _ in range(rounds):
        proposed = list(searcher.propose(count))
        assert len(proposed) <= count
        results = [TrialResult(candidate, gain(candidate)) for candidate in proposed]
        found += results
        searcher.observe(results)
    return found


def few_rows(candidate):
    """The fewer rows a tile has, the faster it is: what the analytic model does not expect."""
    return 4.0 / (1 + candidate.decided.get("C.rows", 14))


def test_no_candidate_and_no_loop_nest_is_proposed_twice():
    space = space_of()
    rng = random.Random(1)
    found = searched(space, RankedSearch(space, EvolutionarySearch(space, rng), rng), few_rows)
    assert len({result.candidate.key for result in found}) == len(found)
    assert len({space.predicted(result.candidate).nest for result in found}) == len(found)


class InTurn:
    """Proposes lists of candidates, one after the other."""

    def __init__(self, *lists):
        self.left = list(lists)

    def propose(self, count):
        return self.left.pop(0) if self.left else []

    def observe(self, results):
        self.results = results


def tiles(space):
    """Candidates of different loop nests."""
    wanted = [{"C.rows": rows, "C.vectors": vectors} for vectors in (1, 2, 3) for rows in (1, 2, 3, 4, 6, 8, 10, 12)]
    found = [space.settle("rules", each).candidate for each in wanted]
    return list({space.predicted(candidate).nest: candidate for candidate in found}.values())


def test_what_was_measured_decides_what_is_measured_next():
    space = space_of()
    found = tiles(space)
    searcher = RankedSearch(space, InTurn(found[::2], found[1::2]), random.Random(2))
    searched(space, searcher, few_rows, rounds=1, count=len(found[::2]))
    chosen = searcher.propose(4)
    assert np.mean([few_rows(c) for c in chosen]) > np.mean([few_rows(c) for c in found[1::2]])


def test_it_ends_when_the_other_searcher_does_and_all_that_is_left_is_slower():
    space = space_of()
    searcher = RankedSearch(space, InTurn(tiles(space)[:5]), random.Random(0))
    assert len(searcher.propose(4)) == 4
    searcher.observe([])
    assert len(searcher.propose(4)) == 1
    assert searcher.propose(4) == []


def test_a_seed_repeats_it():
    def run():
        space, rng = space_of(), random.Random(3)
        return searched(space, RankedSearch(space, EvolutionarySearch(space, rng), rng), few_rows, rounds=2)

    assert run() == run()


def test_spaces_that_predict_are_ranked_by_default():
    space = space_of()
    assert isinstance(space, PredictsCost)
    made = searcher_named("evolution")(space, random.Random(0))
    assert isinstance(made, Searcher)
    assert isinstance(made._first, RankedSearch)
