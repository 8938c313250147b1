"""Ctrl-C ends a command wherever it comes."""

import gc
import sys
import time
import weakref

import pytest

from loopwright.cli.interrupt import interrupts_delivered


class Freed:
    """An object with weak references."""


def interrupt(_):
    raise KeyboardInterrupt


def free(objects):
    """Free objects, and wait for what comes of it: by naps, since a signal right before a sleep does not end it."""
    objects.clear()
    gc.collect()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.01)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_in_a_callback_of_a_weak_reference_is_not_lost():
    objects = [Freed()]
    reference = weakref.ref(objects[0], interrupt)
    with pytest.raises(KeyboardInterrupt), interrupts_delivered():
        free(objects)
    assert reference() is None


def test_other_exceptions_are_told_as_before(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    freed = Freed()
    reference = weakref.ref(freed, lambda _: 1 // 0)
    with interrupts_delivered():
        del freed
        gc.collect()
    assert [each.exc_type for each in told] == [ZeroDivisionError]
    assert reference() is None
