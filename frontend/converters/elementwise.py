"""ONNX's elementwise operators, with one, two or any number of inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from ...base.dtype import DType
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ops.families import binary, parametric, select, unary
from ...ops.families.cast import bitcast, cast
from ...ops.families.narrow import E8M0
from ...ops.families.reshape import expand_dims
from ...ops.families.strings.equal import string_equal
from ...ops.families.strings.number_strings import number_strings
from ...ops.families.strings.string_numbers import string_numbers
from ..onnx_node import OnnxNode
from ..registry import converter, register
from ..run_time_broadcast import broadcast_at_run_time
from ..string_values import StringTensor
from ..tensors import element_type

_UNARY: dict[str, tuple[Callable[[Node], Node], tuple[int, ...]]] = {
    "Abs": (unary.abs, (1, 6, 13)),
    "Acos": (unary.acos, (7, 22)),
    "Acosh": (unary.acosh, (9, 22)),
    "Asin": (unary.asin, (7, 22)),
    "Asinh": (unary.asinh, (9, 22)),
    "Atan": (unary.atan, (7, 22)),
    "Atanh": (unary.atanh, (9, 22)),
    "BitwiseNot": (unary.bitwise_not, (18,)),
    "Ceil": (unary.ceil, (1, 6, 13)),
    "Cos": (unary.cos, (7, 22)),
    "Cosh": (unary.cosh, (9, 22)),
    "Erf": (unary.erf, (9, 13)),
    "Exp": (unary.exp, (1, 6, 13)),
    "Floor": (unary.floor, (1, 6, 13)),
    "HardSwish": (unary.hard_swish, (14, 22)),
    "Log": (unary.log, (1, 6, 13)),
    "Mish": (unary.mish, (18, 22)),
    "Neg": (unary.negative, (1, 6, 13)),
    "Not": (unary.logical_not, (1,)),
    "Reciprocal": (unary.reciprocal, (1, 6, 13)),
    "Relu": (unary.relu, (1, 6, 13, 14)),
    "Round": (unary.round, (11, 22)),
    "Sigmoid": (unary.sigmoid, (1, 6, 13)),
    "Sign": (unary.sign, (9, 13)),
    "Sin": (unary.sin, (7, 22)),
    "Sinh": (unary.sinh, (9, 22)),
    "Softplus": (unary.softplus, (1, 22)),
    "Softsign": (unary.softsign, (1, 22)),
    "Sqrt": (unary.sqrt, (1, 6, 13)),
    "Tan": (unary.tan, (7, 22)),
    "Tanh": (unary.tanh, (1, 6, 13)),
}

Binary = Callable[[Node, Node], Node]

_BINARY: dict[str, tuple[Binary, tuple[int, ...]]] = {
    "Add": (binary.add, (7, 13, 14)),
    "And": (binary.logical_and, (7,)),
    "BitwiseAnd": (binary.bitwise_and, (18,)),
    "BitwiseOr": (binary.bitwise_or, (18,)),
    "BitwiseXor": (binary.bitwise_xor, (18,)),
    "Div": (binary.divide, (7, 13, 14)),
    "Greater": (binary.greater, (7, 9, 13)),
    "GreaterOrEqual": (binary.greater_equal, (12, 16)),
    "Less": (binary.less, (7, 9, 13)),
    "LessOrEqual": (binary.less_equal, (12, 16)),
    "Mul": (binary.multiply, (7, 13, 14)),
    "Or": (binary.logical_or, (7,)),
    "PRelu": (binary.prelu, (7, 9, 16)),
    "Sub": (binary.subtract, (7, 13, 14)),
    "Xor": (binary.logical_xor, (7,)),
}

_LEGACY_BINARY: dict[str, tuple[Binary, tuple[int, ...]]] = {
    "Add": (binary.add, (1, 6)),
    "And": (binary.logical_and, (1,)),
    "Div": (binary.divide, (1, 6)),
    "Equal": (binary.equal, (1,)),
    "Greater": (binary.greater, (1,)),
    "Less": (binary.less, (1,)),
    "Mul": (binary.multiply, (1, 6)),
    "Or": (binary.logical_or, (1,)),
    "Pow": (binary.power, (1,)),
    "Sub": (binary.subtract, (1, 6)),
    "Xor": (binary.logical_xor, (1,)),
}

_VARIADIC: dict[str, tuple[Callable[[Sequence[Node]], Node], tuple[int, ...]]] = {
    "Max": (binary.maximum_all, (1, 6, 8, 12, 13)),
    "Mean": (binary.mean_all, (1, 6, 8, 13)),
    "Min": (binary.minimum_all, (1, 6, 8, 12, 13)),
    "Sum": (binary.add_all, (1, 6, 8, 13)),
}


def aligned_at(x: Node, rank: int, axis: int) -> Node:
    """x with axes of extent 1 added at the end, so that it broadcasts with its first axis at ``axis`` of ``rank``."""
    missing = rank - axis - tensor_of(x).ndim
    return expand_dims(x, range(-missing, 0)) if missing > 0 else x


def _legacy_broadcast(make: Binary) -> Callable[[OnnxNode], Node]:
    """The converter for versions below 7, where the second input broadcasts only if ``broadcast`` says so, aligned at
    ``axis`` of the first."""

    def convert(node: OnnxNode) -> Node:
        a, b = node[0], node[1]
        node.forms.check_plain((a, b), f"{node} takes")
        if not node.flag("broadcast"):
            if len(tensor_of(a).shape) != len(tensor_of(b).shape):
                raise ModelError(f"{node}: {a.type} and {b.type} differ in rank, but broadcast is not set")
            return make(a, b)
        rank = tensor_of(a).ndim
        if node.has("axis"):
            axis = node.integer("axis")
            b = aligned_at(b, rank, axis + rank if axis < 0 else axis)
        return make(a, b)

    return convert


for _name, (_one, _versions) in _UNARY.items():
    register(_name, _versions, lambda node, make=_one: make(node[0]))  # type: ignore[misc]
for _name, (_two, _versions) in _BINARY.items():
    register(_name, _versions, lambda node, make=_two: make(*broadcast_at_run_time(node, (node[0], node[1]))))  # type: ignore[misc]
for _name, (_two, _versions) in _LEGACY_BINARY.items():
    register(_name, _versions, _legacy_broadcast(_two))
for _name, (_any, _versions) in _VARIADIC.items():
    register(_name, _versions, lambda node, make=_any: make(broadcast_at_run_time(node, node.all)))  # type: ignore[misc]


@converter("Equal", 7, 11, 13, 19)
def _equal(node: OnnxNode) -> Node:
    a, b = node.text(0), node.text(1)
    if a is None and b is None:
        return binary.equal(*broadcast_at_run_time(node, (node[0], node[1])))
    a, b = node.required_text(0), node.required_text(1)
    return string_equal(a.spans, a.utf8, b.spans, b.utf8)


@converter("PRelu", 1, 6)
def _prelu_1(node: OnnxNode) -> Node:
    """The slope has one number, or one a channel, which is axis 1."""
    slope = node[1]
    return binary.prelu(node[0], aligned_at(slope, node.rank, 1) if tensor_of(slope).ndim == 1 else slope)


@converter("BitShift", 11, 28)
def _bit_shift(node: OnnxNode) -> Node:
    direction = node.string("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.unsupported(f"direction {direction!r}")
    return (binary.left_shift if direction == "LEFT" else binary.right_shift)(
        *broadcast_at_run_time(node, (node[0], node[1]))
    )


@converter("Mod", 10, 13, 28)
def _mod(node: OnnxNode) -> Node:
    a, b = broadcast_at_run_time(node, (node[0], node[1]))
    return binary.mod(a, b, node.flag("fmod"))


@converter("Where", 9, 16)
def _where(node: OnnxNode) -> Node:
    return select.where(*broadcast_at_run_time(node, (node[0], node[1], node[2])))


@converter("Pow", 7, 12, 13, 15)
def _pow(node: OnnxNode) -> Node:
    """Squares and cubes of floats are products, as in onnxruntime."""
    x, exponent = node[0], node[1]
    known = exponent.value if isinstance(exponent, Constant) else None
    if tensor_of(x).dtype.is_float and known is not None and known.size == 1 and known.ndim <= node.rank:
        for whole in (2, 3):
            if known.item() == whole:
                return binary.whole_power(x, whole)
    return binary.power(*broadcast_at_run_time(node, (x, exponent)))


@converter("Elu", 1, 6, 22)
def _elu(node: OnnxNode) -> Node:
    return parametric.elu(node[0], node.real("alpha", 1.0))


@converter("Celu", 12, 28)
def _celu(node: OnnxNode) -> Node:
    return parametric.celu(node[0], node.real("alpha", 1.0))


@converter("Selu", 1)
def _selu_1(node: OnnxNode) -> Node:
    return parametric.selu(node[0], node.real("alpha", 1.6732), node.real("gamma", 1.0507))


@converter("Selu", 6, 22)
def _selu(node: OnnxNode) -> Node:
    return parametric.selu(
        node[0], node.real("alpha", parametric.SELU_ALPHA), node.real("gamma", parametric.SELU_GAMMA)
    )


@converter("LeakyRelu", 1, 6, 16)
def _leaky_relu(node: OnnxNode) -> Node:
    return parametric.leaky_relu(node[0], node.real("alpha", 0.01))


@converter("ThresholdedRelu", 10, 22)
def _thresholded_relu(node: OnnxNode) -> Node:
    return parametric.thresholded_relu(node[0], node.real("alpha", 1.0))


@converter("HardSigmoid", 1, 6, 22)
def _hard_sigmoid(node: OnnxNode) -> Node:
    return parametric.hard_sigmoid(node[0], node.real("alpha", 0.2), node.real("beta", 0.5))


@converter("Swish", 24)
def _swish(node: OnnxNode) -> Node:
    return parametric.swish(node[0], node.real("alpha", 1.0))


@converter("Gelu", 20)
def _gelu(node: OnnxNode) -> Node:
    return parametric.gelu(node[0], node.string("approximate", "none"))


@converter("Shrink", 9)
def _shrink(node: OnnxNode) -> Node:
    return parametric.shrink(node[0], node.real("lambd", 0.5), node.real("bias", 0.0))


@converter("IsNaN", 9, 13, 20)
def _isnan(node: OnnxNode) -> Node:
    return unary.isnan(widened(node[0]))


@converter("IsInf", 10, 20)
def _isinf(node: OnnxNode) -> Node:
    return parametric.isinf(widened(node[0]), node.flag("detect_negative", True), node.flag("detect_positive", True))


@converter("Clip", 1, 6)
def _clip_1(node: OnnxNode) -> Node:
    low = node.real("min") if node.has("min") else None
    high = node.real("max") if node.has("max") else None
    return parametric.clip(node[0], low, high)


@converter("Clip", 11, 12, 13)
def _clip(node: OnnxNode) -> Node:
    """Bounds are inputs; those that are known become attributes."""
    low, high = node.get(1), node.get(2)
    known = [
        b.value.reshape(-1)[0].item() if isinstance(b, Constant) and b.value.size == 1 else None for b in (low, high)
    ]
    if (low is None or known[0] is not None) and (high is None or known[1] is not None):
        return parametric.clip(node[0], known[0], known[1])
    return select.clip_by(node[0], low, high)


def as_dtype(x: Node, kind: DType, saturate: bool = True, round_mode: str = "up") -> Node:
    """x converted to a dtype; itself if it has that. The rest is for floats of 8 bits.

    What is beyond 4 or 2 bits is not defined by ONNX for floats; it becomes 0, as in ml_dtypes and so in onnx's tests.
    """
    own = tensor_of(x).dtype
    if own is kind:
        return x
    if kind.is_narrow and kind.holds_floats:
        return cast(x, kind, saturate, round_mode if kind == E8M0 else "nearest")
    return cast(_held(cast(x, "int32"), kind) if kind.is_narrow and own.holds_floats else x, kind)


def _held(x: Node, kind: DType) -> Node:
    """Integers where a type of few bits holds them, else 0."""
    low, high = kind.int_range() or (0, 0)
    return select.where(binary.equal(x, parametric.clip(x, low, high)), x, Constant(np.zeros((), np.int32)))


def widened(x: Node) -> Node:
    """x, or where it is a narrow float, its numbers in float32."""
    kind = tensor_of(x).dtype
    return cast(x, "float32") if kind.is_narrow and kind.holds_floats else x


@converter("Cast", 1)
def _cast_1(node: OnnxNode) -> Node:
    name = node.string("to")
    if name not in TensorProto.DataType.keys():  # noqa: SIM118  no mapping, an enum wrapper
        raise node.unsupported(f"the element type {name!r}")
    return _cast_to(node, TensorProto.DataType.Value(name))


@converter("Cast", 6, 9, 13, 19, 21, 23, 24, 25, 28)
def _cast(node: OnnxNode) -> Node:
    return _cast_to(node, node.integer("to"))


def _cast_to(node: OnnxNode, code: int) -> Node:
    return _to_strings(node) if code == TensorProto.STRING else _converted(node, element_type(code, str(node)))


@converter("CastLike", 15, 19, 21, 23, 24, 25)
def _cast_like(node: OnnxNode) -> Node:
    return _to_strings(node) if node.text(1) is not None else _converted(node, node.type(1).dtype)


def _to_strings(node: OnnxNode) -> Node:
    """Numbers in decimal, bools as 0 and 1, as onnxruntime has them; strings as they are."""
    text = node.text(0)
    if text is not None:
        return node.forms.put_strings(text)
    node.forms.check_plain([node[0]], f"{node} takes")
    x = widened(node[0])
    wide = cast(x, "float64" if tensor_of(x).dtype.is_float else "int64")
    return node.forms.put_strings(StringTensor(*number_strings(wide)))


def _converted(node: OnnxNode, kind: DType) -> Node:
    text = node.text(0)
    if text is not None:
        return as_dtype(string_numbers(text.spans, text.utf8, whole=not kind.is_float), kind)
    node.forms.check_plain([node[0]], f"{node} takes")
    return as_dtype(node[0], kind, node.flag("saturate", True), node.string("round_mode", "up"))


@converter("BitCast", 26)
def _bitcast(node: OnnxNode) -> Node:
    return bitcast(node[0], element_type(node.integer("to"), str(node)))
