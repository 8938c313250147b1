"""The types of a model's values by name, as its file and onnx's shape inference tell: what stands for values that could
not be converted has these, so that what follows is looked at too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, shape_inference

from .structure import subgraphs

MOST_ELEMENTS = 64
"""Of weights whose values inference may look at, as it does at shapes and axes; larger ones are left out, since a model
of more than 2 GB cannot be handed to it."""


def inferred_types(model: ModelProto, shapes: Mapping[str, Sequence[int | None]]) -> dict[str, TypeProto]:
    """The types of values in the graph and its subgraphs, of a model with inputs of these shapes, None for extents that
    stay as they are declared. A name that has two types has none here."""
    light = _without_weights(model)
    for value in light.graph.input:
        _set_shape(value, shapes.get(value.name, ()))
    try:
        found = shape_inference.infer_shapes(light, strict_mode=False, data_prop=True)
    except Exception:  # of models that are refused it may raise anything: then the file alone tells
        found = light
    types: dict[str, TypeProto | None] = {}
    for value in _declared(found.graph):
        known = types.setdefault(value.name, value.type)
        if known is not None and known != value.type:
            types[value.name] = None
    return {name: kind for name, kind in types.items() if kind is not None}


def _declared(graph: GraphProto) -> Iterator[ValueInfoProto]:
    yield from graph.value_info
    yield from graph.output
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _declared(inner)


def _set_shape(value: ValueInfoProto, shape: Sequence[int | None]) -> None:
    dims = value.type.tensor_type.shape.dim
    for dim, extent in zip(dims, shape, strict=False):
        if extent is not None:
            dim.dim_value = extent


def _without_weights(model: ModelProto) -> ModelProto:
    light = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph, source = light.graph, model.graph
    graph.name = source.name
    graph.node.extend(source.node)
    graph.input.extend(source.input)
    graph.output.extend(source.output)
    graph.value_info.extend(source.value_info)
    graph.initializer.extend(map(_light, source.initializer))
    for node in _all_nodes([*graph.node, *(node for function in light.functions for node in function.node)]):
        _lighten(node)
    return light


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from _all_nodes(graph.node)


def _lighten(node: NodeProto) -> None:
    """Leave large tensors out of a node's attributes, and of the graphs in them."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            attribute.t.CopyFrom(_light(attribute.t))
    for graph in subgraphs(node):
        stored = [_light(tensor) for tensor in graph.initializer]
        del graph.initializer[:]
        graph.initializer.extend(stored)


def _light(tensor: TensorProto) -> TensorProto:
    """The tensor, if it is small; else one of its type, whose elements would be in a file that nobody reads."""
    count = 1
    for extent in tensor.dims:
        count *= max(extent, 0)
    if count <= MOST_ELEMENTS and tensor.data_location != TensorProto.EXTERNAL:
        return tensor
    bare = TensorProto(
        name=tensor.name, dims=tensor.dims, data_type=tensor.data_type, data_location=TensorProto.EXTERNAL
    )
    bare.external_data.add(key="location", value="weights")
    return bare
