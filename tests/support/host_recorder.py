"""A plugin of pytest: which tests ask what the machine at hand is, and which need instructions that it lacks.

A test asks if the package does, in the test's process or in a child of it: while the test runs, its module is imported,
or a fixture of it is made. What was found is kept in pytest's cache, with the least time that the test took.
``--asking`` leaves out the tests that are known not to ask, and ``--turn`` with ``--budget`` the longest of them, but
for those whose turn it is; what never ran stays. A round that is slower, as one under load, has fewer turns.
"""

import math
import os
import tempfile
import zlib
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path

import described_host
import pytest

CACHE_KEY, ASKS = "loopwright/asked", "asks"
LACKED = "which this cpu lacks"
"""How the package's error ends for code that the machine, or the one that is described, has no instructions for."""

_folder = str(Path(__file__).parent)
_log = tempfile.NamedTemporaryFile(prefix="asked-")  # noqa: SIM115  as long as the process
os.environ[described_host.ASKED] = _log.name
if _folder not in (paths := os.environ.get("PYTHONPATH", "")).split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_folder, paths]))
described_host.install()


def add_options(parser):
    parser.addoption("--asking", default="", help="run only tests that ask for one of: processor, instructions, cpus")
    parser.addoption("--rounds", default="1", help="how many times longer tests take in each round, as 1,1,5")
    parser.addoption("--turn", type=int, default=0, help="of the longest tests, run only those of this round, from 0")
    parser.addoption("--budget", type=float, default=math.inf, help="seconds of tests that all rounds take together")


def brief_seconds(seconds, rounds, budget):
    """How long a test may take to run in each round, where longer ones run in one, and all together stay within the
    budget. ``rounds`` says how many times longer tests take in each."""
    in_one = len(rounds) / sum(1 / slowness for slowness in rounds)
    total = sum(seconds) * in_one
    for longest in sorted(seconds):
        total += longest * (sum(rounds) - in_one)
        if total > budget:
            return math.nextafter(longest, 0)
    return math.inf


def turn_of(test, rounds):
    """The round in which a longer test runs; all rounds get tests that take them equally long."""
    position = zlib.crc32(test.encode()) / 2**32 * sum(1 / slowness for slowness in rounds)
    for turn, slowness in enumerate(rounds[:-1]):
        position -= 1 / slowness
        if position < 0:
            return turn
    return len(rounds) - 1


def _questions(begin):
    """What was asked since the log had this length."""
    return set(os.pread(_log.fileno(), 1 << 20, begin).decode().split())


def _length():
    return os.fstat(_log.fileno()).st_size


class HostRecorder:
    """Mutable: what folders and modules asked when they were imported, what fixtures did when they were made, and tests
    when they ran; how long these took; and how long the log was when the present one began."""

    def __init__(self):
        self.collectors, self.fixtures, self.asking = defaultdict(set), defaultdict(set), {}
        self.seconds, self.before = Counter(), 0

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        before = _length()
        report = yield
        self.collectors[collector.nodeid] |= _questions(before)
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        wanted = set(config.getoption("--asking").split())
        if not wanted:
            return
        known = config.cache.get(CACHE_KEY, {})
        turn, rounds = config.getoption("--turn"), [float(s) for s in config.getoption("--rounds").split(",")]
        unknown = {"asks": wanted, "seconds": 0}
        asking = {item: found for item in items if wanted & {*(found := known.get(item.nodeid, unknown))["asks"]}}
        brief = brief_seconds([found["seconds"] for found in asking.values()], rounds, config.getoption("--budget"))
        kept, others = [], []
        for item in items:
            brief_or_turn = item in asking and (
                asking[item]["seconds"] <= brief or turn_of(item.nodeid, rounds) == turn
            )
            (kept if brief_or_turn else others).append(item)
        config.hook.pytest_deselected(items=others)
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        before = _length()
        made = yield
        self.fixtures[fixturedef.argname] |= _questions(before)
        return made

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self):
        self.before = _length()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self):
        with _skipped_where_instructions_lack():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self):
        with _skipped_where_instructions_lack():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Tell the main process, by the last report of a test."""
        if call.when == "teardown":
            around = [self.collectors[node.nodeid] for node in item.listchain()[1:]]
            asked = _questions(self.before).union(*around, *(self.fixtures[name] for name in item.fixturenames))
            item.user_properties.append((ASKS, sorted(asked)))
        return (yield)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration
        if report.when == "teardown":
            self.asking[report.nodeid] = dict(report.user_properties).get(ASKS, ())

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "cache") and not hasattr(session.config, "workerinput"):
            known = session.config.cache.get(CACHE_KEY, {})
            for test, asks in self.asking.items():
                before = known.get(test, {"asks": (), "seconds": math.inf})
                seconds = min(before["seconds"], round(self.seconds[test], 3))
                known[test] = {"asks": sorted({*before["asks"], *asks}), "seconds": seconds}
            session.config.cache.set(CACHE_KEY, known)


@contextmanager
def _skipped_where_instructions_lack():
    """What a test compiles for another cpu, and this one cannot run, has been compiled: the rest is left out."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ == "TargetError" and LACKED in str(error):
            pytest.skip(str(error))
        raise
