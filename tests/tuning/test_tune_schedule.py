"""``lw.tune_schedule`` for real: a small product, on this machine, and what is refused before anything is measured."""

import numpy as np
import pytest
from te_computes import CASES

import loopwright as lw
from loopwright import te
from loopwright.tuning.compute_space import BY_RULES, DEFAULT

CASE = CASES["matmul"](13, 40, 24)


def few(space, rng):
    """A searcher that proposes the two ways by their defaults, and one tile more."""

    class Few:
        proposed = False

        def propose(self, count):
            wanted = [] if self.proposed else [(BY_RULES, {}), (DEFAULT, {}), (BY_RULES, {"C.rows": 2})]
            self.proposed = True
            return [space.settle(name, values).candidate for name, values in wanted[:count]]

        def observe(self, results):
            assert all(result.gain > 0 for result in results)

    return Few()


def test_the_schedule_that_is_found_computes_the_same():
    told = []
    more = {"searcher": few, "threads": 1, "progress": told.append}
    tuned = lw.tune_schedule(CASE.outputs, minutes=60, candidates=2, **more)
    assert {outcome.kind for outcome in tuned.tried.values()} <= {"measured", "same code"}
    assert len(tuned.tried) == 3
    assert tuned.gain >= 1
    assert "of 3 candidates" in str(tuned)
    assert (told[0].phase, told[0].tasks[0].tried) == ("measuring schedules", 3)
    assert told[0].tasks[0].name == "C"
    assert told[0].seconds_left > 0
    assert len(told) == 1 + any(outcome.ratio > 1 for outcome in tuned.tried.values())
    assert [each.gain for each in tuned.candidates] == [1.0, *(outcome.ratio for outcome in tuned.tried.values())]
    assert all(each.predicted > 0 and each.outcome in {"measured", "same code"} for each in tuned.candidates)
    assert str(tuned.candidates[-1].schedule) != str(tuned.candidates[0].schedule)
    arrays, found = CASE.arrays(), CASE.results()
    lw.build(tuned.schedule, [*CASE.inputs, *CASE.outputs])(*arrays, *found)
    np.testing.assert_allclose(found[0], CASE.reference(*arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"measurements": 0}, "measurements should be a whole number of at least 1, found 0"),
        ({"minutes": -1}, "minutes should be a positive number, found -1"),
        ({"searcher": "luck"}, "searcher should be 'evolution', 'random', 'grid', or a function"),
        ({"rules": [3]}, "rules should be a sequence of lw.ScheduleRule"),
        ({"workers": 3}, "workers should be an object with the submit of concurrent.futures"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_what_does_not_fit_is_refused(arguments, problem):
    with pytest.raises(lw.RuntimeArgumentError, match=problem):
        lw.tune_schedule(CASE.outputs, **{"candidates": 1, **arguments})


def test_open_dimensions_cannot_be_measured():
    A = te.placeholder((te.var("n"), 8), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="B")
    with pytest.raises(lw.RuntimeArgumentError, match="A has open dimensions, which cannot be measured"):
        lw.tune_schedule(B, candidates=1)
