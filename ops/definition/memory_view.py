"""Where results lie in memory: operators whose result is a run of their argument, or whose arguments are runs of it.

The compiler asks the memory rules that operators are registered with, so as to copy nothing: a reshape is its
argument's memory, and what a concatenation is made of is written where it has to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...graph.node import Call
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.simplify import simplify


@dataclass(frozen=True, slots=True, eq=False)
class RunOfArgument:
    """The result is the elements of the only argument from number ``begin`` on, in order."""

    begin: Expr


def part_of_axis(shape: Sequence[Expr], axis: int, begin: Expr) -> RunOfArgument | None:
    """Where a part of an axis lies, from an index on: a run of elements, if no axis before has several."""
    if any(const_int(extent) != 1 for extent in shape[:axis]):
        return None
    return RunOfArgument(simplify(math.prod(shape[axis + 1 :], start=begin)))


@dataclass(frozen=True, slots=True, eq=False)
class RunsOfResult:
    """The result is the arguments one after the other in memory: the first elements of each have these numbers."""

    begins: tuple[Expr, ...]


MemoryView: TypeAlias = RunOfArgument | RunsOfResult
MemoryRule: TypeAlias = Callable[[Call], MemoryView | None]
"""What holds of a call; None if its elements have to be moved."""
