"""Arguments of ``lw.autoschedule`` that do not fit, and rules that fail, are told by name."""

import pytest

import loopwright as lw
from loopwright import te

A = te.placeholder((8, 8), name="A")
B = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="B")


def rule(name="mine", apply=lambda at: None):
    return lw.ScheduleRule(name, "loops", lambda at: True, apply)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"candidates": 0}, "candidates should be a whole number of at least 1, found 0"),
        ({"candidates": True}, "candidates should be a whole number of at least 1, found True"),
        ({"seed": 1.5}, "seed should be a whole number, found 1.5"),
        ({"rules": 3}, "rules should be a sequence of lw.ScheduleRule, found 3"),
        ({"rules": ["tile"]}, "rules should be a sequence of lw.ScheduleRule"),
        ({"rules": [rule(), rule()]}, "two rules of the phase 'loops' are called 'mine'"),
        (
            {"rules": [rule(apply=lambda at: {}["no"])]},
            "the rule 'mine' on stage B raised KeyError: 'no'",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else next(iter(each)),
)
def test_what_does_not_fit_is_refused(arguments, problem):
    with pytest.raises(lw.RuntimeArgumentError, match=problem):
        lw.autoschedule(B, "x86-64-v3", **arguments)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("", "loops", bool, bool), "a rule has a name, found ''"),
        (("mine", "shape", bool, bool), "the phase of the rule 'mine' should be one of 'form', 'place', 'loops'"),
        (("mine", "loops", True, bool), "applies and apply of the rule 'mine' should be functions of a StageSketch"),
    ],
    ids=str,
)
def test_a_rule_is_checked_when_it_is_made(given, problem):
    with pytest.raises(lw.RuntimeArgumentError, match=problem):
        lw.ScheduleRule(*given)


def test_inputs_and_what_is_no_tensor_cannot_be_scheduled():
    with pytest.raises(lw.ScheduleError, match="A is an input: there is nothing to compute"):
        lw.autoschedule(A, "x86-64-v3")
    for given in (3, [], [3], "B"):
        with pytest.raises(lw.ScheduleError, match="create_schedule takes a tensor, or a sequence of tensors"):
            lw.autoschedule(given, "x86-64-v3")


def test_unknown_targets_are_refused():
    with pytest.raises(lw.TargetError, match="no such cpu"):
        lw.autoschedule(B, "no such cpu")
