"""Budgets of compilations: what is counted, and what is beyond a budget."""

import json

import compile_time
import pytest
from compile_time import BUDGETS, chosen, excesses, main, measured
from models import Model

from loopwright.base.timing import CompileTiming

COUNTS = {"nodes": 1000, "simplifications": 10, "visits": 100, "instructions": 500}


def test_more_than_a_budget_and_its_slack_is_an_excess():
    assert excesses("m", COUNTS, COUNTS) == []
    assert excesses("m", COUNTS | {"nodes": 1019}, COUNTS) == []
    assert excesses("m", COUNTS | {"nodes": 1021}, COUNTS) == ["m: 1021 nodes, 1000 are allowed"]
    assert len(excesses("m", COUNTS, {})) == len(CompileTiming.COUNTS)


def test_all_models_and_the_kernels_of_the_file_have_budgets_of_all_counts():
    budgets = json.loads(BUDGETS.read_text(encoding="utf-8"))
    names = [each.full_name for each in chosen(None, budgets)]
    assert sorted(names) == sorted(budgets)
    assert all(set(budget) == set(CompileTiming.COUNTS) for budget in budgets.values())
    assert [each.name for each in chosen(["squeezenet"], {}) if isinstance(each, Model)] == ["squeezenet"]


def test_counts_are_those_of_a_compilation_from_nothing(tmp_path):
    (case,) = chosen(["matmul-small 24×24×24 run-time"], {})
    case.write(tmp_path)
    first, second = measured(tmp_path / "model.onnx"), measured(tmp_path / "model.onnx")
    assert set(first) == {*CompileTiming.COUNTS, "cold", "warm", "first"}
    assert first["instructions"] == second["instructions"] > 0
    assert first["simplifications"] == second["simplifications"] > 0


def test_work_beyond_a_budget_fails(monkeypatch, tmp_path, capsys):
    found = COUNTS | {"cold": 1.0, "warm": 0.1, "first": 0.5}
    monkeypatch.setattr(compile_time, "BUDGETS", tmp_path / "budgets.json")
    monkeypatch.setattr(compile_time, "measured", lambda path: dict(found))
    line = ["compile_time.py", "--only", "matmul-small 24×24×24 run-time"]
    monkeypatch.setattr("sys.argv", [*line, "--update"])
    main()
    found["nodes"] *= 2
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit, match="2000 nodes, 1000 are allowed"):
        main()
    assert "1.00 s cold, 0.10 s warm, first answer after 0.50 s" in capsys.readouterr().out
