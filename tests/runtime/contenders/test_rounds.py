"""Contenders in processes of their own answer, refuse, may die, and never stay behind."""

import time

import pytest

from loopwright.base.child_python import python_command
from loopwright.runtime.contenders.rounds import Contender, Refused, alternate, ended, load_all

SCRIPT = """
import os, threading, time
from loopwright.runtime.contenders import rounds
from loopwright.runtime.contenders.rounds import serve

rounds.PAUSES = 30

def stay_awake(until):
    while time.monotonic() < until:
        pass

def prepare(request):
    if request == "refuse":
        raise ValueError("not this one")
    print("what libraries print is no answer")
    calls = []
    def run():
        calls.append(1)
        time.sleep(1e-3)
        if request == "die" and len(calls) > 8:
            os._exit(3)
        if request.startswith("awake"):
            until = time.monotonic() + float(request.split()[1])
            threading.Thread(target=stay_awake, args=[until], daemon=True).start()
    return run, {"asked": request}

serve(prepare)
"""


@pytest.fixture
def contender():
    return lambda: Contender(python_command(SCRIPT))


def test_a_contender_answers_with_the_seconds_of_a_call(contender):
    one, other = contender(), contender()
    with ended([one, other]):
        assert one.load("this") == {"asked": "this"}
        other.load("that")
        assert alternate({"one": one, "other": other}, rounds=3) == {}
        assert len(one.seconds) == len(other.seconds) == 3
        assert 1e-3 <= one.median < 1


def test_what_it_refuses_is_no_end(contender):
    one = contender()
    with ended([one]):
        with pytest.raises(Refused, match="ValueError: not this one"):
            one.load("refuse")
        assert one.load("this") == {"asked": "this"}


def test_one_that_dies_is_left_out_and_comes_back_for_the_next_case(contender):
    one, other = contender(), contender()
    with ended([one, other]):
        one.load("die")
        other.load("this")
        refused = alternate({"one": one, "other": other}, rounds=2)
        assert refused == {"one": "it ended with code 3"}
        assert len(other.seconds) == 2
        assert one.load("this") == {"asked": "this"}


def test_it_answers_when_its_threads_sleep(contender):
    one = contender()
    with ended([one]):
        one.load("awake 0.3")
        start = time.monotonic()
        one.measure(calls=1)
        assert time.monotonic() - start > 0.3


def test_one_whose_threads_never_sleep_is_left_out(contender):
    one, other = contender(), contender()
    with ended([one, other]):
        one.load("awake 100")
        other.load("this")
        refused = alternate({"one": one, "other": other}, rounds=2)
        assert refused == {"one": "RuntimeError: its threads do not sleep within 0.9 s"}
        assert len(other.seconds) == 2


def test_no_process_stays_behind(contender):
    def interrupted(one):
        with ended([one]):
            one.load("this")
            processes.append(one._process)
            raise KeyboardInterrupt

    processes = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(contender())
    assert processes[0].poll() is not None


def test_a_round_of_single_calls_gives_the_seconds_of_each_and_counts_by_their_median(contender):
    one = contender()
    with ended([one]):
        one.load("this")
        one.warm_up(0)
        assert (one.seconds, one.samples) == ([], [])
        assert alternate({"one": one}, rounds=2, measure=lambda each: each.measure_each(0.02)) == {}
        assert len(one.seconds) == 2
        assert len(one.samples) >= 2
        assert all(1e-3 <= seconds < 1 for seconds in one.samples)
        one.load("this")
        assert (one.seconds, one.samples) == ([], [])


def test_those_that_refuse_to_load_are_told_with_their_reasons(contender):
    one, other = contender(), contender()
    with ended([one, other]):
        assert load_all({"one": one, "other": other}, "this")[1] == {}
        ready, refused = load_all({"one": one}, "refuse")
        assert (ready, refused) == ({}, {"one": "ValueError: not this one"})


def test_what_is_not_loaded_cannot_be_measured(contender):
    one = contender()
    with ended([one]):
        with pytest.raises(Refused, match="ValueError"):
            one.load("refuse")
        with pytest.raises(Refused, match="nothing is loaded"):
            one.measure()
