"""SequenceMap: a subgraph for each tensor of a sequence; of known length one by one, else as a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto

from ..base.errors import ModelError
from ..graph.node import Node, Var, tensor_of
from ..graph.types import TensorType, tensor_type
from ..ops.families.loop import LoopAttrs, loop_call
from . import ragged
from .carried_strings import outside_spans
from .onnx_node import OnnxNode
from .subgraphs import Subgraphs, graph_attribute
from .values import Listed, Ragged, SequenceValue, Value


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
    results = []
    for output in range(len(graph.output)):
        elements = tuple(result for row in made if isinstance(result := row[output], Node))
        if len(elements) != length:
            raise node.unsupported(f"a body whose output {output} is no tensor")
        results.append(Listed(elements))
    return results


def _as_loop(
    node: OnnxNode, graph: GraphProto, given: Sequence[Value], sequences: Sequence[SequenceValue], subgraphs: Subgraphs
) -> Sequence[Value]:
    """A loop over tensors of one shape, which are rows of one tensor."""
    forms = node.forms
    rows, texts = [], []
    for (sequence,), text in map(forms.apart, sequences):
        texts.append(None if text is None else node.finish(text))
        whole = ragged.as_ragged(node, sequence)
        if whole.shape is None:
            raise node.unsupported("a sequence of any length of tensors that may differ in shape")
        rows.append(ragged.stacked(node, whole))
    number = Var("number", tensor_type((), "int64"))
    variables = [Var(f"row{k}", TensorType(kind.shape[1:], kind.dtype)) for k, kind in enumerate(map(tensor_of, rows))]
    slices = map(forms.joined, variables, texts)
    bound: dict[str, Value] = {"": number}
    for info, value in zip(graph.input, given, strict=True):
        bound[info.name] = next(slices) if isinstance(value, (Listed, Ragged)) else value
    params = (number, *variables)
    results = subgraphs.tensor_results(node, graph, bound, params)
    made = [outside_spans(node, result, params, subgraphs) for result in results]
    function, captured = subgraphs.function(graph, params, [part for part, _ in made])
    attrs = LoopAttrs(function, sliced=(False,) * len(rows), stacked=(False,) * len(results), trips="x0_0")
    found = loop_call(attrs, None, None, (), rows, captured)[:-1]
    stacks = [ragged.of_rows(node, node.finish(stack)) for stack in found]
    return [forms.joined(stack, utf8) for stack, (_, utf8) in zip(stacks, made, strict=True)]
