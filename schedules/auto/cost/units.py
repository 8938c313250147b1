"""How long vectors keep the units of a core busy: those of the full width, and those that cross cache lines.

A core that multiplies its widest vectors by halves, as a Zen 4 does those of 512 bits, loads and stores them so, too
(Fog, *The microarchitecture of Intel, AMD and VIA CPUs*). A vector that does not begin at a multiple of its own size
crosses lines, which takes another access.
"""

from __future__ import annotations

import math

from ....base.dtype import DType
from ....base.target import Target
from ....ir.expr import Expr, Ramp
from ....ir.linear import linear_of
from ...machine import CORE
from .footprint import LINE


def passes(kind: DType, target: Target) -> float:
    """How often a unit is taken by one vector of a type: more than once by the widest, where it has half of their
    width."""
    full = kind.lanes * kind.element.storage_bits >= target.vector_bits
    return max(1.0, CORE.full_rate / target.fma_per_cycle) if full else 1.0


def crossings(index: Expr, kind: DType, target: Target) -> float:
    """The share of the vectors at an index that lie in two lines: none where all begin at multiples of their size, as
    arrays do at those of a line."""
    if kind.lanes == 1:
        return 0.0
    size = min(kind.lanes * kind.element.storage_bits, target.vector_bits) // 8
    base = linear_of(index.base if isinstance(index, Ramp) else index)
    step = math.gcd(base.constant, *(term.coefficient for term in base.terms.values()))
    return min(1.0, size / LINE) if step * kind.element.storage_bytes % size else 0.0
