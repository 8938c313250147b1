"""Programs of Python in processes of their own, which import from where this one does.

An interpreter that is given a program looks for modules in the working folder first. What lies there may be anybody's.
"""

from __future__ import annotations

import sys


def python_command(program: str, *arguments: str) -> list[str]:
    """The command that runs a program, with arguments."""
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{program}", *arguments]
