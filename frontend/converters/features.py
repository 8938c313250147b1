"""ONNX's operators that make features for classical models: scaled, normalized, filled in, encoded, put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dtype import FLOAT32, INT64
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import const_int
from ...ops.families import reduce, unary
from ...ops.families.binary import equal
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.gather import take
from ...ops.families.pad import pad
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.select import where
from ...ops.families.slicing import strided_slice
from ...ops.families.strings.index import string_index
from ..class_scores import number
from ..onnx_node import OnnxNode
from ..registry import converter

DOMAIN = "ai.onnx.ml"


@converter("Scaler", 1, domain=DOMAIN)
def _scaler(node: OnnxNode) -> Node:
    """The offset is taken off before x is scaled."""
    x, columns = cast(node[0], FLOAT32), const_int(node.type().shape[-1])
    offset, scale = node.float_array("offset"), node.float_array("scale")
    for name, values in (("offset", offset), ("scale", scale)):
        if not len(values):
            raise ModelError(f"{node}: attribute {name} is missing")
        if len(values) > 1 and columns not in (None, len(values)):
            raise ModelError(f"{node}: there are {len(values)} values of {name} for {columns} columns")
    return (x - offset) * scale


@converter("Normalizer", 1, domain=DOMAIN)
def _normalizer(node: OnnxNode) -> Node:
    """Rows whose norm is 0 stay as they are. "MAX" divides by the greatest element, whatever its sign."""
    x, norm = cast(node[0], FLOAT32), node.string("norm", "MAX")
    match norm:
        case "MAX":
            size: Node = reduce.max(x, -1, keepdims=True)
        case "L1":
            size = reduce.l1(x, -1, keepdims=True)
        case "L2":
            size = reduce.l2(x, -1, keepdims=True)
        case _:
            raise node.unsupported(f"the norm {norm!r}, which is none of MAX, L1 and L2,")
    return x / where(unary.abs(size) > 0.0, size, number(1, x))


@converter("Binarizer", 1, domain=DOMAIN)
def _binarizer(node: OnnxNode) -> Node:
    kind = node.type().dtype
    return cast(node[0] > Constant(np.array(node.real("threshold", 0.0)).astype(kind.to_numpy())), kind)


@converter("Imputer", 1, domain=DOMAIN)
def _imputer(node: OnnxNode) -> Node:
    """What is missing is NaN, or a number, and becomes a value of its column."""
    kind = node.type().dtype.to_numpy()
    values: npt.NDArray[Any]
    if node.type().dtype.is_float:
        values, missing = node.float_array("imputed_value_floats"), node.real("replaced_value_float", 0.0)
    else:
        values, missing = node.int_array("imputed_value_int64s"), node.integer("replaced_value_int64", 0)
    if not len(values):
        raise ModelError(f"{node}: there are no values of the dtype {node.type().dtype} to put in")
    gone = unary.isnan(node[0]) if np.isnan(missing) else equal(node[0], Constant(np.array(missing, kind)))
    return where(gone, Constant(values.astype(kind)), node[0])


@converter("ArrayFeatureExtractor", 1, domain=DOMAIN)
def _array_feature_extractor(node: OnnxNode) -> Node:
    """Columns by number; what comes of a vector is a matrix of one row."""
    x = node[0] if node.rank > 1 else expand_dims(node[0], 0)
    return take(x, reshape(node[1], [-1]), tensor_of(x).ndim - 1)


@converter("FeatureVectorizer", 1, domain=DOMAIN)
def _feature_vectorizer(node: OnnxNode) -> Node:
    """Inputs side by side, each cut, or filled up with zeros, to as many columns as ``inputdimensions`` says."""
    widths = node.ints("inputdimensions") or ()
    if len(widths) != len(node.all):
        raise ModelError(f"{node}: inputdimensions must have a number for each of {len(node.all)} inputs")
    parts = []
    for k, width in enumerate(widths):
        x = node[k] if node.type(k).ndim > 1 else expand_dims(node[k], 1)
        found = node.numbers(tensor_of(x).shape[1:])[0]
        x = x if found <= width else strided_slice(x, [0], [width], [1])
        parts.append(cast(x if found >= width else pad(x, [0, 0], [0, width - found]), FLOAT32))
    return concatenate(parts, 1)


@converter("OneHotEncoder", 1, domain=DOMAIN)
def _one_hot_encoder(node: OnnxNode) -> Node:
    """A last axis of categories. A value that is none of them is 0 in all: ``zeros=0`` would have it be an error."""
    names, categories = node.strings("cats_strings"), node.int_array("cats_int64s")
    if text := node.text(0):
        found: Node = string_index(text.spans, text.utf8, names)
        categories = np.arange(len(names))
    else:
        found = cast(node[0], INT64)
    if not len(categories):
        raise ModelError(f"{node}: there are no categories of the type of its input")
    return cast(equal(expand_dims(found, node.rank), Constant(categories)), FLOAT32)
