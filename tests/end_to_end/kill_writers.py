"""Run as a script, ``kill_writers.py <save|cache|export> <library> <folder>``: has processes write files again and
again, kills each after another time by signal 9, and checks what is there then. Prints how many were killed.

Writers are forks of this process, which has imported everything.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright.artifact.cache import DiskCache
from loopwright.artifact.cache_entry import About

ROUNDS = 10
CONTENT = np.random.default_rng(0).bytes(1 << 18)
ABOUT = About("object", "entry", "target", "version")


class Save:
    """A library takes the place of another."""

    def __init__(self, library, folder):
        self.wanted = library.read_bytes()
        self.library, self.path = lw.load(library), folder / "model.lwlib"
        self.library.save(self.path)

    def write(self, number):
        self.library.save(self.path)

    def check(self):
        lw.load(self.path, verify=True)
        assert self.path.read_bytes() == self.wanted


class Cache:
    """Eight entries of the cache, which are written anew."""

    def __init__(self, library, folder):
        self.cache = DiskCache(folder)

    def write(self, number):
        self.cache.put(f"{number % 8:064x}", ABOUT, CONTENT)

    def check(self):
        for entry in self.cache.entries():
            assert entry.problem() is None
            assert self.cache.get(entry.key) == CONTENT
        self.cache.put("f" * 64, ABOUT, CONTENT)
        assert self.cache.get("f" * 64) == CONTENT


class Export:
    """Files of an export, which are replaced."""

    def __init__(self, library, folder):
        self.library, self.folder = lw.load(library), folder
        files = self.library.export(folder, "llvm", name="net")
        self.wanted = {path: path.read_bytes() for path in (files.code, files.header, files.weights)}

    def write(self, number):
        self.library.export(self.folder, "llvm", name="net")

    def check(self):
        assert {path: path.read_bytes() for path in self.wanted} == self.wanted


def killed(scenario, seconds):
    """Whether a writer was there to be killed after that time."""
    child = os.fork()
    if child == 0:
        for number in range(1_000_000):
            scenario.write(number)
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main(what, library, folder):
    scenario = {"save": Save, "cache": Cache, "export": Export}[what](Path(library), Path(folder))
    found = 0
    for number in range(ROUNDS):
        found += killed(scenario, 0.003 + 0.007 * number)
        scenario.check()
    sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
