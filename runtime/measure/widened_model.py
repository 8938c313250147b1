"""ONNX models with all floats made float64: evaluated so, a model tells whose error a difference of two others is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, numpy_helper

from ...base.errors import ModelError
from ..arrays import Array
from .onnx_reference import onnx_evaluator, onnxruntime_installed, onnxruntime_session

NARROW = frozenset((TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16))
TYPE_ATTRIBUTES = frozenset(("to", "dtype", "output_dtype", "softmax_precision"))
"""Attributes that name the type of a result, or of what is computed on the way."""


def exact_outputs(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs of a model in float64: by onnxruntime where that is installed and has the kernels, else by the
    evaluator of the package onnx, which is slow.

    Raises ``ModelError`` where neither can.
    """
    wide = widened(model)
    given = {name: array.astype(np.float64) if _is_narrow(array) else array for name, array in inputs.items()}
    try:
        if onnxruntime_installed():
            found = onnxruntime_session(wide.SerializeToString()).run(None, given)
            return [np.asarray(output) for output in found]
    except Exception:  # it has no such kernel: the evaluator has all
        pass
    try:
        return [np.asarray(output) for output in onnx_evaluator(wide).run(None, given)]
    except Exception as error:  # whatever it is, it is not ours
        raise ModelError(f"the model cannot be evaluated in float64: {error}") from error


def widened(model: ModelProto) -> ModelProto:
    """The model with float64 in place of float32, float16 and bfloat16: of inputs, constants, and casts."""
    made = ModelProto()
    made.CopyFrom(model)
    _widen_graph(made.graph)
    for function in made.functions:
        _widen_nodes(function.node)
        _widen_attributes(function.attribute_proto)
    return made


def _is_narrow(array: Array) -> bool:
    return onnx.helper.np_dtype_to_tensor_dtype(array.dtype) in NARROW


def _widen_graph(graph: GraphProto) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        _widen_type(value.type)
    _widen_nodes(graph.node)


def _widen_nodes(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        _widen_attributes(node.attribute)


def _widen_attributes(attributes: Iterable[AttributeProto]) -> None:
    for attribute in attributes:
        if attribute.name in TYPE_ATTRIBUTES and attribute.i in NARROW:
            attribute.i = TensorProto.DOUBLE
        elif attribute.name in ("value_float", "value_floats"):  # of Constant, whose result is float32
            values = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            attribute.CopyFrom(onnx.helper.make_attribute("value", _wide_tensor(np.asarray(values), "")))
        elif attribute.HasField("t"):
            _widen_tensor(attribute.t)
        elif attribute.HasField("g"):
            _widen_graph(attribute.g)
        for graph in attribute.graphs:
            _widen_graph(graph)


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type in NARROW:
        tensor.CopyFrom(_wide_tensor(numpy_helper.to_array(tensor), tensor.name))


def _wide_tensor(values: Any, name: str) -> TensorProto:
    return numpy_helper.from_array(np.asarray(values).astype(np.float64), name)


def _widen_type(kind: TypeProto) -> None:
    if kind.tensor_type.elem_type in NARROW:
        kind.tensor_type.elem_type = TensorProto.DOUBLE
