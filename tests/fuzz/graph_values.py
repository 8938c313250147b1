"""The values of a random graph, the steps of numpy that make them, and how their extents compare."""

from collections.abc import Callable
from dataclasses import dataclass

from loopwright.ir.constants import const_int


@dataclass(frozen=True)
class Value:
    """A value of the graph: its node, and for a tensor its shape at the plan's sizes."""

    node: object
    shape: tuple[int, ...]
    exact: bool = False
    """Whether it holds what an operator has only moved, or compared: such numbers carry no rounding of their own."""


@dataclass(frozen=True)
class Step:
    """``made`` is what ``function`` gives of ``read``."""

    function: Callable
    read: tuple[Value, ...]
    made: Value


def extents(value):
    """Those of the type, numbers as such: two that are symbolic are the same if they are one expression."""
    return [e if const_int(e) is None else const_int(e) for e in value.node.type.shape]


def same_type(x, y):
    return len(x.shape) == len(y.shape) and all(same_extent(a, b) for a, b in zip(extents(x), extents(y), strict=True))


def same_extent(a, b):
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def is_one(extent):
    return isinstance(extent, int) and extent == 1


def broadcast(x, y):
    """Whether two values broadcast whatever the dimensions are."""
    pairs = zip(reversed(extents(x)), reversed(extents(y)), strict=False)
    return all(same_extent(a, b) or is_one(a) or is_one(b) for a, b in pairs)


def same_but(x, y, axis):
    pairs = enumerate(zip(extents(x), extents(y), strict=True))
    return all(same_extent(a, b) or k == axis for k, (a, b) in pairs)
