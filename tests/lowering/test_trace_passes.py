"""``lower(..., trace_passes=...)`` shows the function after every pass, or says that the pass left it unchanged."""

import re

import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.pipeline import passes

TARGET = lw.resolve_target("x86-64-v3")
PASSES = ["realize", *(name for name, _ in passes(TARGET))]


@pytest.fixture
def doubled():
    X = te.placeholder((13,), name="X")
    Y = te.compute((13,), lambda i: X[i] * 2.0, name="Y")
    s = lw.create_schedule(Y)
    s[Y].vectorize(s[Y].split(Y.op.axis[0], factor=4)[1])
    return s, [X, Y]


def test_a_list_collects_every_pass_in_order_with_the_text_behind_it(doubled):
    records: list[lw.PassRecord] = []
    func = lw.lower(*doubled, target=TARGET, trace_passes=records)
    assert [record.name for record in records] == PASSES
    texts = [record.text for record in records if record.text is not None]
    assert "for i_inner in vectorized(4):" in texts[0]
    assert texts[-1] == str(func)
    assert all(record.seconds >= 0 for record in records)
    by_name = {record.name: record.text for record in records}
    assert "ramp(" in by_name["vectorize"]
    assert by_name["unroll"] is None, "nothing is unrolled here"


def test_true_prints_every_pass_under_a_heading(doubled, capsys):
    func = lw.lower(*doubled, target=TARGET, trace_passes=True)
    printed = capsys.readouterr().out
    headings = re.findall(r"^# (\w+), [\d.]+ [mµn]?s(: unchanged)?$", printed, re.MULTILINE)
    assert [name for name, _ in headings] == PASSES
    assert ("unroll", ": unchanged") in headings
    assert ("vectorize", "") in headings
    assert printed.count(f"{func}\n") == 1
    assert lw.lower(*doubled, target=TARGET) is not None
    assert capsys.readouterr().out == ""


def test_the_environment_has_each_change_written_to_a_file(doubled, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_DUMP_IR", str(tmp_path / "dump"))
    records: list[lw.PassRecord] = []
    func = lw.lower(*doubled, name="twice", target=TARGET, trace_passes=records)
    files = sorted((tmp_path / "dump").iterdir())
    changes = [(number, record) for number, record in enumerate(records) if record.text is not None]
    assert [path.name for path in files] == [f"twice.{number:02}.{record.name}.txt" for number, record in changes]
    assert [path.read_text(encoding="utf-8") for path in files] == [f"{record.text}\n" for _, record in changes]
    assert files[-1].read_text(encoding="utf-8") == f"{func}\n"


def test_a_link_in_the_place_of_such_a_file_is_replaced_not_followed(doubled, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_DUMP_IR", str(tmp_path))
    precious, link = tmp_path / "precious", tmp_path / "twice.00.realize.txt"
    precious.write_text("kept")
    link.symlink_to(precious)
    lw.lower(*doubled, name="twice", target=TARGET)
    assert precious.read_text() == "kept"
    assert not link.is_symlink()
    assert "twice" in link.read_text()
