"""The files beside a model's own in which it has data: what a cache of models has to look at as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from .stored_weights import parse_without_weights


def external_files(path: Path) -> tuple[str, ...]:
    """The locations that tensors of a model name, each once, relative to its folder; none for what is no model."""
    own = path.resolve().name  # large weights look like external data in the model's own file
    try:
        model = parse_without_weights(path) or ModelProto.FromString(path.read_bytes())
    except (OSError, DecodeError):
        return ()
    nodes = (node for function in model.functions for node in function.node)
    tensors = [*_tensors_of_graph(model.graph), *(tensor for node in nodes for tensor in _tensors_of(node))]
    external = (tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)
    found = dict.fromkeys(e.value for tensor in external for e in tensor.external_data if e.key == "location")
    return tuple(location for location in found if location != own)


def _tensors_of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from _tensors_of(node)


def _tensors_of(node: NodeProto) -> Iterator[TensorProto]:
    for attribute in node.attribute:
        yield attribute.t
        yield from attribute.tensors
        yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
        for graph in (attribute.g, *attribute.graphs):
            yield from _tensors_of_graph(graph)
