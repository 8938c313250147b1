"""Operators of onnxruntime that are as ONNX's own of the same name, or of another, in some version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ....graph.node import Constant, Node
from ....ops.families import reduce
from ....ops.families.binary import add, maximum, multiply, subtract
from ....ops.families.matmul.matmul import dense
from ....ops.families.transpose import transpose
from ....ops.families.unary import sqrt
from ....ops.families.unique import unique
from ...onnx_node import OnnxNode
from ...registry import Converter, find_converter
from ...values import Value
from .. import creation, indexing, quantization, resize, shape  # noqa: F401  their converters serve here
from ..linear import scaled
from .entering import contrib

_SAME = [
    ("DequantizeLinear", "DequantizeLinear", 19, "axis", 3),
    ("ExpandDims", "Unsqueeze", 13, "", 2),
    ("GatherND", "GatherND", 11, "", 2),
    ("GridSample", "GridSample", 16, "align_corners mode padding_mode", 2),
    ("Pad", "Pad", 11, "mode", 3),
    ("QuantizeLinear", "QuantizeLinear", 19, "axis", 3),
    ("Trilu", "Trilu", 14, "upper", 2),
]
"""Names here and there, the version there, attributes, and the number of inputs."""


def _standard(name: str, version: int) -> Converter:
    found = find_converter("", name, version)
    assert found is not None
    return found


for _name, _other, _version, _attributes, _inputs in _SAME:
    contrib(_name, _attributes, inputs=_inputs)(_standard(_other, _version))


@contrib("Range", inputs=3)
def _range(node: OnnxNode) -> Value | Sequence[Value | None] | None:
    """The step is 1 where it is left out."""
    step = node.get(2)
    if step is None:
        step = Constant(np.ones((), node.type().dtype.to_numpy()))
    return _standard("Range", 11)(replace(node, inputs=(node[0], node[1], step)))


@contrib("Unique", inputs=1)
def _unique(node: OnnxNode) -> Sequence[Node]:
    """The elements in the order in which they first occur, which of them each is, and how often each occurs."""
    elements, _, positions, counts = unique(node[0], None, False)
    return elements, positions, counts


@contrib("CDist", "metric", inputs=2)
def _cdist(node: OnnxNode) -> Node:
    """The distances of the rows of two matrices, |a|² - 2·a·b + |b|² or its root, as onnxruntime computes them, too."""
    metrics: dict[str, Callable[[Node], Node]] = {"sqeuclidean": lambda squares: squares, "euclidean": sqrt}
    metric = node.string("metric", "sqeuclidean")
    if metric not in metrics:
        raise node.unsupported(f"the metric {metric!r}")
    a, b = node[0], node[1]
    of_a, of_b = (reduce.sum(multiply(x, x), 1, keepdims=True) for x in (a, b))
    squares = add(subtract(of_a, scaled(dense(a, b), 2.0)), transpose(of_b))
    return metrics[metric](maximum(squares, Constant(np.zeros((), node.type().dtype.to_numpy()))))
