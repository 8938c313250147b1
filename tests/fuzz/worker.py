"""A child process that checks plans (``check_plan.py``, or another script), started again after each death."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from python_path import FOLDERS

FOLDER = Path(__file__).parent
SECONDS = 120
"""What one plan may take; the first one of a process imports everything, too."""


class Worker:
    """Mutable: ``_child`` is the process, None while there is none; ``_log`` takes what it writes to stderr."""

    def __init__(self, script="check_plan.py"):
        self._script = FOLDER / script
        self._child = None
        self._log = None

    def __call__(self, plan, native):
        """The outcome that ``check_plan`` gives."""
        return self.ask({"plan": plan, "native": native})

    def ask(self, request):
        """What the script answers; a process that dies or hangs is an error like any other."""
        if self._child is None:
            pipe, command = subprocess.PIPE, [sys.executable, str(self._script)]
            self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  close() does it
            shared = os.pathsep.join([*FOLDERS, *filter(None, [os.environ.get("PYTHONPATH")])])
            self._child = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=self._log, text=True, env=os.environ | {"PYTHONPATH": shared}
            )
        alarm = threading.Timer(SECONDS, self._child.kill)
        alarm.start()
        with contextlib.suppress(BrokenPipeError):  # it has died since: it will not answer either
            print(json.dumps(request), file=self._child.stdin, flush=True)
        answer = self._child.stdout.readline()
        late = not alarm.is_alive()
        alarm.cancel()
        if answer:
            return json.loads(answer)
        code = self._child.wait()
        self._log.seek(0)
        what = f"no answer within {SECONDS} s" if late else f"the process ended with code {code}"
        error = f"{what}\n{self._log.read()[-2000:]}"
        self.close()
        return {"accepted": [], "refused": 0, "met": [], "error": error}

    def close(self):
        if self._child is not None:
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
            self._child.wait(timeout=60)
            self._child.stdout.close()
            self._log.close()
            self._child = None
