"""Collections of garbage are rare while something compiles, and as they were before that."""

import gc
import threading

import pytest

from loopwright.base.garbage import OBJECTS_BETWEEN_COLLECTIONS, rare_collections


@pytest.fixture(autouse=True)
def threshold():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def compiled_in_blocks():
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold() == (OBJECTS_BETWEEN_COLLECTIONS, 10, 10)
        assert gc.get_threshold() == (OBJECTS_BETWEEN_COLLECTIONS, 10, 10)
        raise ValueError("no")


def test_collections_are_rare_in_blocks_and_nested_ones_and_as_before_after_an_error():
    with pytest.raises(ValueError, match="no"):
        compiled_in_blocks()
    assert gc.get_threshold() == (700, 10, 10)


def test_the_last_thread_that_leaves_sets_them_back():
    inside, leave = threading.Event(), threading.Event()

    def work():
        with rare_collections():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    with rare_collections():
        thread.start()
        inside.wait(60)
    assert gc.get_threshold()[0] == OBJECTS_BETWEEN_COLLECTIONS
    leave.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, 10 * OBJECTS_BETWEEN_COLLECTIONS])
def test_a_program_that_collects_as_rarely_or_never_keeps_that(chosen):
    gc.set_threshold(chosen, 5, 5)
    with rare_collections():
        assert gc.get_threshold() == (chosen, 5, 5)
    assert gc.get_threshold() == (chosen, 5, 5)


def test_what_a_program_sets_meanwhile_stays():
    with rare_collections():
        gc.set_threshold(1234, 10, 10)
    assert gc.get_threshold() == (1234, 10, 10)
