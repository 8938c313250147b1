"""ONNX's operators on maps: a row of features from one that is an input, and scores of classes as maps, which Python
sees."""

from __future__ import annotations

import numpy as np

from ...base.dtype import FLOAT32, INT64
from ...base.errors import ModelError
from ...base.output_form import OutputForm
from ...graph.node import Constant, Node, tensor_of
from ...ops.families.binary import greater_equal, less, logical_and
from ...ops.families.cast import cast
from ...ops.families.reshape import expand_dims
from ...ops.families.scatter import scatter_elements
from ...ops.families.select import where
from ...ops.families.slicing import strided_slice
from ...ops.families.strings.index import string_index
from ..class_scores import float_matrix
from ..integers import integers
from ..onnx_node import OnnxNode
from ..registry import converter
from ..string_values import StringTensor
from ..values import Entries
from .label_encoder import found_by_key

DOMAIN = "ai.onnx.ml"


@converter("DictVectorizer", 1, domain=DOMAIN)
def _dict_vectorizer(node: OnnxNode) -> Node:
    """A column for each key of the vocabulary, 0 for one that is not in the map; other keys are left out."""
    entries = _entries(node)
    names, numbers = node.strings("string_vocabulary"), node.ints("int64_vocabulary") or ()
    if bool(names) == bool(numbers):
        raise ModelError(f"{node}: it takes either string_vocabulary or int64_vocabulary")
    text = node.forms.strings_of(entries.keys)
    if (text is None) != bool(numbers):
        raise ModelError(f"{node}: the keys of the map and of the vocabulary are of two types")
    if node.forms.strings_of(entries.values) is not None:
        raise node.unsupported("a map whose values are strings")
    if text is not None:
        return _row(entries, string_index(text.spans, text.utf8, names), len(names))
    columns = np.arange(len(numbers))
    return _row(entries, found_by_key(entries.keys, np.array(numbers), columns, integers(-1)), len(numbers))


def _row(entries: Entries, columns: Node, width: int) -> Node:
    """The values of a map in their columns, [1, width], where 0 is left; those of column -1 are left out."""
    row = Constant(np.zeros(1 + width, tensor_of(entries.values).dtype.to_numpy()))
    filled = scatter_elements(row, columns + integers(1), entries.values)
    return expand_dims(strided_slice(filled, [1], [1 + width], [0]), 0)


@converter("CastMap", 1, domain=DOMAIN)
def _cast_map(node: OnnxNode) -> Node:
    """The values in ascending order of their keys; or, if it is sparse, each in the column that its key says."""
    entries, target = _entries(node), node.string("cast_to", "TO_FLOAT")
    form = node.string("map_form", "DENSE")
    if node.forms.strings_of(entries.keys) is not None:
        raise node.unsupported("a map whose keys are strings")
    text = node.forms.strings_of(entries.values)
    if (target == "TO_STRING") != (text is not None) or target not in ("TO_FLOAT", "TO_INT64", "TO_STRING"):
        raise node.unsupported(f"{target} of values that are {'strings' if text is not None else 'numbers'}")
    if text is not None:
        if form != "DENSE":
            raise node.unsupported("a sparse map of strings")
        return node.forms.put_strings(StringTensor(expand_dims(text.spans, 0), text.utf8))
    values = cast(entries.values, FLOAT32 if target == "TO_FLOAT" else INT64)
    if form == "DENSE":
        return expand_dims(values, 0)
    width = node.integer("max_map")
    inside = logical_and(greater_equal(entries.keys, integers(0)), less(entries.keys, integers(width)))
    return _row(Entries(entries.keys, values), where(inside, entries.keys, integers(-1)), width)


def _entries(node: OnnxNode) -> Entries:
    value = node.value(0)
    if not isinstance(value, Entries):
        raise ModelError(f"{node}: it takes a map, which is an input of the model")
    return value


@converter("ZipMap", 1, domain=DOMAIN)
def _zip_map(node: OnnxNode) -> Node:
    names, numbers = node.strings("classlabels_strings"), node.ints("classlabels_int64s") or ()
    scores = float_matrix(node)
    columns = node.numbers(node.type().shape[-1:])[0]
    if len(names or numbers) != columns:
        raise ModelError(f"{node}: there are {len(names or numbers)} class labels for {columns} columns")
    return node.forms.put(scores, OutputForm("maps", names, numbers))
