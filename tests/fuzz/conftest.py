"""Gives the tests the process that checks plans."""

import pytest
from worker import Worker


@pytest.fixture(scope="session")
def worker(private_cache):
    made = Worker()
    yield made
    made.close()
