"""Which extents of a model's inputs its weights ask for: channels of a convolution, rows of a matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from onnx import GraphProto, NodeProto

Axes = tuple[int | None, ...]
"""For each axis of a value the axis of the input that it is; None if it is none of them."""
Weights = Mapping[str, Sequence[int]]

_SAME_SHAPE = frozenset(
    {"Identity", "Cast", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "Sqrt", "Abs", "Neg"}
    | {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"}
)
_WITH_CONSTANT = frozenset({"Add", "Sub", "Mul", "Div"})


def weight_extents(graph: GraphProto, ranks: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """The extents of the inputs' axes, by the names of inputs, as far as the first operators with weights that read
    them tell. ``ranks`` are those of the inputs."""
    weights = _weights(graph)
    readers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in dict.fromkeys(node.input):
            readers[name].append(node)
    return {name: _asked(name, tuple(range(rank)), readers, weights) for name, rank in ranks.items()}


def _weights(graph: GraphProto) -> dict[str, Sequence[int]]:
    found: dict[str, Sequence[int]] = {i.name: tuple(i.dims) for i in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            found.update((node.output[0], tuple(a.t.dims)) for a in node.attribute if a.name == "value")
    return found


def _asked(name: str, axes: Axes, readers: Mapping[str, Sequence[NodeProto]], weights: Weights) -> dict[int, int]:
    found: dict[int, int] = {}
    waiting, seen = [(name, axes)], {name}
    while waiting:
        value, known = waiting.pop()
        for node in readers.get(value, ()):
            for axis, extent in _asked_by(node, value, weights):
                if -len(known) <= axis < len(known) and (source := known[axis]) is not None:
                    found.setdefault(source, extent)
            handed_on = _handed_on(node, value, known, weights)
            if handed_on is not None and node.output[0] not in seen:
                seen.add(node.output[0])
                waiting.append((node.output[0], handed_on))
    return found


def _asked_by(node: NodeProto, value: str, weights: Weights) -> Iterator[tuple[int, int]]:
    """Axes of the first input of a node, and the extents that its weights give them."""
    if not node.input or node.input[0] != value:
        return
    attributes = {a.name: a.i for a in node.attribute}
    weight = weights.get(node.input[3 if node.op_type.startswith("QLinear") else 1], ()) if len(node.input) > 1 else ()
    match node.op_type:
        case "Conv" | "ConvInteger" | "QLinearConv" if len(weight) > 1:
            yield 1, weight[1] * attributes.get("group", 1)
        case "ConvTranspose" | "BatchNormalization" | "InstanceNormalization" if weight:
            yield 1, weight[0]
        case "Gemm" if len(weight) == 2:
            yield 0 if attributes.get("transA") else 1, weight[1 if attributes.get("transB") else 0]
        case "MatMul" | "MatMulInteger" | "QLinearMatMul" if weight:
            yield -1, weight[-2] if len(weight) > 1 else weight[0]
        case "LSTM" | "GRU" | "RNN" if len(weight) == 3:
            yield 2, weight[2]


def _handed_on(node: NodeProto, value: str, axes: Axes, weights: Weights) -> Axes | None:
    """The axes of a node's result, where its elements are those of the value, in some order."""
    if node.op_type in _SAME_SHAPE and node.input[0] == value:
        return axes
    if node.op_type in _WITH_CONSTANT:
        others = [weights.get(name) for name in node.input if name != value]
        return axes if all(other is not None and len(other) <= len(axes) for other in others) else None
    if node.op_type == "Transpose":
        order = next((tuple(a.ints) for a in node.attribute if a.name == "perm"), tuple(reversed(range(len(axes)))))
        return tuple(axes[k] for k in order) if sorted(order) == list(range(len(axes))) else None
    return None
