"""Which functions are computed somewhere, as exp and tanh are: they take many instructions, where arithmetic takes one
each, and rounding does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..base.target import Target
from .expr import Call
from .visit import Node, walk

ROUNDING = frozenset({"round", "floor", "ceil", "trunc"})
"""Functions that are one instruction of a vector."""


def are_costly(roots: Iterable[Node]) -> bool:
    """Whether functions are computed in some expressions or statements."""
    return any(True for _ in _functions_of(roots))


def lanes_of_functions(roots: Iterable[Node], target: Target) -> int | None:
    """The lanes of the vectors in which a target computes the functions in some expressions or statements; None where
    there are none. No function is computed in less than float32."""
    dtypes = {value.dtype for call in _functions_of(roots) for value in (call, *call.args)}
    return min(target.lanes("float32"), *map(target.lanes, dtypes)) if dtypes else None


def _functions_of(roots: Iterable[Node]) -> Iterator[Call]:
    for root in roots:
        yield from (node for node in walk(root) if isinstance(node, Call) and node.name not in ROUNDING)
