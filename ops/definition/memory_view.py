"""Where results lie in memory: operators whose result is a run of their argument, or whose arguments are runs of it.

The compiler asks these rules, registered with the operators, so as to copy nothing: a reshape is its argument's memory,
and what a concatenation is made of is written where it has to be. Mutable: the table of rules, under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ...base.errors import LoopwrightError, ModelError
from ...base.foreign_errors import naming_code
from ...graph.node import Call
from ...ir.expr import Expr
from .registry import Op


@dataclass(frozen=True, slots=True, eq=False)
class RunOfArgument:
    """The result is the elements of the only argument from number ``begin`` on, in order."""

    begin: Expr


@dataclass(frozen=True, slots=True, eq=False)
class RunsOfResult:
    """The result is the arguments one after the other in memory: the first elements of each have these numbers."""

    begins: tuple[Expr, ...]


MemoryView: TypeAlias = RunOfArgument | RunsOfResult
MemoryRule: TypeAlias = Callable[[Call], MemoryView | None]
"""What holds of a call; None if its elements have to be moved."""

_rules: dict[str, MemoryRule] = {}
_lock = threading.Lock()


def register_memory_rule(op: Op, rule: MemoryRule) -> None:
    """State where the results of an operator lie. A second rule is a ``LoopwrightError``."""
    with _lock:
        if op.name in _rules:
            raise LoopwrightError(f"operator {op.name} has a memory rule already")
        _rules[op.name] = rule


def memory_view(call: Call) -> MemoryView | None:
    """Where the result of a call lies, as the rule of its operator says."""
    assert isinstance(call.op, Op)
    rule = _rules.get(call.op.name)
    if rule is None:
        return None
    with naming_code(f"the memory rule of {call.op.name}", ModelError):
        return rule(call)
