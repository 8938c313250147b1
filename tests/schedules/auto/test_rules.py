"""Rules of users, and how the sketch asks rules."""

import random

import numpy as np
import pytest
from te_computes import CASES

import loopwright as lw
from loopwright import te
from loopwright.lowering.decisions import beside
from loopwright.schedules.auto.candidates import Candidates, Scheduling
from loopwright.schedules.auto.sketch import make_sketch

TARGET = lw.resolve_target("llvm -mcpu=x86-64-v3 -threads=4")


def doubled():
    A = te.placeholder((64, 64), name="A")
    return te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")


def by_eights(at):
    lanes = at.decide("width", [8, 16], 8)
    _, lane = at.stage.split(at.stage.loops[-1], factor=lanes)
    at.stage.vectorize(lane)


def test_a_rule_of_ones_own_comes_first_and_decides_by_the_name_of_the_stage():
    mine = lw.ScheduleRule("mine", "loops", lambda at: at.op.reduction is None, by_eights)
    schedule = make_sketch(doubled(), TARGET, [mine, *lw.schedule_rules()])
    assert [(d.name, d.value) for d in schedule.decisions] == [("B.loops", "mine"), ("B.width", 8)]
    assert make_sketch(doubled(), TARGET, [mine], decided={"B.width": 16}).decisions[0].value == 16


def test_a_refused_step_drops_the_candidate_alone():
    refused = lw.ScheduleRule("refused", "loops", lambda at: True, lambda at: at.stage.unroll("no such loop"))
    assert Candidates(Scheduling([doubled()], TARGET, [refused])).sketched({}) is None
    default = lw.default_schedule(doubled(), TARGET)
    assert str(lw.autoschedule(doubled(), TARGET, candidates=3, rules=[refused])) == str(default)


def test_without_rules_there_is_the_default_schedule():
    default = Candidates(Scheduling([doubled()], TARGET, [])).default()
    assert str(lw.autoschedule(doubled(), TARGET, candidates=2, rules=[])) == str(default.schedule)


def test_candidates_of_one_nest_are_one():
    made = Candidates(Scheduling([doubled()], TARGET, lw.schedule_rules()))
    assert made.sketched({"B.loops": "general"}).nest == made.default().nest


@pytest.mark.parametrize("name", ["unsharp", "softmax", "convolution_1d", "dot"])
def test_whatever_is_decided_is_legal_or_refused(name):
    """Decisions drawn at random lower to nests that the verifier accepts."""
    shapes = {"unsharp": (20, 35), "softmax": (7, 40), "convolution_1d": (30, 3, 4, 5), "dot": (20_001,)}
    rng = random.Random(3)
    made = Candidates(Scheduling(CASES[name](*shapes[name]).outputs, TARGET, lw.schedule_rules()))
    at = made.sketched({})
    assert at is not None
    for _ in range(3):
        drawn = {d.name: rng.choice(d.legal) for d in at.decisions}
        found = made.sketched(drawn)
        at = found or at
        for decision in at.decisions:
            assert set(beside(decision)) < set(decision.legal)


def test_what_channels_share_may_be_computed_once_for_a_strip_of_all_of_them():
    A = te.placeholder((3, 40, 48), name="A")
    grey = te.compute((40, 48), lambda y, x: te.exp(A[0, y, x] + A[1, y, x] + A[2, y, x]), name="grey")
    Y = te.compute((3, 40, 48), lambda c, y, x: A[c, y, x] * grey[y, x], name="Y")
    made = Candidates(Scheduling([Y], TARGET, lw.schedule_rules()))
    shared = {"grey.form": "keep", "Y.strip": 8, "Y.order": "strips first", "grey.at": "Y.y_outer"}
    found = made.sketched(shared)
    chosen = {decision.name: decision.value for decision in found.decisions}
    assert shared.items() <= chosen.items()
    nest = str(found.schedule).splitlines()
    assert nest[0] == "for y_outer in parallel(5):"
    assert any(line.strip() == "for c in range(3):" for line in nest)
    a, result = np.random.default_rng(0).standard_normal(A.shape).astype(np.float32), np.empty(A.shape, np.float32)
    lw.interpret(lw.lower(found.schedule, [A, Y], target=TARGET))(a, result)
    np.testing.assert_allclose(result, a * np.exp(a.sum(axis=0)), rtol=1e-4, atol=1e-5)


def test_channels_that_share_nothing_stay_outside_of_strips():
    A = te.placeholder((3, 40, 48), name="A")
    B = te.compute((3, 40, 48), lambda c, y, x: te.exp(A[c, y, x]), name="B")
    Y = te.compute((3, 40, 46), lambda c, y, x: B[c, y, x] + B[c, y, x + 2], name="Y")
    found = Candidates(Scheduling([Y], TARGET, lw.schedule_rules())).sketched({"B.form": "keep"})
    assert "Y.strip" in {decision.name for decision in found.decisions}
    assert "Y.order" not in {decision.name for decision in found.decisions}


def forms_of(output):
    decisions = make_sketch([output], TARGET, lw.schedule_rules()).decisions
    return {d.name.removesuffix(".form"): d.value for d in decisions if d.name.endswith(".form")}


def test_what_windows_read_is_kept_and_products_on_the_way_are_not():
    """A corner detector: each gradient takes six reads, and is read nine times through a product that takes two."""
    A = te.placeholder((70, 70), name="A")
    G = te.compute((68, 68), lambda i, j: sum(A[i + a, j + 2 * b] * (a + b + 1) for a in range(3) for b in range(2)))
    P = te.compute((68, 68), lambda i, j: G[i, j] * G[i, j], name="P")
    S = te.compute((66, 66), lambda i, j: sum(P[i + a, j + b] for a in range(3) for b in range(3)), name="S")
    Y = te.compute((66, 66), lambda i, j: S[i, j] - 1.0, name="Y")
    assert forms_of(Y) == {G.name: "keep", "P": "inline", "S": "inline"}


def test_what_is_the_same_along_an_axis_is_kept_if_it_is_divided():
    A = te.placeholder((64, 64), name="A")
    R = te.compute((64, 64), lambda i, j: 1.0 / A[i, j], name="R")
    Y = te.compute((3, 64, 64), lambda c, i, j: R[i, j] * A[c, j], name="Y")
    assert forms_of(Y) == {"R": "keep"}
    T = te.compute((64, 64), lambda i, j: A[i, j] + 1.0, name="T")
    Z = te.compute((3, 64, 64), lambda c, i, j: T[i, j] * A[c, j], name="Z")
    assert forms_of(Z) == {"T": "inline"}
