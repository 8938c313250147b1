"""Lets the tests import the modules of this folder, as its scripts do, and gives them the process that checks plans."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from worker import Worker


@pytest.fixture(scope="session")
def worker(private_cache):
    made = Worker()
    yield made
    made.close()
