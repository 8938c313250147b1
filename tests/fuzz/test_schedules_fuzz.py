"""Random computes × random primitives, legal or not: what is accepted computes the same, what is refused says so.

A few plans that hypothesis draws; ``campaign.py`` is the long run.
"""

import json
import random

import random_programs
import random_schedules
from campaign import Findings, random_plan
from check_plan import assert_same, check, unscheduled
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import FORMS, KINDS, SIZES
from random_schedules import NUMBERS, PRIMITIVES, TARGETS
from shrink import shrink

import loopwright as lw
from loopwright.lowering import primitives

small = st.integers(0, 5)
plans = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(KINDS),
        "sizes": st.lists(st.sampled_from(SIZES), min_size=2, max_size=2),
        "symbolic": st.lists(st.booleans(), min_size=2, max_size=2),
        "stages": st.lists(
            st.tuples(st.sampled_from(FORMS), st.sampled_from([0, 0, 0, 1, 2, 3]), small, st.integers(0, 39)),
            min_size=1,
            max_size=4,
        ),
        "extra": small,
        "steps": st.lists(
            st.tuples(st.sampled_from(PRIMITIVES), small, small, st.integers(0, 7), st.sampled_from(NUMBERS)),
            min_size=1,
            max_size=9,
        ),
        "seed": st.integers(0, 99),
        "outliers": st.booleans(),
        "target": st.integers(0, len(TARGETS) - 1),
    }
)


@given(plan=plans, native=st.booleans())
def test_schedules(worker, plan, native):
    outcome = worker(plan, native)
    assert outcome["error"] is None, outcome["error"]


@given(plan=plans)
@settings(max_examples=max(settings().max_examples // 2, 1))
def test_the_default_schedule(plan):
    program, target = random_programs.make_program(plan), TARGETS[plan["target"]]
    s = lw.default_schedule(program.outputs, target=target)
    func = lw.lower(s, program.args, target=target)
    arrays = program.arrays(plan["seed"])
    lw.interpret(func)(*arrays)
    assert_same(program, arrays, unscheduled(program, plan["seed"]), f"{s}\n{func}")


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(plan=plans, sizes=st.lists(st.integers(0, 20), min_size=2, max_size=2))
def test_traces_on_other_shapes(plan, sizes):
    s, _ = random_schedules.make_schedule(random_programs.make_program(plan), plan)
    other_plan = plan | {"sizes": sizes}
    program = random_programs.make_program(other_plan)
    other = lw.create_schedule(program.outputs)
    refusal = None
    try:
        other.replay(s.trace)
    except lw.TraceError as error:
        refusal = error
    if refusal is not None:
        assert str(s.trace[refusal.step - 1]) in str(refusal)
        assert len(other.trace) == 0
        return
    assert other.trace.to_json() == s.trace.to_json()
    func = lw.lower(other, program.args, target="x86-64-v3")
    arrays = program.arrays(plan["seed"])
    lw.interpret(func)(*arrays)
    assert_same(program, arrays, unscheduled(program, plan["seed"]), f"{other}\n{func}")


def some_plan(*wanted):
    return json.loads(json.dumps(random_plan(random.Random(0), wanted)))


def test_a_wrong_result_is_found(monkeypatch):
    monkeypatch.setattr(lw, "lower", lambda s, args, **_: lw.ir.stmt.PrimFunc("f", tuple(args), lw.ir.stmt.Seq(())))
    assert check(some_plan("split/guard", "reorder"), native=False)["error"] is not None


def test_an_error_that_is_no_refusal_is_found(monkeypatch):
    def crash(s, step):
        raise ZeroDivisionError

    monkeypatch.setattr(random_schedules, "apply_step", crash)
    assert check(some_plan("split/guard", "reorder"), native=False)["error"].startswith("ZeroDivisionError")


def test_a_process_that_dies_is_an_error_and_the_next_one_goes_on(worker):
    dead = worker({"stages": 0}, native=False)
    worker._child.kill()
    assert "ended with code -9" in worker(some_plan("split/guard", "fuse"), native=False)["error"]
    assert dead["error"].startswith("KeyError")
    assert worker(some_plan("split/guard", "fuse"), native=False)["error"] is None


def test_failing_plans_are_made_small():
    plan = some_plan("split/guard", "unroll")
    plan["steps"] = [["fuse", 1, 1, 1, 1]] * 3 + [["split/guard", 2, 2, 2, 2]] + [["fuse", 1, 1, 1, 1]] * 4
    small = shrink(plan, lambda p: "wrong" if any(step[0] == "split/guard" for step in p["steps"]) else None)
    assert small["steps"] == [["split/guard", 0, 0, 0, 0]]
    assert len(small["stages"]) == 1


def test_findings_count_pairs_of_primitives():
    findings = Findings()
    for accepted in (["split", "split", "fuse"], ["fuse"], []):
        findings.add({}, False, {"accepted": accepted, "refused": 2, "error": None})
    assert (findings.plans, findings.accepted, findings.steps, findings.refused) == (3, 2, 10, 6)
    assert findings.pairs == {("fuse", "split"): 1, ("split", "split"): 1}
    assert ("fuse", "split") not in findings.rarest(5)
    assert "10 steps, 6 of them refused: 60.0%" in findings.report()


def test_all_primitives_are_drawn():
    """A module of primitives that nobody imports would be left out."""
    every = {getattr(primitives, name).primitive for name in primitives.__all__ if name[0].isupper()}
    assert len(every) > 20
    assert {name.split("/")[0] for name in PRIMITIVES} == every
