"""What depends on constants alone is computed once, when the model is compiled: by a compiled model of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...graph.node import Call, Constant, Function, Node, Tuple, TupleGet, tensor_of
from ...graph.types import TensorType
from ...graph.visit import inputs, post_order, with_inputs
from ...ops.definition.registry import Op, OpPattern
from ..symbols import births_of
from .effects import has_effect

Evaluate: TypeAlias = Callable[[Function], Sequence[npt.NDArray[Any]]]
"""Compiles a function without parameters, and gives its results; the runtime is handed in, as the compiler has none."""

MAX_GROWTH = 1 << 20
"""A constant that is larger than what it is made of, by more bytes than this, is left to be computed where that costs
nothing."""
MAX_TABLES = 1 << 28
"""So many bytes may all others be larger together."""
MAX_STEPS = 1 << 30
"""What is made of a value of more elements is left too, though it may be small itself, as the sum of a range is."""
_CHEAP = frozenset(
    {"add", "subtract", "multiply", "negative", "abs", "maximum", "minimum", "equal", "not_equal", "less", "less_equal"}
    | {"greater", "greater_equal", "logical_and", "logical_or", "logical_not", "where", "cast", "identity", "full"}
    | {"arange", "broadcast_to", "expand_dims", "squeeze", "reshape"}
)
"""What a loop that reads the result computes sooner than it would read it."""


def fold_constants(function: Function, evaluate: Evaluate) -> Function:
    """The function with a constant in place of each value that no parameter has a part in."""
    constant: set[Node] = set()
    births = births_of(function)
    for node in post_order(function.body):
        match node:
            case Constant():
                constant.add(node)
            case Call() if has_effect(node):
                pass  # what it calls is known when an engine loads the model, and segments are those of a run
            case Call() if births.get(node):
                pass  # its extents become numbers when what it is given is a constant
            case Call() | Tuple() | TupleGet() if inputs(node) and constant.issuperset(inputs(node)):
                constant.add(node)
            case Call(args=()):
                constant.add(node)
            case _:
                pass
    wanted = [node for node in _frontier(function, constant) if node not in births]
    if not wanted:
        return function
    values = evaluate(Function((), Tuple(tuple(wanted)), f"{function.name}_constants"))
    done: dict[Node, Node] = {node: Constant(np.asarray(value)) for node, value in zip(wanted, values, strict=True)}
    for node in post_order(
        function.body, frozenset(wanted).__contains__
    ):  # not below these: one may be made of another
        if node not in done:
            done[node] = with_inputs(node, tuple(done[n] for n in inputs(node)))
    return replace(function, body=done[function.body])


def _frontier(function: Function, constant: set[Node]) -> list[Node]:
    """The constant calls, tensors each, that something not constant reads, or that are results."""
    found: dict[Node, None] = {}
    order = post_order(function.body)
    readers = [(n, inputs(n)) for n in order if n not in constant]
    growth = 0.0
    for reader, node in [*((reader, node) for reader, used in readers for node in used), (None, function.body)]:
        for tensor in _tensors(node):
            if tensor in found or tensor not in constant or isinstance(tensor, Constant):
                continue
            more = _growth(tensor)
            if more > MAX_GROWTH and (growth + more > MAX_TABLES or (_is_cheap(tensor) and _computes_along(reader))):
                continue
            growth += more if more > MAX_GROWTH else 0
            found[tensor] = None
    return list(found)


def _tensors(node: Node) -> list[Node]:
    if isinstance(node, Tuple):
        return [tensor for field in node.fields for tensor in _tensors(field)]
    return [node] if isinstance(node.type, TensorType) else []


def _growth(node: Node) -> float:
    """How many bytes a value is larger than what it is made of; infinite where it takes too many steps."""
    nodes = post_order(node)
    if any(_elements(tensor) > MAX_STEPS for n in nodes for tensor in _tensors(n)):
        return math.inf
    sources = sum(n.value.nbytes for n in nodes if isinstance(n, Constant))
    return _elements(node) * tensor_of(node).dtype.storage_bytes - sources


def _elements(tensor: Node) -> float:
    """Infinite where an extent is open."""
    shape = tensor_of(tensor).static_shape
    return math.inf if shape is None else math.prod(shape)


def _is_cheap(node: Node) -> bool:
    return all(n.op.name in _CHEAP for n in post_order(node) if isinstance(n, Call))


def _computes_along(reader: Node | None) -> bool:
    """Whether a reader, None for who reads the result of the function, can have what it reads computed in its loop."""
    return not isinstance(reader, Call) or (isinstance(reader.op, Op) and reader.op.pattern <= OpPattern.INJECTIVE)
