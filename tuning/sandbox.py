"""Jobs in child processes: a crash, an abort of LLVM or a hang is the end of a child, not of whoever asked for it.

A child is given a job, says that it is ready, and answers item by item; behind one that it does not survive another
child goes on. ``child.py`` has what children do.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import IO, Any

from .outcome import OutcomeKind

START_SECONDS = 120.0
"""What a child may take until it is ready: it imports, and loads what candidates are compared with."""
_POLL_SECONDS = 0.2
_END = object()
Answer = dict[str, Any]


class Interrupted(Exception):  # noqa: N818  # no error: whoever asked does not want an answer any more
    """A job was called off."""


def in_children(
    command: Sequence[str],
    job: Mapping[str, Any],
    environment: Mapping[str, str],
    stop: threading.Event | None = None,
    start_seconds: float = START_SECONDS,
) -> Answer:
    """The answers to all ``items`` of a job, each within its ``seconds`` and the ``grace`` that a child has asked for
    when it was ready, and what the first one said then. Raises ``Interrupted`` when ``stop`` is set."""
    items = list(job["items"])
    answers: list[Answer] = []
    ready: Answer = {}
    while True:
        left = items[len(answers) :]
        with _Child(command, {**job, "items": left}, environment, stop) as child:
            first = child.next(start_seconds)
            if first is None:
                problem = child.problem("before it tried anything")
                return {"ready": ready, "answers": [*answers, *[problem] * len(left)]}
            ready = ready or first
            for _ in left:
                answer = child.next(job["seconds"] + first.get("grace", 0.0))
                if answer is None:
                    answers.append(child.problem())
                    break
                answers.append(answer)
        if len(answers) == len(items):
            return {"ready": ready, "answers": answers}


class _Child:
    """A child process. Mutable: it ends with the block."""

    def __init__(
        self,
        command: Sequence[str],
        job: Mapping[str, Any],
        environment: Mapping[str, str],
        stop: threading.Event | None,
    ) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # it closes with the block
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, **environment},
            process_group=0,  # an interrupt is for whoever asked
        )
        self._stop = stop
        self._hung = False
        self._answers: SimpleQueue[object] = SimpleQueue()
        self._threads = [
            threading.Thread(target=_send, args=(self._process.stdin, job), daemon=True),
            threading.Thread(target=_receive, args=(self._process.stdout, self._answers), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._said):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def next(self, seconds: float) -> Answer | None:
        """What it says next; None where it died, or said nothing for so long, which ends it."""
        end = time.monotonic() + seconds
        while True:
            if self._stop is not None and self._stop.is_set():
                raise Interrupted
            try:
                answer = self._answers.get(timeout=max(0.0, min(_POLL_SECONDS, end - time.monotonic())))
            except Empty:
                if time.monotonic() < end:
                    continue
                self._hung = True
                self._process.kill()
                return None
            return answer if isinstance(answer, dict) else None

    def problem(self, when: str = "") -> Answer:
        """How it ended."""
        status = self._process.wait()
        if self._hung:
            return {"kind": OutcomeKind.HUNG.value, "detail": f"it gave no answer in time {when}".strip()}
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - 2000))
        lines = self._said.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        how = " ".join(part for part in (f"its process died of {_cause(status)}", when) if part)
        return {"kind": OutcomeKind.CRASHED.value, "detail": f"{how}: {last[:200]}" if last else how}


def _cause(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"exit code {status}"


def _send(pipe: IO[bytes], job: Mapping[str, Any]) -> None:
    try:
        with pipe:
            pickle.dump(dict(job), pipe)
    except OSError:  # it died before it had read all: whoever waits for answers sees that
        pass


def _receive(pipe: IO[bytes], answers: SimpleQueue[object]) -> None:
    """Put all that a child says into a queue, and a mark at its end."""
    try:
        while True:
            answers.put(pickle.load(pipe))
    except (EOFError, OSError, pickle.UnpicklingError, ValueError):
        answers.put(_END)
