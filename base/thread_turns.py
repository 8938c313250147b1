"""How long a thread of Python may go on while another one waits for its turn."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from .process_setting import ProcessSetting

SECONDS_OF_A_TURN = 0.0002
"""LLVM's thread is in Python for some microseconds between any two calls of LLVM, of which a function takes dozens.
With Python's own turns of 5 ms, what LLVM compiles in 60 ms beside busy Python takes 300."""

_interval = ProcessSetting(sys.getswitchinterval, sys.setswitchinterval)


def short_turns() -> AbstractContextManager[None]:
    """A block in which threads take short turns, in the whole process; shorter ones stay, and so do those that a
    program sets meanwhile."""
    return _interval.block(SECONDS_OF_A_TURN, lambda before: before > SECONDS_OF_A_TURN)
