"""What the rounds of contenders come to, by recorded times."""

import math
import xml.etree.ElementTree as ET

import pytest

from loopwright.base.table import table_text
from loopwright.runtime.contenders.latency import Latency, Ratio, median_interval
from loopwright.runtime.contenders.latency_views import latency_chart, latency_notes, latency_table

OURS = Latency("loopwright", 1, (1e-3,) * 12, (1e-3,) * 99 + (5e-3,))


def peer(ratio=2.0, **fields):
    return Latency("onnxruntime", 1, tuple(r * ratio for r in OURS.rounds), (2e-3,) * 100, 1e-6, 1e-4, **fields)


def test_percentiles_are_those_of_all_calls():
    assert OURS.median == pytest.approx(1e-3)
    assert OURS.percentile(90) == pytest.approx(1e-3)
    assert OURS.percentile(100) == pytest.approx(5e-3)


def test_a_ratio_is_of_the_same_rounds():
    """The machine is half as fast in every other round, for both."""
    speeds = [1, 2] * 6
    ours = Latency("loopwright", 1, tuple(1e-3 * s for s in speeds), (1e-3,))
    theirs = Latency("onnxruntime", 1, tuple(3e-3 * s for s in speeds), (3e-3,))
    assert theirs.ratio_to(ours) == Ratio(pytest.approx(3.0), pytest.approx(3.0), pytest.approx(3.0))


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(1, 0, 0), (2, 0, 1), (5, 0, 4), (6, 0, 5), (8, 0, 7), (9, 1, 7), (12, 2, 9), (20, 5, 14), (30, 9, 20)],
)
def test_intervals_are_those_of_the_sign_test(count, low, high):
    """Positions from the tables of the sign test at 5 %, two-sided."""
    assert median_interval([float(k) for k in reversed(range(count))]) == (low, high)


def test_intervals_hold_the_median_as_often_as_they_say():
    """Over all outcomes of 12 coins, on which side of the median each value falls."""
    low, high = median_interval([float(k) for k in range(12)])
    held = sum(math.comb(12, below) for below in range(int(low) + 1, int(high) + 1)) / 2**12
    assert 0.95 <= held < 0.97


@pytest.mark.parametrize("columns", [80, 100])
def test_the_table_fits_80_columns_and_cuts_no_number(columns):
    slow = Latency("openvino", 1, (1.2345e-1,) * 12, (1.2345e-1,) * 123456, 0.25, 1e-4)
    failed = Latency("other", 1, problem="it did not want to")
    text = table_text(latency_table([OURS, peer(), slow, failed]), columns)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in text
    assert lines[2].split() == ["loopwright", "100", "1.00", "ms", "1.00", "ms", "1.04", "ms"]
    assert lines[3].split()[-3:] == ["2.00×", "(2.00–2.00)", "1.0e-06"]
    assert lines[4].split()[-4:] == ["123×", "(123–123)", "≠", "2.5e-01"]
    assert lines[5].split() == ["other"]


def test_alone_there_is_nothing_to_compare():
    assert "÷" not in table_text(latency_table([OURS]), 80)
    assert list(latency_notes([OURS])) == []


def test_notes_say_who_failed_and_who_computes_something_else():
    wrong = Latency("openvino", 1, OURS.rounds, OURS.samples, math.inf, 1e-4)
    first, second = latency_notes([OURS, peer(), wrong, Latency("other", 1, problem="it did not want to")])
    assert first.startswith("≠ openvino computes something else: its outputs differ from ours by inf")
    assert second == "other failed: it did not want to"


def test_json_has_times_ratio_difference_or_the_problem():
    ours, theirs = OURS.to_json(OURS), peer().to_json(OURS)
    assert ours["p50_ms"] == pytest.approx(1.0)
    assert ours["calls_per_second"] == pytest.approx(100 / 0.104)
    assert "ratio" not in ours
    assert theirs["ratio"] == {key: pytest.approx(2.0) for key in ("median", "low", "high")}
    assert (theirs["difference"], theirs["agrees"]) == (1e-6, True)
    wrong = Latency("openvino", 1, OURS.rounds, OURS.samples, math.inf, 1e-4).to_json(OURS)
    assert (wrong["difference"], wrong["agrees"]) == (None, False)
    problem = Latency("other", 2, problem="no").to_json(OURS)
    assert problem == {"contender": "other", "threads": 2, "problem": "no"}


def test_the_chart_has_a_bar_for_each_contender_and_number_of_threads():
    two = Latency("loopwright", 2, OURS.rounds, OURS.samples)
    text = latency_chart("a<b", [[OURS, peer(), Latency("other", 1, problem="<no>")], [two]])
    root = ET.fromstring(text)
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert texts[0] == "a<b"
    assert [t for t in texts if t.endswith(("thread", "threads"))] == [
        *("loopwright, 1 thread", "onnxruntime, 1 thread", "other, 1 thread", "loopwright, 2 threads")
    ]
    assert "2.00 ms, 2.00× (2.00–2.00) of ours" in texts
    assert "<no>" in texts
