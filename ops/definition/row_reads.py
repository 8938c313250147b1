"""Operators that read rows of an operand one by one, wherever they lie: what only moves rows needs no copy for them.

Fusion asks these rules, registered with the operators (``compiler/fusion/prologue.py``). Mutable: the table, under a
lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from ...base.errors import LoopwrightError
from ...graph.node import Call
from .registry import Op

RowRule: TypeAlias = Callable[[Call], int | None]
"""The number of trailing axes that are a row of the first argument; None if the call reads it in another way."""

_rules: dict[str, RowRule] = {}
_lock = threading.Lock()


def register_row_rule(op: Op, rule: RowRule) -> None:
    """State how an operator reads its first argument. A second rule is a ``LoopwrightError``."""
    with _lock:
        if op.name in _rules:
            raise LoopwrightError(f"operator {op.name} has a row rule already")
        _rules[op.name] = rule


def axes_of_rows(call: Call) -> int | None:
    """How many trailing axes of its first argument a call reads as rows, as the rule of its operator says."""
    assert isinstance(call.op, Op)
    rule = _rules.get(call.op.name)
    return None if rule is None else rule(call)
