"""The layouts of values in memory, and as calls take them, while the layouts of a graph are planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ...graph.layout import Layout
from ...graph.node import Call, Constant, Node, Var, tensor_of
from ...graph.types import TensorType
from ...ir.constants import ONE
from ...ops.definition.layout_rule import Packed, ValueLayout
from ...ops.families.layout_transform import layout_transform
from ...ops.families.transpose import TRANSPOSE, transpose

ResultLayout: TypeAlias = ValueLayout | None
"""The layout of a value; None: as the graph has it."""
OperandLayout: TypeAlias = ValueLayout | Packed | None
"""How a value is passed to a call; only a constant can be packed."""


def placeholder(node: Node, layout: OperandLayout) -> Node:
    """A variable of the type that a value has in a layout. A value that stays as it is stands for itself, so that the
    elements of a constant may be looked at."""
    match layout:
        case None:
            return node
        case Packed():
            return Var("x", layout.type)
        case ValueLayout():
            return Var("x", layout.type_of(tensor_of(node)))


def placeholder_of_rank(node: Node, layout: ResultLayout, rank: int) -> Node:
    """A ``placeholder`` with leading axes of extent 1 where the value has fewer than ``rank``."""
    kind = tensor_of(node)
    missing = rank - kind.ndim
    if layout is None and missing:
        return Var("x", TensorType((*(ONE,) * missing, *kind.shape), kind.dtype))
    return placeholder(node, layout)


def transforms_between(source: ResultLayout, destination: ResultLayout) -> Iterator[tuple[Layout, Layout]]:
    """The transforms that bring a value from one layout to another: one, unless the axes have different names."""
    if source is not None and destination is not None and source.primal is destination.primal:
        yield source.layout, destination.layout
        return
    if source is not None and source.layout is not source.primal:
        yield source.layout, source.primal
    if destination is not None and destination.layout is not destination.primal:
        yield destination.primal, destination.layout


def transform(node: Node, source: Layout, destination: Layout) -> Node:
    """A value in another layout: transposed, where neither has blocks, and transposes of transposes are one."""
    if source.is_blocked or destination.is_blocked or isinstance(node, Constant):
        return layout_transform(node, source, destination)
    axes = [source.position(name) for name in destination.names]
    if isinstance(node, Call) and node.op is TRANSPOSE:
        axes = [node.attrs.axes[axis] for axis in axes]
        node = node.args[0]
    return node if axes == sorted(axes) else transpose(node, axes)
