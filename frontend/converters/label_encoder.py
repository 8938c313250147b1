"""ONNX's LabelEncoder and CategoryMapper: tables from keys to values, both of which are numbers or strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

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
from ...ops.families.strings.index import string_index
from ..onnx_node import OnnxNode
from ..registry import converter

DOMAIN = "ai.onnx.ml"
Array = npt.NDArray[Any]
MOST_GAPS = 4
"""Integers of which at least one in so many is a key are looked up by themselves."""


@converter("LabelEncoder", 1, domain=DOMAIN)
def _names(node: OnnxNode) -> Node:
    """Of version 1 the keys are the positions of the strings, and the values those of others."""
    names = node.strings("classes_strings")
    if node.text(0) is not None:
        return _numbers(node, names, np.arange(len(names)), np.array(node.integer("default_int64", -1)))
    return _names_of(node, np.arange(len(names)), names)


@converter("CategoryMapper", 1, domain=DOMAIN)
def _category_mapper(node: OnnxNode) -> Node:
    names, numbers = node.strings("cats_strings"), node.int_array("cats_int64s")
    if len(names) != len(numbers) or not names:
        raise ModelError(f"{node}: there are {len(names)} strings and {len(numbers)} numbers")
    if node.text(0) is not None:
        return _numbers(node, names, numbers, np.array(node.integer("default_int64", -1)))
    return _names_of(node, numbers, names)


@converter("LabelEncoder", 2, 4, domain=DOMAIN)
def _label_encoder(node: OnnxNode) -> Node:
    """Of equal keys the first counts. Since version 4 NaN may be a key."""
    keys, names = _strings(node, "keys"), _strings(node, "values")
    if names:
        return _strings_of(node, keys, names)
    values = _array(node, "values")
    if keys:
        return _numbers(node, keys, values, _default(node, values.dtype))
    return _encoded(node, _array(node, "keys"), values, Constant(_default(node, values.dtype)))


def _strings(node: OnnxNode, name: str) -> tuple[str, ...]:
    """The keys or values, if they are strings."""
    tensor = node.attributes.get(f"{name}_tensor")
    is_tensor = tensor is not None and tensor.t.data_type == TensorProto.STRING
    return node.strings(f"{name}_tensor" if is_tensor else f"{name}_strings")


def _strings_of(node: OnnxNode, keys: tuple[str, ...], names: tuple[str, ...]) -> Node:
    """Values that are strings."""
    if not keys:
        return _names_of(node, _array(node, "keys"), names)
    default = _default_name(node)
    return node.forms.put(_positions(node, keys, len(names)), OutputForm("labels", (*names, default)))


def _names_of(node: OnnxNode, keys: Array, names: tuple[str, ...]) -> Node:
    """Strings stand for their positions, and the default is behind them."""
    count = len(names)
    positions = _encoded(node, keys, np.arange(count), Constant(np.array(count)))
    return node.forms.put(positions, OutputForm("labels", (*names, _default_name(node))))


def _default_name(node: OnnxNode) -> str:
    given = node.strings("default_tensor") if node.has("default_tensor") else ()
    return given[0] if given else node.string("default_string", "_Unused")


def _numbers(node: OnnxNode, keys: tuple[str, ...], values: Array, default: Array) -> Node:
    """Values that are numbers, of keys that are strings."""
    table = np.append(values, default).astype(values.dtype)
    return take(Constant(table), _positions(node, keys, len(values)))


def _positions(node: OnnxNode, keys: tuple[str, ...], count: int) -> Node:
    """The positions of strings in as many keys, ``count`` for those that are none."""
    if len(keys) != count:
        raise ModelError(f"{node}: there are {len(keys)} keys and {count} values")
    text = node.required_text()
    found = string_index(text.spans, text.utf8, keys)
    return where(found < 0, Constant(np.array(count)), found)


def _encoded(node: OnnxNode, keys: Array, values: Array, default: Constant) -> Node:
    if len(keys) != len(values) or not len(keys):
        raise ModelError(f"{node}: there are {len(keys)} keys and {len(values)} values")
    return found_by_key(node[0], keys, values, default, finds_nan=node.version >= 4)


def found_by_key(x: Node, keys: Array, values: Array, default: Constant, finds_nan: bool = False) -> Node:
    """The values of the keys, as many, that the elements of x are; the first of equal keys counts, and other elements
    have the default."""
    keys, first = np.unique(keys.astype(tensor_of(x).dtype.to_numpy()), return_index=True)
    values = values[first]
    if keys.dtype.kind in "iu" and int(keys[-1]) - int(keys[0]) < MOST_GAPS * len(keys):
        return _looked_up(x, keys, values, default)
    return _searched(x, keys, values, default, finds_nan)


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
    """The keys or values that are numbers, of whichever type they are given in."""
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
