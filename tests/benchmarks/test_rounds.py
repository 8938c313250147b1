"""Contenders in processes of their own answer, refuse, may die, and never stay behind; and one real comparison."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rounds import Contender, Refused, alternate, ended

KERNELS = Path(__file__).resolve().parents[2] / "benchmarks" / "kernels.py"
SCRIPT = """
import os, sys, threading, time
sys.path.append({folder!r})
import rounds
from rounds import serve

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
    return run, {{"asked": request}}

serve(prepare)
"""


@pytest.fixture
def contender(tmp_path):
    script = tmp_path / "contender.py"
    script.write_text(SCRIPT.format(folder=str(KERNELS.parent)))
    return lambda: Contender(str(script))


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


def test_a_comparison_with_numpy_is_recorded(tmp_path):
    path = tmp_path / "results.json"
    options = ["--only", "matmul-small 8×8×8 run", "--peers", "numpy", "--threads", "1", "--rounds", "2"]
    command = [sys.executable, str(KERNELS), *options, "--json", str(path), "--svg", str(tmp_path / "chart.svg")]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    results = json.loads(path.read_text())["results"]
    assert [r["name"] for r in results] == ["1×1×1 run-time", "8×8×8 run-time"]
    for result in results:
        assert result["errors"] == {"numpy": pytest.approx(0, abs=1e-6)}
        assert result["seconds"]["loopwright"] > 0
        assert 0 < result["roof_seconds"] < 1e-3
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")
