"""SequenceMap: a subgraph for each tensor of a sequence; of known length one by one, else as a loop."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto

from ..base.errors import ModelError
from ..graph.node import Node
from . import ragged
from .equivalent_loop import as_loop
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs, graph_attribute
from .values import Growing, Listed, Ragged, SequenceValue, Value


def convert_sequence_map(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Value]:
    """Sequences go by their tensors side by side; inputs that are tensors are the same for each."""
    graph = graph_attribute(node, "body")
    given = [node.value(number) for number in range(len(node.inputs))]
    if len(graph.input) != len(given):
        raise ModelError(f"{node}: its body takes {len(graph.input)} values, it has {len(given)} inputs")
    sequences = [value for value in given if isinstance(value, (Listed, Ragged))]
    if not sequences or not isinstance(given[0], (Listed, Ragged)):
        raise ModelError(f"{node}: input 0, {node.proto.input[0]!r}, should be a sequence")
    if any(isinstance(sequence, Ragged) and sequence.mixed for sequence in sequences):
        raise node.unsupported("a sequence to which a loop has appended tensors of another rank than it had")
    if all(isinstance(sequence, Listed) for sequence in sequences):
        return _one_by_one(node, graph, given, subgraphs)
    return _as_loop(node, graph, given, sequences, subgraphs)


def _one_by_one(node: OnnxNode, graph: GraphProto, given: Sequence[Value], subgraphs: Subgraphs) -> Sequence[Value]:
    lengths = {len(value.elements) for value in given if isinstance(value, Listed)}
    if len(lengths) > 1:
        raise ModelError(f"{node}: its sequences have different lengths, {', '.join(map(str, sorted(lengths)))}")
    (length,) = lengths
    made = []
    for number in range(length):
        row = [value.elements[number] if isinstance(value, Listed) else value for value in given]
        made.append(subgraphs.results(graph, {i.name: value for i, value in zip(graph.input, row, strict=True)}))
    outputs = range(len(graph.output))
    return [Listed(tuple(_tensor(node, output, row[output]) for row in made)) for output in outputs]


def _as_loop(
    node: OnnxNode, graph: GraphProto, given: Sequence[Value], sequences: Sequence[SequenceValue], subgraphs: Subgraphs
) -> Sequence[Value]:
    """A loop that appends what the body gives for the tensors at a position of all sequences."""
    parts = [node.forms.apart(sequence) for sequence in sequences]
    wholes = [ragged.as_ragged(node, spans) for (spans,), _ in parts]
    texts = [None if utf8 is None else node.finish(utf8) for _, utf8 in parts]

    def body(number: Node, so_far: Sequence[Value]) -> Sequence[Value]:
        elements = [node.finish(ragged.element_at(node, whole, number)) for whole in wholes]
        rows = map(node.forms.joined, elements, texts)
        row = [next(rows) if isinstance(value, (Listed, Ragged)) else value for value in given]
        made = subgraphs.results(graph, {i.name: value for i, value in zip(graph.input, row, strict=True)})
        return [
            Growing((*before.added, _tensor(node, output, result)))
            for output, (before, result) in enumerate(zip(so_far, made, strict=True))
            if isinstance(before, Growing)
        ]

    length = node.shapes.stand_for([wholes[0].length], scalar=True)
    return as_loop(node, length, [Listed(()) for _ in graph.output], graph.output, body, subgraphs)


def _tensor(node: OnnxNode, output: int, result: Value) -> Node:
    if not isinstance(result, Node):
        raise node.unsupported(f"a body whose output {output} is no tensor")
    return result
