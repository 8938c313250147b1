"""Tuning's searchers on schedules that nobody wrote: what they propose is legal, and computes the same."""

import random

import numpy as np
import pytest
from te_computes import CASES

import loopwright as lw
from loopwright.schedules.auto.candidates import Scheduling
from loopwright.tuning.candidate import TuningCandidate
from loopwright.tuning.compute_space import BY_RULES, DEFAULT, ComputeSpace
from loopwright.tuning.searcher import TrialResult, searcher_named
from loopwright.tuning.space import neighbours

TARGET = lw.resolve_target("llvm -mcpu=x86-64-v3 -threads=4")
CASE = CASES["matmul"](7, 19, 11)


def space_of(rules=None):
    return ComputeSpace(Scheduling(CASE.outputs, TARGET, lw.schedule_rules() if rules is None else rules))


@pytest.mark.parametrize("name", ["evolution", "random", "grid"])
def test_what_searchers_propose_computes_the_same(name):
    space = space_of()
    searcher = searcher_named(name)(space, random.Random(1))
    proposed = list(searcher.propose(4))
    searcher.observe([TrialResult(candidate, 1.0) for candidate in proposed])
    assert len({candidate.key for candidate in proposed}) == len(proposed) == 4
    arrays, found = CASE.arrays(), CASE.results()
    for candidate in proposed[-2:]:
        func = lw.lower(space.schedule(candidate), [*CASE.inputs, *CASE.outputs], target=TARGET)
        lw.interpret(func)(*arrays, *found)
        np.testing.assert_allclose(found[0], CASE.reference(*arrays), rtol=1e-4, atol=1e-4)


def test_the_default_schedule_is_a_candidate_without_decisions():
    settled = space_of().settle(DEFAULT, {"C.rows": 3})
    assert settled.decisions == ()
    assert str(space_of().schedule(settled.candidate)) == str(lw.default_schedule(CASE.outputs, TARGET))


def test_neighbours_differ_in_one_value_and_values_that_are_none_become_legal():
    space = space_of()
    at = space.settle(BY_RULES, {"C.rows": 100})
    assert at.candidate.decided["C.rows"] == max(next(d.legal for d in at.decisions if d.name == "C.rows"))
    around = neighbours(space, at)
    assert any(each.implementation == DEFAULT for each in around)
    assert len(around) > 4


def test_what_rules_refuse_is_no_candidate():
    def refused(at):
        at.stage.unroll("no such loop")

    space = space_of([lw.ScheduleRule("refused", "loops", lambda at: True, refused)])
    assert space.settle(BY_RULES, {}) is None
    with pytest.raises(lw.ScheduleError, match="no schedule has the decisions"):
        space.schedule(TuningCandidate(BY_RULES))
