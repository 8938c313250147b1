"""Arithmetic on vectors of int64 that a run computes, such as shapes and indices: what converters make extents of.

Where the numbers are known, or follow from symbolic dimensions, all of it is folded when the model is imported.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph.node import Constant, Node, tensor_of
from ..ops.families.binary import (
    add,
    divide,
    equal,
    greater,
    less,
    logical_xor,
    maximum,
    minimum,
    multiply,
    not_equal,
    subtract,
)
from ..ops.families.cast import cast
from ..ops.families.reshape import reshape
from ..ops.families.select import where
from ..ops.families.unary import logical_not
from .assumed_extent import with_extent


def integers(values: int | Sequence[int]) -> Constant:
    """Numbers as int64: one, or a vector."""
    return Constant(np.asarray(values, np.int64))


def as_int64(values: Node) -> Node:
    """Numbers as int64."""
    return values if tensor_of(values).dtype == "int64" else cast(values, "int64")


def as_vector(values: Node, count: int | None = None) -> Node:
    """A number as a vector of it; a vector as it is. As int64. ``count`` is how many numbers the operator asks for: of
    a vector whose length is open each run checks that."""
    vector = as_int64(values if tensor_of(values).ndim == 1 else reshape(values, (-1,)))
    return vector if count is None else with_extent(vector, 0, count)


def as_number(values: Node) -> Node:
    """The one number of a tensor, as a scalar. Of each extent that is open each run checks that it is 1."""
    for axis in range(tensor_of(values).ndim):
        values = with_extent(values, axis, 1)
    return reshape(values, ()) if tensor_of(values).ndim else values


def clamped(values: Node, low: Node, high: Node) -> Node:
    """Numbers, none below ``low`` or above ``high``; ``low`` where that is above ``high``."""
    return maximum(minimum(values, high), low)


def from_the_end(index: Node, extent: Node) -> Node:
    """Indices with those that are negative counted from the end."""
    return where(less(index, integers(0)), add(index, extent), index)


def steps_between(start: Node, end: Node, step: Node) -> Node:
    """How many steps it takes from ``start`` to ``end``, or beyond, 0 where they lead away from it; -1, which is no
    extent, for a step of 0."""
    span, zero = subtract(end, start), integers(0)
    is_none = equal(step, zero)
    divisor = where(is_none, integers(1), step)
    leads_there = logical_not(logical_xor(greater(span, zero), greater(divisor, zero)))
    whole = divide(span, divisor)
    rest = cast(not_equal(multiply(whole, divisor), span), "int64")
    count = where(leads_there, add(whole, rest), zero)
    return where(is_none, integers(-1), maximum(count, zero))
