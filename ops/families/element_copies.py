"""Copies of tensors inside loops of operators' own (``te.extern``): blocks side by side, in vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ... import te
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.expr import Expr
from ...ir.row_major import unravel_index
from ...schedules.rows import extent_of

BLOCK = 1024
"""Elements that a task copies, or columns that it updates."""
LANES = 16
Place: TypeAlias = tuple[Expr, ...]


def copy_elements(builder: IRBuilder, target: BufferPtr, source: BufferPtr, moved: Callable[[Place], Place]) -> None:
    """Write all elements of ``source``, each at ``moved(place)`` of ``target``."""
    total = extent_of(source.shape)
    with builder.for_range(0, (total + (BLOCK - 1)) // BLOCK, name="block", kind="parallel") as block:
        count = te.minimum(total - block * BLOCK, BLOCK)
        with (
            builder.for_range(0, (count + (LANES - 1)) // LANES, name="vector") as vector,
            builder.for_range(0, LANES, name="lane", kind="vectorized") as lane,
            builder.if_scope(vector * LANES + lane < count),
        ):
            place = index_of(block * BLOCK + vector * LANES + lane, source.shape)
            target[moved(place)] = source[place]


def index_of(k: Expr, shape: Sequence[Expr]) -> Place:
    """The index of element ``k`` in row-major order."""
    return unravel_index(k, shape) if shape else ()
