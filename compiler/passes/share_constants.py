"""Equal constants become one, so that what is made of them, such as packed weights, is made and stored once.

Passes that rearrange a weight do so for each call that has it; and exporters store a weight once for each use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.mapped import give_back
from ...graph.node import Constant, Function, Node
from ...graph.visit import post_order, rewrite

SAMPLES = 16
"""So many elements tell most weights apart, of which no more is read then."""


def share_constants(function: Function) -> Function:
    """The function with the first of equal constants in place of all: of the same type, and bit by bit."""
    alike: dict[object, list[Constant]] = {}
    same: dict[Node, Node] = {}
    for node in post_order(function.body):
        if isinstance(node, Constant):
            known = alike.setdefault((node.type, _sample(node.value)), [])
            first = next((c for c in known if _equal(c.value, node.value)), None)
            if first is None:
                known.append(node)
            else:
                same[node] = first
    return replace(function, body=rewrite(function.body, same.get)) if same else function


def _bits(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The elements as whole numbers: as floats, NaN would equal nothing, and -0 would equal 0."""
    return value.reshape(-1).view(np.uint8).reshape(-1, value.itemsize)


def _sample(value: npt.NDArray[Any]) -> bytes:
    step = max(1, value.size // SAMPLES)
    return _bits(value)[::step].tobytes()


def _equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    equal = a is b or bool(np.array_equal(_bits(a), _bits(b)))
    for value in (a, b):
        give_back(value)
    return equal
