"""What the passes over quantized models share: values that are integers with a known scale and zero point."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...graph.node import Call, Constant, Node, tensor_of
from ...graph.visit import inputs, post_order, with_inputs
from ...ops.families.quantize import DEQUANTIZE, QUANTIZE, dequantize

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Dequantized:
    """(x - zero) · scale, of integers x by constants that broadcast to it; ``call`` gives it."""

    call: Call
    x: Node
    scale: Array
    zero: Array

    @property
    def is_of_one(self) -> bool:
        """Whether there is one scale and one zero point for all elements."""
        return self.scale.size == 1 and self.zero.size == 1

    def of(self, x: Node) -> Call:
        """Other integers by the same scale and zero point, of which there is one each."""
        scale, zero = Constant(self.scale.reshape(())), Constant(self.zero.reshape(()))
        return dequantize(x, scale, zero, self.call.attrs.dtype)


def dequantized(node: Node) -> Dequantized | None:
    """What a node dequantizes by constants, if it is a call that does."""
    match node:
        case Call(op=op, args=(x, Constant(scale), Constant(zero))) if op is DEQUANTIZE:
            return Dequantized(node, x, scale, zero)
    return None


def is_quantize(node: Node) -> bool:
    """Whether a node quantizes real numbers."""
    return isinstance(node, Call) and node.op is QUANTIZE


def same_numbers(a: Dequantized, b: Dequantized) -> bool:
    """Whether integers of the two stand for the same numbers, each element by the same scale and zero point."""
    return (
        tensor_of(a.x).dtype is tensor_of(b.x).dtype
        and a.call.attrs == b.call.attrs
        and a.is_of_one
        and b.is_of_one
        and a.scale.dtype == b.scale.dtype
        and a.scale.item() == b.scale.item()
        and a.zero.item() == b.zero.item()
    )


def with_origin(made: Node, call: Call, known: Collection[Node]) -> Node:
    """What stands for a call, as a value of the model where the call is one: what was made for it, which is all that
    is not ``known``, comes from the same nodes of the model."""
    named: dict[Node, Node] = {}
    for node in post_order(made, lambda n: n in known):
        new = node if node in known else with_inputs(node, tuple(named[n] for n in inputs(node)))
        named[node] = new if node in known or not isinstance(new, Call) else replace(new, origin=call.origin)
    result = named[made]
    if made in known or not isinstance(result, Call) or result.type is not call.type:
        return result
    return replace(result, value=call.value)


def in_float32(value: Array) -> Constant | None:
    """Numbers that were computed in float64, in float32; None if one is too large or too small to be normal there."""
    with np.errstate(all="ignore"):
        rounded = np.asarray(value).astype(np.float32)
    size = np.abs(rounded)
    usual = (value == 0) | (np.isfinite(size) & (size >= np.finfo(np.float32).tiny))
    return Constant(np.asarray(rounded)) if np.all(usual) else None
