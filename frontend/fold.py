"""Folding of small constants while a model is imported, so that shapes and axes that exporters compute become numbers.

Calls whose arguments are all constants are evaluated if the result is small: by numpy, for the operators that shapes
are often computed by, all others by the interpreter, from their definition. What is large is left to the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.dtype import dtype
from ..graph.node import Call, Constant
from ..graph.types import TensorType
from ..ops.definition.evaluate import evaluate_call

MAX_ELEMENTS = 1 << 16
MAX_INTERPRETED = 1 << 8
"""Of operators that are not in the table."""

Array = npt.NDArray[Any]
Evaluate = Callable[[Any, list[Array], TensorType], Any]
"""From the attributes, the arguments and the type of the result to its value."""


def fold(call: Call) -> Constant | None:
    """The value of a call, if its arguments are constants and it is small."""
    kind = call.type
    args = [a.value for a in call.args if isinstance(a, Constant)]
    if not isinstance(kind, TensorType) or kind.static_shape is None or len(args) != len(call.args):
        return None
    if call.op.name in _KEPT and math.prod(kind.static_shape) != 1:
        return None
    elements = max([math.prod(kind.static_shape), *(a.size for a in args)])
    evaluate = table.get(call.op.name)
    narrow = kind.dtype.is_narrow or any(dtype(a.dtype).is_narrow for a in args)
    if evaluate is None or (narrow and call.op.name == "cast"):
        value = evaluate_call(call) if elements <= MAX_INTERPRETED else None
        return None if value is None else Constant(value)
    if elements > MAX_ELEMENTS or (call.op.name in _NOT_OF_NOTHING and any(a.size == 0 for a in args)):
        return None
    with np.errstate(all="ignore"):
        value = evaluate(call.attrs, args, kind)
    return Constant(np.asarray(value).astype(kind.dtype.to_numpy(), copy=False).reshape(kind.static_shape))


def _elementwise(function: Callable[..., Any]) -> Evaluate:
    return lambda attrs, args, kind: function(*args)


def _reshaped(attrs: Any, args: list[Array], kind: TensorType) -> Array:
    return args[0].reshape(kind.static_shape or ())


def _sliced(attrs: Any, args: list[Array], kind: TensorType) -> Array:
    (x,) = args
    index: list[slice] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(attrs.axes, attrs.starts, attrs.ends, attrs.steps, strict=True):
        # an end before the first element, for a negative step, has no number in Python
        index[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(index)]


def _taken(attrs: Any, args: list[Array], kind: TensorType) -> Array:
    data, indices = args
    extent = data.shape[attrs.axis]
    wrapped = np.where(indices < 0, indices + extent, indices)
    return np.take(data, wrapped.astype(np.int64), attrs.axis, mode="clip")


def _cast(attrs: Any, args: list[Array], kind: TensorType) -> Array:
    (x,) = args
    limits = kind.dtype.int_range()
    if limits is None or kind.dtype.is_bool or not dtype(x.dtype).is_float:
        return x.astype(kind.dtype.to_numpy())
    whole = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.asarray([max(limits[0], min(limits[1], _integer(v))) for v in whole.ravel()], kind.dtype.to_numpy())


def _integer(value: float) -> int:
    return int(value) if np.isfinite(value) else (1 << 64) * (1 if value > 0 else -1)


def _divided(a: Array, b: Array) -> Array:
    """The quotient; of integers it is truncated, and 0 where b is 0."""
    if dtype(a.dtype).is_float:
        return np.asarray(a / b)
    safe = np.where(b == 0, 1, b)
    quotient = a // safe
    truncated = np.where((quotient < 0) & (quotient * safe != a), quotient + 1, quotient)
    return np.where(b == 0, 0, truncated)


def _remainder(attrs: Any, args: list[Array], kind: TensorType) -> Array:
    """The remainder; of integers it is 0 where b is 0."""
    a, b = args
    function = np.fmod if attrs.fmod else np.mod
    if kind.dtype.is_float:
        return np.asarray(function(a, b))
    return np.asarray(np.where(b == 0, 0, function(a, np.where(b == 0, 1, b))))


def _reduced(function: Callable[..., Any]) -> Evaluate:
    return lambda attrs, args, kind: function(args[0], axis=attrs.axes)


_KEPT = {"dequantize"}
"""What the compiler is to see, unless it is one number: products of quantized weights are sums of integers."""
_NOT_OF_NOTHING = {"max", "min", "take"}
"""What numpy refuses for empty arrays."""

table: dict[str, Evaluate] = {
    "reshape": _reshaped,
    "squeeze": _reshaped,
    "expand_dims": _reshaped,
    "transpose": lambda attrs, args, kind: args[0].transpose(attrs.axes),
    "broadcast_to": lambda attrs, args, kind: np.broadcast_to(args[0], kind.static_shape or ()),
    "tile": lambda attrs, args, kind: np.tile(args[0], attrs.repeats),
    "concatenate": lambda attrs, args, kind: np.concatenate(args, attrs.axis),
    "strided_slice": _sliced,
    "take": _taken,
    "arange": lambda attrs, args, kind: attrs.start + np.arange(attrs.count) * attrs.step,
    "full": lambda attrs, args, kind: np.full(attrs.shape, attrs.value, kind.dtype.to_numpy()),
    "where": _elementwise(np.where),
    "cast": _cast,
    "identity": lambda attrs, args, kind: args[0],
    "add": _elementwise(np.add),
    "subtract": _elementwise(np.subtract),
    "multiply": _elementwise(np.multiply),
    "divide": _elementwise(_divided),
    "mod": _remainder,
    "maximum": _elementwise(np.maximum),
    "minimum": _elementwise(np.minimum),
    "negative": _elementwise(np.negative),
    "abs": _elementwise(np.abs),
    "floor": _elementwise(np.floor),
    "ceil": _elementwise(np.ceil),
    "round": _elementwise(np.rint),
    "sqrt": _elementwise(np.sqrt),
    "reciprocal": _elementwise(np.reciprocal),
    "equal": _elementwise(np.equal),
    "not_equal": _elementwise(np.not_equal),
    "less": _elementwise(np.less),
    "less_equal": _elementwise(np.less_equal),
    "greater": _elementwise(np.greater),
    "greater_equal": _elementwise(np.greater_equal),
    "logical_and": _elementwise(np.logical_and),
    "logical_or": _elementwise(np.logical_or),
    "logical_not": _elementwise(np.logical_not),
    "sum": _reduced(np.sum),
    "prod": _reduced(np.prod),
    "max": _reduced(np.max),
    "min": _reduced(np.min),
}
