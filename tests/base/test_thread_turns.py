"""Threads take short turns while LLVM compiles beside Python, and their usual ones before and after."""

import sys
import threading

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


def in_nested_blocks():
    with short_turns():
        with short_turns():
            assert sys.getswitchinterval() == pytest.approx(SECONDS_OF_A_TURN, abs=2e-6)
        assert sys.getswitchinterval() == pytest.approx(SECONDS_OF_A_TURN, abs=2e-6)
        raise ValueError("no")


def test_turns_are_short_in_nested_blocks_and_usual_after_an_error():
    with pytest.raises(ValueError, match="no"):
        in_nested_blocks()
    assert sys.getswitchinterval() == pytest.approx(USUAL)


def test_the_last_thread_that_leaves_sets_them_back():
    inside, leave = threading.Event(), threading.Event()

    def work():
        with short_turns():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    with short_turns():
        thread.start()
        inside.wait(60)
    assert sys.getswitchinterval() == pytest.approx(SECONDS_OF_A_TURN, abs=2e-6)
    leave.set()
    thread.join()
    assert sys.getswitchinterval() == pytest.approx(USUAL)


def test_shorter_turns_and_those_that_a_program_sets_meanwhile_stay():
    sys.setswitchinterval(1e-5)
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(1e-5)
    with short_turns():
        sys.setswitchinterval(0.003)
    assert sys.getswitchinterval() == pytest.approx(0.003)


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
