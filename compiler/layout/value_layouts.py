"""The layouts of values in memory, and as calls take them, while the layouts of a graph are planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from ...base.errors import InternalError
from ...graph.layout import Layout, rearranged
from ...graph.node import Call, Constant, Node, Var, tensor_of
from ...graph.types import TensorType
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ops.definition.layout_rule import Filling, Packed, ValueLayout
from ...ops.families.layout_transform import layout_transform
from ...ops.families.select import where
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


def transforms_between(
    value: Node, source: ResultLayout, destination: ResultLayout
) -> Iterator[Callable[[Node], Node]]:
    """The transforms that bring a value of the graph from one layout to another: one, unless the axes have different
    names, or blocks are filled up in one of the two only."""
    if source == destination:
        return
    filled = any(layout is not None and layout.filling is not None for layout in (source, destination))
    if source is not None and destination is not None and source.primal is destination.primal and not filled:
        yield partial(_transform, source=source.layout, destination=destination.layout)
        return
    if source is not None and destination == replace(source, filling=Filling.ZEROS):
        yield partial(_zeroed, layout=source, kind=tensor_of(value))
        return
    if source is not None and source.layout is not source.primal:
        extent = 0 if source.filling is None else _blocked_extent(source.layout, source.extents(tensor_of(value)))
        yield partial(_transform, source=source.layout, destination=source.primal, extent=extent)
    if destination is not None and destination.layout is not destination.primal:
        extent = 0
        if destination.filling is Filling.ANY:
            yield partial(_filled, layout=destination)
        elif destination.filling is Filling.ZEROS:
            extent = _blocked_extent(
                destination.layout, destination.layout.filled(destination.extents(tensor_of(value)))
            )
        yield partial(_transform, source=destination.primal, destination=destination.layout, extent=extent)


def _blocked_extent(layout: Layout, extents: Mapping[str, Expr]) -> int:
    """How many elements the only axis in blocks has."""
    (extent,) = (extent for name, extent in extents.items() if layout.factor(name) > 1)
    return const_int(extent) or 0


def _filled(node: Node, layout: ValueLayout) -> Node:
    """A constant whose axes go on to whole blocks: the last elements again, so that nothing is computed of them which
    is not computed of others."""
    if not isinstance(node, Constant):
        raise InternalError(f"{layout} fills constants up, and {node} is none")
    extents = layout.layout.filled(layout.extents(tensor_of(node)))
    counts = [(0, (const_int(extents[name]) or 0) - have) for name, have in zip(extents, node.value.shape, strict=True)]
    return Constant(np.pad(node.value, counts, "edge"), node.name)


def _zeroed(node: Node, layout: ValueLayout, kind: TensorType) -> Node:
    """What is filled up with anything, filled with zeros: it stays where it is, and what computes it may do that."""
    extents = {name: const_int(own) or 0 for name, own in layout.extents(kind).items()}
    blocked = [extents[name] if layout.layout.factor(name) > 1 else 1 for name in layout.primal.names]
    more = [(0, -own % layout.layout.factor(name)) for name, own in zip(layout.primal.names, blocked, strict=True)]
    inside = rearranged(np.pad(np.ones(blocked, np.bool_), more), layout.primal, layout.layout)
    return where(Constant(inside), node, Constant(np.zeros((), kind.dtype.to_numpy())))


def _transform(node: Node, source: Layout, destination: Layout, extent: int = 0) -> Node:
    """A value in another layout: transposed, where neither has blocks, and transposes of transposes are one."""
    if source.is_blocked or destination.is_blocked or isinstance(node, Constant):
        return layout_transform(node, source, destination, extent)
    axes = [source.position(name) for name in destination.names]
    if isinstance(node, Call) and node.op is TRANSPOSE:
        axes = [node.attrs.axes[axis] for axis in axes]
        node = node.args[0]
    return node if axes == sorted(axes) else transpose(node, axes)
