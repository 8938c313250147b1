"""Mistakes with tactics: registration, settings, records."""

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


def test_settings_are_checked(library):
    with pytest.raises(lw.RuntimeArgumentError, match="tactics should be a list of names, found 'a'"):
        lw.ExecutorConfig(tactics="a")
    with pytest.raises(lw.RuntimeArgumentError, match="select should be 'measure', or left out, found 'best'"):
        lw.Engine(library).init(select="best")
    engine = lw.Engine(library)
    engine([np.ones(3, np.float32)])
    with pytest.raises(lw.RuntimeArgumentError, match="main is initialised: its tactics are chosen already"):
        engine.init(select="measure")


def test_records_that_cannot_be_read(library, tmp_path):
    path = tmp_path / "records.jsonl"
    for text, message in (("{", "cannot be read"), ("[]", "has a line that is no record"), ('{"a": 1}', "no record")):
        path.write_text(text)
        with pytest.raises(lw.RecordError, match=message):
            lw.Engine(library).init(records=path)
    path.unlink()
    path.mkdir()
    with pytest.raises(lw.RecordError, match="cannot be read"):
        lw.Engine(library).init(records=path)
