"""What every test gets: a compile cache of its own, random numbers that no other test has taken some of, and hypothesis
profiles that print how to repeat a failure."""

import gc
import logging
import os
import sys

import needed_tools
import numpy as np
import pytest
from host_recorder import HostRecorder, add_options
from hypothesis import HealthCheck, settings

# Nothing that is made while tests are collected becomes garbage, and to look for it takes a quarter of that time.
gc.disable()

# Children are many, and would each compile the package's sources where byte code is not to be written.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# `print_blob` shows the decorator that repeats a failing example; the database keeps it for the next run as well.
_COMMON = settings(
    print_blob=True,
    deadline=None,  # how long an example takes depends on the machine
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# The same examples at each run, so that whether a change passes is no matter of luck; `make fuzz` draws new ones.
settings.register_profile("default", _COMMON, max_examples=50, derandomize=True, database=None)
settings.register_profile("fuzz", _COMMON, max_examples=int(os.environ.get("LOOPWRIGHT_FUZZ_EXAMPLES", "1000")))
settings.load_profile(os.environ.get("LOOPWRIGHT_HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser):
    add_options(parser)
    parser.addoption("--update-golden", action="store_true", help="write the files of expected text anew")


def pytest_configure(config):
    config.pluginmanager.register(HostRecorder())


def pytest_runtest_setup(item):
    needed_tools.check(item)


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory):
    """Compiled kernels go to a folder of this session, and what seals them; child processes inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.delenv("LOOPWRIGHT_CACHE_TRUST", raising=False)
        yield


class _Warnings(logging.Handler):
    """Keeps what is logged. Mutable."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


@pytest.fixture(autouse=True)
def fallbacks():
    """A schedule of ours that is refused fails the test, though the next implementation serves the call. A test that
    means it empties the list, which has the warnings."""
    handler, log = _Warnings(), logging.getLogger("loopwright.selection")
    log.addHandler(handler)
    yield handler.texts
    log.removeHandler(handler)
    assert not handler.texts, f"schedules are refused: {handler.texts}"


@pytest.fixture(autouse=True)
def same_numbers(request):
    """What a module's generator of random numbers, ``rng`` or ``RNG``, gives to a test does not depend on the tests
    before it."""
    generator = getattr(request.module, "rng", None) or getattr(request.module, "RNG", None)
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = _STATES.setdefault(request.module, generator.bit_generator.state)


_STATES = {}
"""The states in which modules' generators were when the modules had been imported."""


def pytest_collection_finish(session):
    """Programs have many nodes and few cycles: to look for cycles as often as Python does takes a tenth of the time."""
    gc.freeze()
    gc.set_threshold(300_000)
    gc.enable()


@pytest.fixture
def stores(monkeypatch):
    """How many elements of each buffer the interpreter stores."""
    from loopwright.ir.interpret import access

    counts = {}
    write = access.Access._write

    def counted(self, frame, memory, element, value):
        counts[self.buffer.name] = counts.get(self.buffer.name, 0) + 1
        write(self, frame, memory, element, value)

    monkeypatch.setattr(access.Access, "_write", counted)
    return counts
