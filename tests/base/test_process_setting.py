"""A setting of the process: another one while any thread is in a block, and what it was before them afterwards."""

import threading

import pytest

from loopwright.base.process_setting import ProcessSetting


class Place:
    """Where a setting is, which rounds what it is given to tenths."""

    def __init__(self, value):
        self.value = value

    def write(self, value):
        self.value = round(value, 1)


@pytest.fixture
def place():
    return Place(7.0)


@pytest.fixture
def setting(place):
    return ProcessSetting(lambda: place.value, place.write)


def smaller(setting):
    return setting.block(1.04, lambda before: before > 1.04)


def in_nested_blocks(place, setting):
    with smaller(setting):
        with smaller(setting):
            assert place.value == 1.0
        assert place.value == 1.0
        raise ValueError("no")


def test_it_is_another_one_in_nested_blocks_and_as_before_after_an_error(place, setting):
    with pytest.raises(ValueError, match="no"):
        in_nested_blocks(place, setting)
    assert place.value == 7.0


def test_the_last_thread_that_leaves_sets_it_back(place, setting):
    inside, leave = threading.Event(), threading.Event()

    def work():
        with smaller(setting):
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=work)
    with smaller(setting):
        thread.start()
        inside.wait(60)
    assert place.value == 1.0
    leave.set()
    thread.join()
    assert place.value == 7.0


def test_one_that_it_does_not_apply_to_and_one_that_is_set_meanwhile_stay(place, setting):
    place.value = 0.5
    with smaller(setting):
        assert place.value == 0.5
    place.value = 7.0
    with smaller(setting):
        place.value = 3.0
    assert place.value == 3.0
