"""Compile here, measure there: a model is tuned for a device that a command such as ``ssh board`` reaches.

``lw.tune`` hands jobs to any object with the ``submit`` of ``concurrent.futures``. A job is plain data. This runner
compiles here, and sends what is to be measured to a Python at the other end of the command, which has the same version
of loopwright. A connection that breaks or says nothing loses its job, which ``lw.tune`` submits anew. Without a command
a shell of this machine stands for the device:

    python tune_on_a_device.py
    python tune_on_a_device.py 10 "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76" ssh pi@board

A board that is asked for by its processor refuses to measure for another one.
"""

import pickle
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import loopwright as lw

START_SECONDS = 120.0
"""What a connection, and a Python at its other end, may take to be ready."""
PROGRAM = """
import pickle, sys
from loopwright.tuning.jobs import run_job
pickle.dump(run_job(pickle.load(sys.stdin.buffer)), sys.stdout.buffer)
"""


class Device:
    """Who compiles here, and measures one job at a time at the other end of a command."""

    def __init__(self, command: Sequence[str], python: str = "python3") -> None:
        self.command = [*command, shlex.join([python, "-c", PROGRAM])]
        self.here, self.there = ThreadPoolExecutor(2), ThreadPoolExecutor(1)

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        (job,) = args
        if "machine" in job:  # the one that it is measured on
            return self.there.submit(self.measured, job)
        return self.here.submit(function, job)

    def measured(self, job: Any) -> Any:
        patience = (START_SECONDS + job["seconds"]) * (1 + len(job["items"]))  # each may need a process of its own
        done = subprocess.run(
            self.command, input=pickle.dumps(job), stdout=subprocess.PIPE, check=True, timeout=patience
        )
        return pickle.loads(done.stdout)

    def close(self) -> None:
        self.here.shutdown()
        self.there.shutdown()


def main(minutes: float, target: str, command: Sequence[str]) -> None:
    x, w = lw.var("x", (48, 192)), lw.var("w", (192, 96))
    model = lw.Function([x, w], lw.nn.relu(lw.nn.matmul(x, w)))
    device = Device(command) if command else Device(["sh", "-c"], sys.executable)
    with closing(device), tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "tuned.jsonl"
        print(lw.tune(model, records, minutes, target, workers=device, threads=1, only=["nn.matmul"]))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(float(given[0]) if given else 0.1, given[1] if len(given) > 1 else "native", given[2:])
