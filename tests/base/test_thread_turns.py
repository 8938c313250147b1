"""Threads take short turns while LLVM compiles beside Python, and their usual ones before and after."""

import sys

import pytest

import loopwright as lw
from loopwright.base.thread_turns import SECONDS_OF_A_TURN, short_turns
from loopwright.compiler.model import workers
from loopwright.compiler.model.function_cache import function_cache

USUAL = 0.005


@pytest.fixture(autouse=True)
def interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL)
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_in_a_block_and_as_before_it_afterwards():
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(SECONDS_OF_A_TURN, abs=2e-6)
    assert sys.getswitchinterval() == pytest.approx(USUAL)


def test_shorter_turns_stay():
    sys.setswitchinterval(1e-5)
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(1e-5)
    assert sys.getswitchinterval() == pytest.approx(1e-5)


def test_models_are_compiled_with_short_turns_in_this_process(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path))
    function_cache.clear()
    seen = []
    emit = workers.emit_function

    def emitted(function, settings):
        seen.append(sys.getswitchinterval())
        return emit(function, settings)

    monkeypatch.setattr(workers, "emit_function", emitted)
    x = lw.var("x", (4, 8))
    lw.compile(lw.Function([x], lw.nn.relu(x)), jobs=1)
    assert seen == pytest.approx([SECONDS_OF_A_TURN], abs=2e-6)
    assert sys.getswitchinterval() == pytest.approx(USUAL)
