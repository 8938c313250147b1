"""What tests of commands share."""

import signal

import pytest


@pytest.fixture
def interruptible():
    """What is started in the background ignores Ctrl-C, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
