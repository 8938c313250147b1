"""Checks of the types that a model's file declares: element types, and sizes before memory is used for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from onnx import GraphProto, TensorProto, ValueInfoProto

from .tensors import check_size, declared_extent, element_type


def type_checks(graph: GraphProto) -> Iterator[Callable[[], None]]:
    """Checks that raise ``ModelError``, each of one weight or value."""
    yield from (partial(_check_weight, tensor) for tensor in graph.initializer)
    yield from (partial(_check_value, value, "input") for value in graph.input)
    yield from (partial(_check_value, value, "value") for value in (*graph.output, *graph.value_info))


def _check_weight(tensor: TensorProto) -> None:
    where = f"initializer {tensor.name!r}"
    if tensor.data_type != TensorProto.STRING:
        check_size(tensor.dims, element_type(tensor.data_type, where), where)


def _check_value(value: ValueInfoProto, what: str) -> None:
    kind = value.type.tensor_type
    if value.type.HasField("tensor_type") and kind.elem_type not in (TensorProto.UNDEFINED, TensorProto.STRING):
        where = f"{what} {value.name!r}"
        extents = [extent for dim in kind.shape.dim if isinstance(extent := declared_extent(dim), int)]
        check_size(extents, element_type(kind.elem_type, where), where)
