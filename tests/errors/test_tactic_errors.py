"""Mistakes with tactics: registration, settings, records."""

import logging

import numpy as np
import pytest

import loopwright as lw


@pytest.fixture(scope="module")
def library():
    x = lw.var("x", (3,))
    return lw.compile(lw.Function([x], lw.nn.relu(x)), jobs=1)


def test_a_name_is_taken_once_an_operator():
    registry = lw.TacticRegistry()
    registry.register("nn.matmul", "test.mine", object)
    with pytest.raises(lw.LoopwrightError, match=r"nn\.matmul has a tactic test\.mine already; say override=True"):
        registry.register("nn.matmul", "test.mine", object)
    registry.register("nn.matmul", "test.mine", list, override=True)
    registry.register("nn.dense", "test.mine", object)
    assert [tactic.creator for tactic in registry.of("nn.matmul")] == [list]
    with pytest.raises(lw.LoopwrightError, match=r"test\.four of nn\.matmul needs a function that makes it, found 4"):
        registry.register("nn.matmul", "test.four", 4)


def test_a_tactic_is_of_an_operator_that_there_is():
    with pytest.raises(lw.LoopwrightError, match=r"there is no operator 'nn\.matmull': did you mean nn\.matmul"):
        lw.TacticRegistry().register("nn.matmull", "test.mine", object)
    with pytest.raises(lw.LoopwrightError, match=r"there is no operator 3"):
        lw.TacticRegistry().register(3, "test.mine", object)
    with pytest.raises(lw.LoopwrightError, match="operators are named by strings, found 3"):
        lw.TacticRegistry().of(3)


def test_settings_are_checked(library):
    with pytest.raises(lw.RuntimeArgumentError, match="tactics should be a list of names, found 'a'"):
        lw.ExecutorConfig(tactics="a")
    with pytest.raises(lw.RuntimeArgumentError, match="select should be 'measure', or left out, found 'best'"):
        lw.Engine(library).init(select="best")
    engine = lw.Engine(library)
    engine([np.ones(3, np.float32)])
    with pytest.raises(lw.RuntimeArgumentError, match="model is initialised: its tactics are chosen already"):
        engine.init(select="measure")


def test_records_that_cannot_be_read_or_written(library, tmp_path):
    with pytest.raises(lw.RecordError, match="cannot be read: Is a directory"):
        lw.Engine(library).init(records=tmp_path)
    with pytest.raises(lw.RuntimeArgumentError, match="records should be the path of a file, found 3"):
        lw.Engine(library).init(records=3)


def test_damaged_lines_of_records_are_passed_over(library, tmp_path, caplog):
    path = tmp_path / "records.jsonl"
    path.write_text('{\n[]\n{"format": 99}\n')
    with caplog.at_level(logging.WARNING, "loopwright.records"):
        lw.Engine(library).init(records=path)
    assert [f"line {n}" in message for n, message in zip((1, 2, 3), caplog.messages, strict=True)] == [True] * 3
