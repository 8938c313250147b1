"""Methods that do not keep their object, and what becomes of calls when it is gone."""

import gc
import weakref

from loopwright.base.weak_method import weak_method, while_alive


class Counter:
    """Has a callback to itself, as engines have."""

    def __init__(self, make):
        self.count, self.step = 0, make(self.add)

    def add(self, number, times=1):
        self.count += number * times
        return self.count


def test_methods_are_called_with_what_they_are_given():
    for make in (weak_method, while_alive):
        counter = Counter(make)
        assert counter.step(2) == 2
        assert counter.step(3, times=2) == counter.count == 8


def test_an_object_goes_with_its_last_user_and_not_in_a_cycle():
    gc.disable()
    try:
        for make in (weak_method, while_alive):
            counter = Counter(make)
            gone, step = weakref.ref(counter), counter.step
            del counter
            assert gone() is None
            assert make is weak_method or step(1) is None
    finally:
        gc.enable()
