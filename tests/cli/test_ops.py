"""``loopwright ops``: its page is current, and lists what the registry and selection know."""

import contextlib
import dataclasses
import io
import json
import re
from pathlib import Path

import pytest

import loopwright as lw
from loopwright.cli import main
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.registry import all_ops

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"


@pytest.fixture(scope="module")
def page():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["ops", "--markdown"]) == 0
    return out.getvalue()


def sections(page):
    """The section of each operator, by its name."""
    parts = page.split("\n### `")[1:]
    return {part.partition("(")[0]: part for part in parts}


def test_the_page_in_docs_is_current(page, request):
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page, encoding="utf-8")
    current = PAGE.read_text(encoding="utf-8") == page
    assert current, "docs/operators.md is out of date; run: loopwright ops --page docs/operators.md"


def test_the_page_is_written_to_a_file(page, tmp_path):
    assert main(["ops", "--page", str(tmp_path / "operators.md")]) == 0
    assert (tmp_path / "operators.md").read_text(encoding="utf-8") == page


def test_a_failure_leaves_the_page_as_it_was(tmp_path, monkeypatch, capsys):
    def fails(target):
        raise lw.SelectionError("a strategy failed")

    written = tmp_path / "operators.md"
    written.write_text("as it was", encoding="utf-8")
    monkeypatch.setattr("loopwright.cli.ops._implementations", fails)
    assert main(["ops", "--page", str(written)]) == 1
    assert "a strategy failed" in capsys.readouterr().err
    assert written.read_text(encoding="utf-8") == "as it was"
    assert main(["ops", "--page", str(tmp_path)]) == 1
    assert "the page cannot be written to" in capsys.readouterr().err


def test_each_operator_has_one_section_with_its_arguments_and_attributes(page):
    found = sections(page)
    assert found.keys() == {op.name for op in all_ops()}
    for op in all_ops():
        names = [a.name for a in op.arguments] + [f.name for f in (dataclasses.fields(op.attrs) if op.attrs else ())]
        assert all(f"`{name}`" in found[op.name] for name in names), op.name
        assert "*implementations*: `" in found[op.name], op.name


def test_defaults_and_descriptions_of_attributes_are_shown(page):
    assert "attribute `alpha` (`float`, default `0.01`): slope for negative values" in sections(page)["leaky_relu"]
    assert "attribute `to` (`str`, required): dtype of the result" in sections(page)["cast"]


def conv(window):
    return lw.nn.conv(lw.var("x", (1, 8, 16, 16)), lw.var("w", (8, 8, window, window)))


CALLS = [
    conv(1),
    conv(3),
    lw.nn.matmul(lw.var("a", (64, 64)), lw.var("b", (64, 64))),
    lw.nn.sum(lw.var("x", (4, 4)), 0),
    lw.nn.sum(lw.var("x", (4, 400)), 1),
    lw.nn.softmax(lw.var("x", (4, 400))),
    lw.nn.max_pool(lw.var("x", (1, 8, 16, 16)), 2),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.op.name} of {call.args[-1].type}")
def test_what_selection_chooses_is_listed_with_its_priority(page, call):
    chosen = select_implementation(call, CompileSettings(lw.resolve_target("x86-64-v3"))).chosen
    assert f"`{chosen.name}` ({chosen.plevel})" in sections(page)[call.op.name]


def row(out, name):
    return next(line for line in out.splitlines() if line.split()[:1] == [name])


def test_without_options_it_prints_a_table(capsys):
    assert main(["ops"]) == 0
    out = capsys.readouterr().out
    assert all(row(out, op.name) for op in all_ops())
    assert row(out, "nn.dense").split()[1] == "1"
    assert row(out, "transpose").split()[1] == "3"
    lines = out.splitlines()
    assert lines[lines.index(row(out, "nn.dense")) + 1].split()[0] == "out_elementwise_fusable"


def test_in_80_columns_no_operator_and_no_priority_is_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["ops"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert all(row(out, op.name) for op in all_ops())
    assert re.search(r"matmul\.direct \(10\)", row(out, "nn.matmul"))


def test_the_table_is_of_the_target_that_was_asked_for(capsys):
    assert main(["ops", "--target", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"]) == 0
    assert "matmul.direct (10)" in row(capsys.readouterr().out, "nn.matmul")
    assert main(["ops", "--target", "x86-64-v33"]) != 0
    assert "did you mean x86-64-v3" in capsys.readouterr().err


def test_support_levels_are_shown(page):
    assert "- *support level* 2: what convolutional networks need" in sections(page)["nn.conv2d"]


def test_operators_are_told_in_json(capsys):
    assert main(["ops", "--json", "--target", "x86-64-v3"]) == 0
    rows = {row["operator"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows.keys() == {op.name for op in all_ops()}
    assert "matmul.paneled" in rows["nn.matmul"]["implementations"]


def test_one_operator_is_described_in_plain_text_that_fits(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    assert main(["ops", "leaky_relu", "nn.conv2d", "--target", "x86-64-v3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("leaky_relu(x)\n")
    assert "- attribute alpha (float, default 0.01): slope for negative values\n" in out
    assert "\nnn.conv2d(x, weight)\n" in out
    assert "\n- implementations: conv.direct (5), " in out
    assert "`" not in out
    assert "- support level 2: what convolutional networks need\n" in out
    assert max(map(len, out.splitlines())) <= 70


def test_an_unknown_operator_gets_suggestions(capsys):
    assert main(["ops", "nn.conv2"]) == 1
    assert "there is no operator 'nn.conv2': did you mean nn.conv2d" in capsys.readouterr().err
