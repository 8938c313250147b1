"""Programs of Python in processes of their own, which import from where this one does.

An interpreter that is given a program looks for modules in the working folder first. What lies there may be anybody's.
"""

from __future__ import annotations

import subprocess
import sys
from typing import IO

from .errors import InternalError


def python_command(program: str, *arguments: str) -> list[str]:
    """The command that runs a program, with arguments."""
    given: list[object] = [*sys.path]
    folders = [str(each) for each in given if isinstance(each, str)]  # imports pass over others, such as Path
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {folders!r}\n{program}", *arguments]


def pipes_of(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """The standard input and output of a process that was started with a pipe for each."""
    requests, answers = process.stdin, process.stdout
    if requests is None or answers is None:
        raise InternalError("the process has no pipes for its input and output")
    return requests, answers
