"""The search among decisions, on made-up candidates whose costs are known, and the loops that strips leave."""

from types import SimpleNamespace

import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.decisions import Decision
from loopwright.schedules.auto import search as searching
from loopwright.schedules.auto.candidates import Scheduling
from loopwright.schedules.auto.sketch import make_sketch

TARGET = lw.resolve_target("x86-64-v3").with_threads(1)
ANY = Scheduling((), TARGET, ())


class MadeUp:
    """Decisions of two places and a number; ``cycles`` says what their values cost. Where ``A`` is whole, it has
    no loops at which ``B`` could be."""

    def __init__(self, cycles):
        self.cycles = cycles
        self.tried = []

    def default(self):
        return self.made("default", {}, ())

    def sketched(self, decided):
        decisions = [self.decision(decided, "A.at", ("loop", "whole"))]
        if decisions[0].value == "loop":
            decisions.append(self.decision(decided, "B.at", ("whole", "loop")))
        decisions.append(self.decision(decided, "A.rows", (1, 2, 4)))
        values = {decision.name: decision.value for decision in decisions}
        self.tried.append(values)
        return self.made(str(values), values, tuple(decisions))

    def decision(self, decided, name, legal):
        value = decided.get(name, legal[0])
        return Decision(name, legal, legal[0], value if value in legal else legal[0])

    def made(self, nest, values, decisions):
        chosen = {d.name: d.value for d in decisions if d.value != d.default}
        cost = SimpleNamespace(cycles=self.cycles(values))
        return SimpleNamespace(schedule=values, cost=cost, features=None, nest=nest, decisions=decisions, chosen=chosen)


def found_by(monkeypatch, cycles, seed=0, candidates=24):
    made = MadeUp(cycles)
    monkeypatch.setattr(searching, "Candidates", lambda of: made)
    return searching.search(ANY, candidates, seed).schedule, made.tried


def barely_better_whole(values):
    """Computing ``A`` whole gains 0.0004 %; computing ``B`` in its loop gains half, and a number some more."""
    whole = 99.9996 if values.get("A.at") == "whole" else 100.0
    return whole / (2 if values.get("B.at") == "loop" else 1) - values.get("A.rows", 1) / 10 + 0.1


@pytest.mark.parametrize("seed", range(6))
def test_a_structure_that_gains_next_to_nothing_does_not_take_the_loops_of_others(monkeypatch, seed):
    found, _ = found_by(monkeypatch, barely_better_whole, seed)
    assert found == {"A.at": "loop", "B.at": "loop", "A.rows": 4}


def test_structures_come_before_numbers(monkeypatch):
    _, tried = found_by(monkeypatch, barely_better_whole)
    first_number = next(k for k, values in enumerate(tried) if values["A.rows"] != 1)
    assert {"A.at": "whole", "A.rows": 1} in tried[:first_number]
    assert {"A.at": "loop", "B.at": "loop", "A.rows": 1} in tried[:first_number]


def test_numbers_keep_a_part_of_the_candidates(monkeypatch):
    """However many places there are: the numbers are tried with a quarter of the candidates at least."""
    _, tried = found_by(monkeypatch, barely_better_whole, candidates=4)
    assert any(values["A.rows"] != 1 for values in tried)


def test_short_rows_are_joined_where_strips_remain_for_what_is_computed_in_them():
    A = te.placeholder((66, 40, 3, 5), name="A")
    r = te.reduce_axis((0, 5), name="r")
    P = te.compute((66, 40, 3), lambda i, j, c: te.sum(A[i, j, c, r], axis=r), name="P")
    Y = te.compute((64, 40, 3), lambda i, j, c: P[i, j, c] + P[i + 2, j, c], name="Y")
    schedule = make_sketch([Y], TARGET, lw.schedule_rules())
    loops = [loop.name for loop in schedule["Y"].loops]
    assert loops == ["i_outer", "i_inner", "j_c_fused_outer", "j_c_fused_inner"]
    assert next(d.value for d in schedule.decisions if d.name == "P.at") == "Y.i_outer"
