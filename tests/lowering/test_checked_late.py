"""Schedules whose rules are checked once behind the last step: what is refused, and how the error reads."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering import checked_late as late
from loopwright.lowering import step as steps
from loopwright.lowering.checked_late import checked_late
from loopwright.lowering.rules.invariants import check_invariants
from loopwright.schedules.fetch_ahead import fetch_ahead


def added():
    a = te.placeholder((64,), name="a")
    return a, te.compute((64,), lambda i: a[i] + 1, name="b")


def two_elements_in_one_place():
    _, b = added()
    s = lw.create_schedule(te.compute((64,), lambda i: b[i] * 2, name="c"))
    s[b].split(b.op.axis[0], 16)
    s[b].transform_layout(lambda i: (i // 2,))
    s[b].split(s[b].loops[0], 2)
    return s


def test_a_broken_rule_gives_the_error_of_the_step_that_breaks_it():
    with pytest.raises(lw.ScheduleError) as at_once:
        two_elements_in_one_place()
    with pytest.raises(lw.ScheduleError) as at_the_end:
        checked_late(two_elements_in_one_place)
    assert "may put two of the (64) elements in one place" in str(at_once.value)
    assert str(at_the_end.value) == str(at_once.value)


def test_rules_are_checked_once_however_many_steps_there_are(monkeypatch):
    checks = []

    def counted(state, before):
        checks.append(state)
        check_invariants(state, before)

    monkeypatch.setattr(steps, "check_invariants", counted)
    monkeypatch.setattr(late, "check_invariants", counted)

    def make():
        _, b = added()
        s = lw.create_schedule(b)
        _, inner = s[b].split(b.op.axis[0], 16)
        s[b].vectorize(inner)
        return s

    assert len(make().trace) == 2
    assert len(checks) == 2
    made = checked_late(make)
    assert checks[2:] == [made.state]


def test_a_prefetch_that_is_left_out_where_it_is_illegal_is_checked_at_once():
    calls = []

    def make():
        a, b = added()
        s = lw.create_schedule(b)
        _, inner = s[b].split(b.op.axis[0], 16)
        s[b].vectorize(inner)
        calls.append(fetch_ahead(s[b], a, inner, 1))
        return s

    assert not checked_late(make).state.stage("b").prefetches
    assert calls == [False]
