"""Constants whose values are made when they are first asked for."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

from loopwright.graph.deferred_constant import DeferredConstant
from loopwright.graph.node import Constant
from loopwright.graph.types import tensor_type

KIND = tensor_type((2, 3), "float32")


class Making:
    """Makes an array, and counts how often."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return np.arange(6, dtype=np.float32).reshape(2, 3)


def test_type_and_size_are_known_and_the_value_is_made_once():
    make = Making()
    constant = DeferredConstant(make, KIND, "w")
    assert isinstance(constant, Constant)
    assert (constant.type, constant.size, constant.name, make.count) == (KIND, 6, "w", 0)
    assert constant.value is constant.value
    assert not constant.value.flags.writeable
    assert make.count == 1


def test_threads_that_ask_at_once_get_one_array():
    make, found = Making(), []
    constant = DeferredConstant(make, KIND, "w")
    threads = [threading.Thread(target=lambda: found.append(constant.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(array is found[0] for array in found)
    assert make.count == 1


def test_what_it_is_made_of_is_not_kept():
    make = Making()
    gone = weakref.ref(make)
    constant = DeferredConstant(make, KIND, "w")
    del make
    assert constant.value.shape == (2, 3)
    gc.collect()
    assert gone() is None


def test_an_error_is_told_whenever_the_value_is_asked_for():
    def failing():
        raise MemoryError

    constant = DeferredConstant(failing, KIND, "w")
    for _ in range(2):
        with pytest.raises(MemoryError):
            _ = constant.value


def test_another_process_is_sent_the_value():
    sent = pickle.loads(pickle.dumps(DeferredConstant(Making(), KIND, "w")))
    assert (type(sent), sent.name) == (Constant, "w")
    np.testing.assert_array_equal(sent.value, np.arange(6).reshape(2, 3))
