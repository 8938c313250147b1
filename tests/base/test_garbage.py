"""Collections of garbage are rare while something compiles, and as they were before that."""

import gc

import pytest

from loopwright.base.garbage import OBJECTS_BETWEEN_COLLECTIONS, rare_collections


@pytest.fixture(autouse=True)
def threshold():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_in_a_block_and_as_before_it_afterwards():
    with rare_collections():
        assert gc.get_threshold() == (OBJECTS_BETWEEN_COLLECTIONS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, 10 * OBJECTS_BETWEEN_COLLECTIONS])
def test_a_program_that_collects_as_rarely_or_never_keeps_that(chosen):
    gc.set_threshold(chosen, 5, 5)
    with rare_collections():
        assert gc.get_threshold() == (chosen, 5, 5)
    assert gc.get_threshold() == (chosen, 5, 5)
