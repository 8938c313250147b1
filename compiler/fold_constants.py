"""What depends on constants alone is computed once, when the model is compiled: by a compiled model of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..graph.node import Call, Constant, Function, Node, Tuple, TupleGet
from ..graph.types import TensorType
from ..graph.visit import inputs, post_order, rewrite
from ..ops.extern import EXTERN

Evaluate: TypeAlias = Callable[[Function], Sequence[npt.NDArray[Any]]]
"""Compiles a function without parameters, and gives its results; the runtime is handed in, as the compiler has none."""

MAX_GROWTH = 1 << 20
"""A constant that is larger than what it is made of, by more bytes than this, is left to be computed."""


def fold_constants(function: Function, evaluate: Evaluate) -> Function:
    """The function with a constant in place of each value that no parameter has a part in."""
    constant: set[Node] = set()
    for node in post_order(function.body):
        match node:
            case Constant():
                constant.add(node)
            case Call(op=op) if op is EXTERN:
                pass  # what it calls is known when an engine loads the model
            case Call() | Tuple() | TupleGet() if inputs(node) and constant.issuperset(inputs(node)):
                constant.add(node)
            case Call(args=()):
                constant.add(node)
            case _:
                pass
    wanted = _frontier(function, constant)
    if not wanted:
        return function
    values = evaluate(Function((), Tuple(tuple(wanted)), f"{function.name}_constants"))
    folded: dict[Node, Node] = {node: Constant(np.asarray(value)) for node, value in zip(wanted, values, strict=True)}
    # `rewrite` gives rebuilt nodes to its function; a constant part is not rebuilt, for nothing below it changes.
    body = rewrite(function.body, folded.get)
    return replace(function, body=body)


def _frontier(function: Function, constant: set[Node]) -> list[Node]:
    """The constant calls, tensors each, that something not constant reads, or that are results."""
    found: dict[Node, None] = {}
    order = post_order(function.body)
    readers: list[tuple[Node, ...]] = [inputs(n) for n in order if n not in constant]
    for node in (*(n for used in readers for n in used), function.body):
        for tensor in _tensors(node):
            if tensor in constant and not isinstance(tensor, Constant) and _worth_keeping(tensor):
                found[tensor] = None
    return list(found)


def _tensors(node: Node) -> list[Node]:
    if isinstance(node, Tuple):
        return [tensor for field in node.fields for tensor in _tensors(field)]
    return [node] if isinstance(node.type, TensorType) else []


def _worth_keeping(node: Node) -> bool:
    assert isinstance(node.type, TensorType)
    sources = sum(n.value.nbytes for n in post_order(node) if isinstance(n, Constant))
    shape = node.type.static_shape
    return (
        shape is not None
        and int(np.prod(shape, dtype=np.int64)) * node.type.dtype.storage_bytes <= sources + MAX_GROWTH
    )
