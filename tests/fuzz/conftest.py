"""Gives the tests the module of random plans, and the child process that runs their native kernels."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("random_schedules.py")


class NativeRunner:
    """Runs plans in a child process, a new one after each death. Mutable: ``_child`` is the process."""

    def __init__(self, stderr):
        self._stderr = stderr
        self._child = None

    def __call__(self, plan):
        """What the kernel gave, or the error it met, as ``serve`` of the script answers."""
        if self._child is None:
            with self._stderr.open("w") as log:
                command = [sys.executable, str(SCRIPT)]
                pipe = subprocess.PIPE
                self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True)
        self._child.stdin.write(json.dumps(plan) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            code = self._child.wait()
            self.close()
            return {"error": f"the process ended with code {code}: {self._stderr.read_text()[-2000:]}"}
        return json.loads(answer)

    def close(self):
        if self._child is not None:
            self._child.stdin.close()
            self._child.wait(timeout=60)
            self._child.stdout.close()
            self._child = None


@pytest.fixture(scope="session")
def random_schedules():
    spec = importlib.util.spec_from_file_location("random_schedules", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def run_native(tmp_path_factory, private_cache):
    runner = NativeRunner(tmp_path_factory.mktemp("native") / "stderr.txt")
    yield runner
    runner.close()
