"""Runs tests on machines that are described to the package: no verdict of a test may depend on the machine.

run_described.py                          the tests that ask for the processor, on each machine, and under load
run_described.py znver5 x86-64-v2         on these machines
run_described.py --all znver4             all tests
run_described.py znver5 -- -k strassen    with further arguments of pytest
"""

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

from described_host import HOST
from described_machines import MACHINES

ROOT = Path(__file__).resolve().parents[2]
BUSY_PROCESSES = 8
NO_TESTS_RAN = 5
MINUTES = 20
"""That all rounds take, on two idle cores, if each test in one round does not take longer."""
BEGIN_SECONDS = 30
"""That a round takes before its first test: each process reads all of them."""
FILLED = 0.4
"""The part of the time of all processes that tests take, by the least time that they took before: nothing is compiled
yet for a machine that is described, and some processes end earlier than others."""


@contextmanager
def load():
    """Processes that do nothing, as fast as they can."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run(machine, arguments):
    """The exit code of pytest on a machine."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *arguments]
    environment = os.environ | {HOST: json.dumps(machine.description())}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def slowness(loaded, jobs):
    """How many times longer tests take: under load, a process has so much less of a core."""
    return 1 + BUSY_PROCESSES / jobs if loaded else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", nargs="*", metavar="machine", help=", ".join(m.cpu for m in MACHINES))
    parser.add_argument("--all", action="store_true", help="all tests, not only those that ask for the processor")
    parser.add_argument("--load", action="store_true", help="under a load of eight processes")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run tests")
    own, arguments = split(sys.argv[1:])
    options = parser.parse_args(own)
    if unknown := set(options.machines) - {m.cpu for m in MACHINES}:
        parser.error(f"no such machine: {', '.join(unknown)}")
    chosen = [m for m in MACHINES if m.cpu in options.machines or not options.machines]
    rounds = [(machine, options.load) for machine in chosen]
    if not options.machines and not options.load:
        rounds.append((MACHINES[0], True))
    if not options.all:
        times = ",".join(str(slowness(loaded, options.jobs)) for _, loaded in rounds)
        seconds = max(MINUTES * 60 - BEGIN_SECONDS * len(rounds), 0) * options.jobs * FILLED
        arguments = ["--asking", "processor", "--rounds", times, "--budget", str(seconds), *arguments]
    failed = []
    for turn, (machine, loaded) in enumerate(rounds):
        name = f"{machine.cpu}, {machine.cpus} cpus{', under load' if loaded else ''}"
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        with load() if loaded else nullcontext():
            code = run(machine, ["-n", str(options.jobs), "--turn", str(turn), *arguments])
        print(f"== {name}: {time.monotonic() - begin:.0f} s", flush=True)
        if code not in (0, NO_TESTS_RAN):
            failed.append(name)
    if failed:
        sys.exit("tests failed on:\n" + "\n".join(failed))


def split(words):
    """The words before ``--``, and those after."""
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end + 1 :]


if __name__ == "__main__":
    main()
