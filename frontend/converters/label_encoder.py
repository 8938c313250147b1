"""ONNX's LabelEncoder of numbers: a table from keys to values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dtype import INT64
from ...base.errors import ModelError
from ...base.output_form import OutputForm
from ...graph.node import Constant, Node, tensor_of
from ...ops.families import reduce, unary
from ...ops.families.binary import equal, greater_equal, less_equal, logical_and, logical_or, subtract
from ...ops.families.cast import cast
from ...ops.families.gather import take
from ...ops.families.reshape import expand_dims
from ...ops.families.select import where
from ..onnx_node import OnnxNode
from ..registry import converter

DOMAIN = "ai.onnx.ml"
Array = npt.NDArray[Any]
MOST_GAPS = 4
"""Integers of which at least one in so many is a key are looked up by themselves."""


@converter("LabelEncoder", 1, domain=DOMAIN)
def _names(node: OnnxNode) -> Node:
    """Of version 1 the keys are the positions of the strings."""
    names = node.strings("classes_strings")
    keys = np.arange(len(names))
    default = Constant(np.array(len(names)))
    names = (*names, node.string("default_string", "_Unused"))
    return node.forms.put(_looked_up(node[0], keys, keys, default), OutputForm("labels", names))


@converter("LabelEncoder", 2, 4, domain=DOMAIN)
def _label_encoder(node: OnnxNode) -> Node:
    """Of equal keys the first counts. Since version 4 NaN may be a key."""
    if node.has("values_strings"):
        return _to_strings(node)
    keys, values = _array(node, "keys"), _array(node, "values")
    return _encoded(node, keys, values, Constant(_default(node, values.dtype)))


def _to_strings(node: OnnxNode) -> Node:
    """Strings stand for their positions, and the default is behind them."""
    names = (*node.strings("values_strings"), node.string("default_string", "_Unused"))
    positions = _encoded(node, _array(node, "keys"), np.arange(len(names) - 1), Constant(np.array(len(names) - 1)))
    return node.forms.put(positions, OutputForm("labels", names))


def _encoded(node: OnnxNode, keys: Array, values: Array, default: Constant) -> Node:
    if len(keys) != len(values) or not len(keys):
        raise ModelError(f"{node}: there are {len(keys)} keys and {len(values)} values")
    keys, first = np.unique(keys.astype(node.type().dtype.to_numpy()), return_index=True)
    values = values[first]
    if keys.dtype.kind in "iu" and int(keys[-1]) - int(keys[0]) < MOST_GAPS * len(keys):
        return _looked_up(node[0], keys, values, default)
    return _searched(node[0], keys, values, default, finds_nan=node.version >= 4)


def _looked_up(x: Node, keys: Array, values: Array, default: Constant) -> Node:
    """A table over the whole range of the keys."""
    low, high = (Constant(np.asarray(key)) for key in (keys[0], keys[-1]))
    table = np.full(int(keys[-1]) - int(keys[0]) + 1, default.value)
    table[keys - keys[0]] = values
    inside = logical_and(greater_equal(x, low), less_equal(x, high))
    return where(inside, take(Constant(table), where(inside, subtract(x, low), low)), default)


def _searched(x: Node, keys: Array, values: Array, default: Constant, finds_nan: bool) -> Node:
    """The last of the keys that are not greater, if it is equal."""
    not_greater = cast(greater_equal(expand_dims(x, tensor_of(x).ndim), Constant(keys)), INT64)
    at = subtract(reduce.sum(not_greater, -1), Constant(np.array(1, np.int64)))
    found = take(Constant(keys), at)
    same: Node = equal(found, x)
    if finds_nan and np.isnan(keys[-1]):
        same = logical_or(same, unary.isnan(x))
        at = where(unary.isnan(x), Constant(np.array(len(keys) - 1, np.int64)), at)
    return where(same, take(Constant(values), at), default)


def _array(node: OnnxNode, name: str) -> Array:
    """The keys or values, of whichever type they are given in. Raises ``ModelError`` for strings."""
    if node.has(f"{name}_strings"):
        raise node.unsupported(f"{name} that are strings")
    if node.has(f"{name}_int64s"):
        return node.int_array(f"{name}_int64s")
    found = node.float_array(f"{name}_floats") if node.has(f"{name}_floats") else node.tensor(f"{name}_tensor")
    if found is None:
        raise ModelError(f"{node}: there are no {name}")
    return found.ravel()


def _default(node: OnnxNode, kind: np.dtype[Any]) -> Array:
    """What other keys become."""
    given = node.tensor("default_tensor")
    if given is not None:
        return given.ravel()[:1].reshape(()).astype(kind)
    return np.array(node.real("default_float", -0.0) if kind.kind == "f" else node.integer("default_int64", -1), kind)
