"""Extents that a run computes: what a call with a birth rule says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...graph.node import Call
from ...ir.expr import Expr


@dataclass(frozen=True, slots=True, eq=False)
class ExtentBirth:
    """The elements of a call's first argument, a vector of int64, become ``extents``: those that are variables are
    known to nobody before the run has computed them. ``meaning`` is what errors call them. ``most`` is the most that
    each can be, empty where nobody knows."""

    extents: tuple[Expr, ...]
    meaning: str
    most: tuple[Expr, ...] = ()


BirthRule: TypeAlias = Callable[[Call], ExtentBirth]
"""Which extents the first argument of a call becomes."""
