"""What a call asks of symbolic extents that its types do not say: checked when the values are known.

Mutable: the table of checks, under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...base.errors import LoopwrightError
from ...graph.node import Call
from ...ir.expr import Expr
from .registry import Op

RunChecks: TypeAlias = Callable[[Call], Sequence[Expr]]
"""Index expressions that must not be negative; ``0 - a % b`` says that b divides a."""

_checks: dict[str, RunChecks] = {}
_lock = threading.Lock()


def register_run_checks(op: Op, checks: RunChecks) -> None:
    """State what calls of an operator ask of their extents. A second statement is a ``LoopwrightError``."""
    with _lock:
        if op.name in _checks:
            raise LoopwrightError(f"operator {op.name} has checks of its extents already")
        _checks[op.name] = checks


def run_checks(call: Call) -> Sequence[Expr]:
    """The expressions that must not be negative for a call."""
    checks = _checks.get(call.op.name)
    return () if checks is None else checks(call)
