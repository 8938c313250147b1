"""ONNX's reductions. Axes were an attribute first, and became an input in version 18 (for ReduceSum in 13); only a run
may know it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType

from ...graph.node import Constant, Node, tensor_of
from ...ops.families import argreduce, reduce
from ...ops.families.cumsum import cumprod, cumsum
from ...ops.families.topk import topk
from ..integers import as_vector
from ..onnx_node import OnnxNode
from ..registry import converter, register
from . import run_time_axes

Reduction = Callable[[Node, Sequence[int] | None, bool], Node]


def _by_attribute(make: Reduction) -> Callable[[OnnxNode], Node]:
    return lambda node: make(node[0], node.ints("axes") or None, node.flag("keepdims", True))


def _by_input(make: Reduction) -> Callable[[OnnxNode], Node]:
    def convert(node: OnnxNode) -> Node:
        if not isinstance(node.get(1), (Constant, NoneType)) and tensor_of(node[1]).static_shape != (0,):
            return run_time_axes.reduced(node, make)
        axes = node.constant_ints(1, "axes") or None if isinstance(node.get(1), Constant) else None
        if axes is None and node.flag("noop_with_empty_axes"):
            axes = ()
        return make(node[0], axes, node.flag("keepdims", True))

    return convert


_TABLE: dict[str, tuple[Reduction, tuple[int, ...], tuple[int, ...]]] = {
    "ReduceL1": (reduce.l1, (1, 11, 13), (18,)),
    "ReduceL2": (reduce.l2, (1, 11, 13), (18,)),
    "ReduceLogSum": (reduce.log_sum, (1, 11, 13), (18, 28)),
    "ReduceLogSumExp": (reduce.log_sum_exp, (1, 11, 13), (18, 28)),
    "ReduceMax": (reduce.max, (1, 11, 12, 13), (18, 20)),
    "ReduceMean": (reduce.mean, (1, 11, 13), (18,)),
    "ReduceMin": (reduce.min, (1, 11, 12, 13), (18, 20)),
    "ReduceProd": (reduce.prod, (1, 11, 13), (18,)),
    "ReduceSum": (reduce.sum, (1, 11), (13,)),
    "ReduceSumSquare": (reduce.sum_square, (1, 11, 13), (18,)),
}
for _name, (_make, _old, _new) in _TABLE.items():
    register(_name, _old, _by_attribute(_make))
    register(_name, _new, _by_input(_make))


@converter("ArgMax", 1, 11, 12, 13)
def _argmax(node: OnnxNode) -> Node:
    last = node.flag("select_last_index")
    return argreduce.argmax(node[0], node.integer("axis", 0), node.flag("keepdims", True), last)


@converter("ArgMin", 1, 11, 12, 13)
def _argmin(node: OnnxNode) -> Node:
    last = node.flag("select_last_index")
    return argreduce.argmin(node[0], node.integer("axis", 0), node.flag("keepdims", True), last)


@converter("CumSum", 11, 14)
def _cumsum(node: OnnxNode) -> Node:
    return _accumulated(node, cumsum)


@converter("CumProd", 26)
def _cumprod(node: OnnxNode) -> Node:
    return _accumulated(node, cumprod)


def _accumulated(node: OnnxNode, make: Callable[[Node, int, bool, bool], Node]) -> Node:
    if not isinstance(node[1], Constant):
        return run_time_axes.accumulated(node, make)
    axis = node.constant_int(1, "axis")
    return make(node[0], 0 if axis is None else axis, node.flag("exclusive"), node.flag("reverse"))


@converter("TopK", 1)
def _topk_1(node: OnnxNode) -> Sequence[Node]:
    """The number is an attribute, and the largest are looked for."""
    return topk(node[0], node.integer("k"), node.integer("axis", -1))


@converter("TopK", 10, 11, 24)
def _topk(node: OnnxNode) -> Sequence[Node]:
    """They come in order whatever ``sorted`` says, which then allows any."""
    (k,) = node.extents_of(as_vector(node[1], 1), "k")
    return topk(node[0], k, node.integer("axis", -1), node.flag("largest", True), node.shapes.inputs)
