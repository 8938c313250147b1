"""ONNX's operators whose result is known from attributes and shapes: Constant, Shape, Range and their like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from ...base.dtype import dtype
from ...base.errors import ModelError
from ...graph.node import Call, Constant, Node
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index, maximum
from ...ir.simplify import simplify
from ...ops.families.binary import add, equal, multiply
from ...ops.families.cast import cast
from ...ops.families.creation import FullAttrs, arange, arange_extent, full
from ...ops.families.open_extents import extents, positions
from ...ops.families.repeat import BroadcastToAttrs, broadcast_to_extents
from ...ops.families.reshape import expand_dims
from ..integers import as_vector
from ..onnx_node import OnnxNode
from ..refusal_causes import UnknownValueError
from ..registry import converter
from ..tensors import check_size, element_type
from . import run_time_operands

RANGE = ("start", "limit", "delta")


@converter("Constant", 1, 9, 11, 12, 13, 19, 21, 23, 24, 25)
def _constant(node: OnnxNode) -> Node:
    """Exactly one attribute has the value; sparse tensors are not supported."""
    if len(node.attributes) != 1:
        raise ModelError(f"{node}: a constant has one attribute, found {sorted(node.attributes) or 'none'}")
    (name,) = node.attributes
    value: Any
    match name:
        case "value":
            value = node.tensor("value")
        case "value_float":
            value = np.float32(node.real(name))
        case "value_int":
            value = np.int64(node.integer(name))
        case "value_floats":
            value = np.asarray(node.floats(name), np.float32)
        case "value_ints":
            value = np.asarray(node.ints(name), np.int64)
        case "value_string":
            return _strings(node, [], [node.string(name)])
        case "value_strings":
            texts = node.strings(name)
            return _strings(node, [len(texts)], texts)
        case _:
            raise node.unsupported(f"attribute {name}")
    return Constant(np.asarray(value), node.proto.output[0])


def _strings(node: OnnxNode, shape: Sequence[int], texts: Sequence[str]) -> Node:
    data = np.array([text.encode() for text in texts], object)
    return node.forms.constant(helper.make_tensor(node.proto.output[0], TensorProto.STRING, shape, data))


@converter("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def _constant_of_shape(node: OnnxNode) -> Node:
    value = node.tensor("value")
    if value is None:
        value = np.zeros(1, np.float32)
    if value.size != 1:
        raise ModelError(f"{node}: the value must be one element, found {value.size}")
    shape = node.extents_of(as_vector(node[0]), "the shape")
    return filled(node, shape, value.reshape(()))


def filled(node: OnnxNode, shape: Sequence[int | Expr], value: npt.NDArray[Any]) -> Node:
    """A tensor all of whose elements are one scalar, of extents of which some may be open."""
    kind = dtype(value.dtype)
    numbers = [number for extent in shape if (number := const_int(as_index(extent))) is not None]
    check_size(numbers, kind, f"the result of {node}")
    if len(numbers) == len(shape):
        return full(numbers, value.item(), kind)
    return broadcast_to_extents(Constant(value), shape, node.shapes.inputs)


def value_everywhere(x: Node) -> bool | int | float | None:
    """The one value that all elements of what ``filled`` made have; None of other tensors."""
    if isinstance(x, Constant):
        return x.value.item() if x.value.size == 1 else None
    if isinstance(x, Call) and isinstance(x.attrs, FullAttrs):
        return x.attrs.value
    if isinstance(x, Call) and isinstance(x.attrs, BroadcastToAttrs):
        return value_everywhere(x.args[0])
    return None


@converter("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
def _shape(node: OnnxNode) -> Node:
    shape = node.type().shape[node.integer("start", 0) : node.integer("end") if node.has("end") else None]
    return node.shapes.stand_for(shape)


@converter("Size", 1, 13, 19, 21, 23, 24, 25)
def _size(node: OnnxNode) -> Node:
    return node.shapes.stand_for([math.prod(node.type().shape, start=ONE)], scalar=True)


@converter("Range", 11, 27)
def _range(node: OnnxNode) -> Node:
    if not all(isinstance(node[k], Constant) for k in range(3)):
        bounds = [node.shapes.whole(node[k]) for k in range(3)]
        start, limit, delta = (None if known is None else known.item() for known in bounds)
        if start is None or limit is None or not isinstance(delta, int):
            return run_time_operands.ranged(node)
        return _open_range(node, start, limit, delta)
    values = [node.constant(k, name) for k, name in enumerate(RANGE)]
    start, limit, delta = (v.reshape(-1)[0].item() for v in values if v is not None)
    if delta and all(map(math.isfinite, (start, limit, delta))):
        check_size((arange_extent(start, limit, delta),), node.type().dtype, f"the result of {node}")
    return arange(start, limit, delta, node.type().dtype)


def _open_range(node: OnnxNode, start: int | Expr, limit: int | Expr, delta: int | Expr) -> Node:
    """Numbers between two that are computed from open extents."""
    if not isinstance(delta, int) or delta == 0:
        raise UnknownValueError(
            f"{node}: the step {delta} of a range must be known when the model is compiled, and not be 0"
        )
    of, kind = node.shapes.inputs, str(node.type().dtype)
    span = limit - as_index(start) if delta > 0 else as_index(start) - limit
    count = simplify(maximum((span + (abs(delta) - 1)) // abs(delta), 0), node.shapes.facts(span))
    known = const_int(count)  # as of a start that is open, and a limit one behind it
    made = cast(positions(count, of), kind) if known is None else arange(0, known, 1, node.type().dtype)
    if delta != 1:
        made = multiply(made, Constant(np.asarray(delta, kind)))
    if isinstance(start, int):
        return made if start == 0 else add(made, Constant(np.asarray(start, kind)))
    return add(made, cast(extents([start], of), kind))


@converter("EyeLike", 9, 22)
def _eye_like(node: OnnxNode) -> Node:
    if node.rank != 2:
        raise ModelError(f"{node}: it needs a matrix, found {node.type()}")
    kind = element_type(node.integer("dtype"), str(node)) if node.has("dtype") else node.type().dtype
    shape, diagonal = node.type().shape, node.integer("k", 0)
    if (known := node.type().static_shape) is not None:
        check_size(known, kind, f"the result of {node}")
        return Constant(np.eye(known[0], known[1], diagonal, kind.to_numpy()))
    rows, columns = (run_time_operands.numbers_up_to(node, extent) for extent in shape)
    return cast(equal(expand_dims(rows, 1) + Constant(np.array(diagonal)), columns), str(kind))
