"""Choosing between elements: where, and clip with bounds that are tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import te
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...te.broadcasting import read_broadcast
from ...te.tensor import Tensors
from ..definition.layout_rule import same_layout
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import broadcast_shapes, same_dtype, tensor_argument
from ..definition.strategy import register_compute
from .binary import maximum, minimum

GROUP = OpGroup.ELEMENTWISE

NAMES = ("condition", "a", "b")


def _relation(types: Sequence[Type], attrs: Any) -> Type:
    condition, a, b = (tensor_argument(t, n) for t, n in zip(types, NAMES, strict=True))
    if not condition.dtype.is_bool:
        raise TypeInferenceError(f"condition must be bool, found {condition.dtype}")
    same_dtype((a, b), NAMES[1:])
    return TensorType(broadcast_shapes((condition.shape, a.shape, b.shape), ("condition", "a", "b")), a.dtype)


def _compute(attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
    return te.compute(
        tensor_argument(result, "result").shape,
        lambda *i: te.select(*(read_broadcast(tensor, i) for tensor in inputs)),
        name="where",
    )


WHERE = register_op(
    "where",
    "a where the condition holds, else b, elementwise with broadcasting",
    [("condition", "bool, any shape that broadcasts"), ("a", "where it holds"), ("b", "where it does not")],
    _relation,
    OpPattern.BROADCAST,
    support_level=3,
    layout_rule=same_layout,
)
register_compute(WHERE, _compute)


def where(condition: Node, a: Node, b: Node) -> Call:
    """``a`` where the condition holds, else ``b``, elementwise with broadcasting."""
    return WHERE(condition, a, b)


def clip_by(x: Node, low: Node | None = None, high: Node | None = None) -> Node:
    """``x`` held between bounds that are tensors, as a rule of rank 0; each is optional. ``high`` where they cross.

    Bounds that are known numbers: see ``parametric.clip``.
    """
    raised = x if low is None else maximum(x, low)
    return raised if high is None else minimum(raised, high)
