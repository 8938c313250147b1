"""Ratios, shares and bars of results, and how they are stored and shown."""

import json

import pytest
from cases import Bar
from report import HEADINGS, cost_row, geometric_mean, group_rows, markdown, row, summary, svg_chart
from results import Record, Result, commit, machine

SECONDS = {"loopwright": 2.0, "numpy": 5.0, "torch": 3.0}


def result(name="case", seconds=SECONDS, **others):
    return Result("group", name, 1, seconds, **others)


def test_the_ratio_is_the_best_peers_time_over_ours():
    assert result().best_peer == "torch"
    assert result().ratio == 1.5
    assert result(seconds={"loopwright": 1.0}).ratio is None


def test_neither_ours_compiled_otherwise_nor_a_peer_that_computes_something_else_is_best():
    others = dict.fromkeys(("direct", "strict", "invariant"), 0.1)
    assert result(seconds={**SECONDS, **others}).best_peer == "torch"
    wrong = result(errors={"torch": 0.5, "numpy": 1e-6})
    assert wrong.best_peer == "numpy"
    assert not wrong.met


@pytest.mark.parametrize(
    ("bar", "roof", "met"),
    [
        (Bar(1.5), "fma", True),
        (Bar(1.6), "fma", False),
        (Bar(1.5, 0.5), "fma", True),
        (Bar(1.5, 0.6), "fma", False),
        (Bar(1.6, 0.5, either=True), "memory", True),
        (Bar(1.6, 0.5, either=True), "L2", False),
        (Bar(1.0, gain=3.0), "fma", False),
        (Bar(1.0, gain=2.0), "fma", True),
    ],
)
def test_a_bar_asks_for_ratio_and_share_or_for_one_of_them(bar, roof, met):
    assert result(bar=bar, roof=roof, roof_seconds=1.0, gain=2.5).met is met


def test_what_we_refuse_meets_nothing():
    assert not result(seconds={"numpy": 1.0}, refused={"loopwright": "no"}).met
    assert "refused: no" in row(result(seconds={"numpy": 1.0}, refused={"loopwright": "no"}))


def test_the_summary_counts_bars_and_takes_the_geometric_mean():
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    slow = result("slow", {"loopwright": 6.0, "torch": 1.0})
    assert summary([result(), slow]) == "1 of 2 bars met; 1 thread: geometric mean 0.50"


def test_direct_arithmetic_has_a_ratio_of_its_own_which_the_table_and_the_summary_show(tmp_path):
    direct = result(seconds={**SECONDS, "direct": 2.5, "strict": 4.0, "invariant": 2.2})
    assert direct.direct_ratio == pytest.approx(1.2)
    assert dict(zip(HEADINGS, row(direct), strict=True)).items() >= {"direct": "2.50 s", "direct ratio": "1.20"}.items()
    assert summary([direct]).endswith("geometric mean 1.50, 1.20 with direct arithmetic")
    record = Record(tmp_path / "results.json", ["numpy"])
    record.add(direct)
    page = markdown(record, "models")
    assert "With direct arithmetic, times as long: case (1) 1.25." in page
    assert "With strict precision, times as long: case (1) 2.00." in page
    assert "With choices blind to the batch, times as long: case (1) 1.10." in page


def test_groups_are_summed_up_by_threads_with_what_threads_bring():
    slow = result("slow", {"loopwright": 6.0, "torch": 3.0})
    threaded = [Result("group", name, 2, {"loopwright": s, "torch": 3.0}) for name, s in (("case", 1.0), ("slow", 3.0))]
    one, two = group_rows([result(), slow, *threaded])
    assert one == ("group", "1", "2", "1", "0.87", "0.50", "")
    assert two == ("group", "2", "2", "2", "1.73", "1.00", "2.00")


def test_a_record_comes_back_from_its_file_and_replaces_what_is_measured_anew(tmp_path):
    path = tmp_path / "build" / "results.json"
    first = Record(path, ["numpy"])
    first.add(result(bar=Bar(1.2, 0.5), errors={"numpy": 0.0}))
    first.note_costs("net", {"compile": {"seconds": 2.0, "bytes": 2**20, "constants": 2**21}})
    second = Record(path, ["numpy"])
    assert list(second.results.values()) == list(first.results.values())
    assert cost_row("net", second.costs["net"])[1] == "2.00 s"
    second.add(result(seconds={"loopwright": 1.0}))
    assert [r.seconds for r in Record(path).results.values()] == [{"loopwright": 1.0}]


def test_a_record_is_of_one_commit(tmp_path):
    path = tmp_path / "results.json"
    Record(path, ["numpy"]).add(result())
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"commit": "0123456"}))
    with pytest.raises(SystemExit, match="of another commit: 0123456, here"):
        Record(path, ["numpy"])


def test_the_cores_of_a_machine_are_no_setting(monkeypatch):
    named = machine()
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    assert machine() == named


def test_the_page_names_machine_versions_cases_and_who_was_left_out(tmp_path):
    record = Record(tmp_path / "results.json", ["numpy"])
    record.add(result(refused={"openvino": "it did not want to"}, operations=10**9))
    page = markdown(record, "kernels")
    assert record.about["machine"] in page
    assert "numpy " in page
    assert f"Measured at commit {commit()} on 2" in page
    assert "| group case | 1 | 2.00 s |  | 0.500 GFLOP/s |" in page
    assert "openvino left out of 1 (group): it did not want to" in page


def test_the_chart_has_a_bar_for_each_ratio():
    chart = svg_chart([result(), result("without peers", {"loopwright": 1.0})], "ratios")
    assert chart.count('height="13"') == 1
    assert "1.50 (torch)" in chart
