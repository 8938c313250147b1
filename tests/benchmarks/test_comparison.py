"""What a kernel's time is, once the overhead of its calls is taken off, what gains are; and one real run."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from comparison import Comparison, difference, without_overhead

from loopwright.runtime.contenders.rounds import Contender

KERNELS = Path(__file__).resolve().parents[2] / "benchmarks" / "kernels.py"


def contender(*seconds):
    made = Contender(["none"])
    made.seconds = list(seconds)
    return made


def test_overhead_is_taken_off_round_by_round():
    ready = {"loopwright": contender(3.0, 6.0, 30.0), "numpy": contender(5.0, 5.0, 5.0)}
    callers = {"loopwright": contender(1.0, 4.0, 28.0), "numpy": contender(2.0, 1.0, 2.0)}
    refused = {}
    seconds = {name: c.median for name, c in ready.items()}
    left = without_overhead(seconds, ready, callers, 0.5, refused)
    assert left == {"loopwright": pytest.approx(2.0), "numpy": pytest.approx(3.0)}
    assert not refused


def test_no_kernel_is_faster_than_the_roofline_and_what_is_lost_in_noise_is_left_out():
    ready = {name: contender(10.2, 10.2) for name in ("loopwright", "numpy")} | {"torch": contender(11.0, 11.0)}
    callers = {name: contender(10.0, 10.0) for name in ready}
    refused = {}
    seconds = {name: c.median for name, c in ready.items()}
    assert without_overhead(seconds, ready, callers, 2.0, refused) == {"loopwright": 2.0, "torch": 2.0}
    assert list(refused) == ["numpy"]


def test_a_gain_leaves_out_how_fast_the_machine_was_meanwhile():
    comparison = Comparison([], 1, 1, 1)
    floats, integers = SimpleNamespace(full_name="f", against=None), SimpleNamespace(full_name="i", against="f")
    assert comparison._gain(floats, {"loopwright": 8.0}, 1e9) is None
    assert comparison._gain(integers, {"loopwright": 4.0}, 0.5e9) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("theirs", "apart"), [([4.0, -np.inf], 0.0), ([3.0, -np.inf], 0.25), ([4.0, np.inf], np.inf), ([4.0, 1.0], np.inf)]
)
def test_equal_infinities_are_no_difference_and_others_a_large_one(tmp_path, theirs, apart):
    np.savez(tmp_path / "loopwright.npz", y=np.array([4.0, -np.inf], np.float32))
    np.savez(tmp_path / "peer.npz", y=np.array(theirs, np.float32))
    assert difference(tmp_path, "peer") == apart


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


def test_open_extents_are_measured_beside_known_ones():
    path = KERNELS.parent / "open_extents.py"
    command = [sys.executable, str(path), "--only", "exp 16384", "--rounds", "1"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    assert len(printed) == 2
    assert printed[0].startswith("exp 16384 ")
    assert "known" in printed[0]
    assert "  1 cases: " in printed[1]
