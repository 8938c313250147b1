"""onnxruntime's Tokenizer, which exporters of scikit-learn's text features write: words, or characters, of strings."""

from __future__ import annotations

import numpy as np

from ....base.errors import ModelError
from ....graph.node import Constant, Node, tensor_of
from ....ops.families.binary import equal
from ....ops.families.concatenate import concatenate
from ....ops.families.open_extents import positions
from ....ops.families.reshape import expand_dims
from ....ops.families.select import where
from ....ops.families.strings.automaton import Automaton, searching_automaton_of
from ....ops.families.strings.pieces import string_pieces
from ...onnx_node import OnnxNode
from ...string_values import StringTensor, constant_strings, merged
from .entering import contrib

MARKS = ("\x02", "\x03")
"""The tokens that stand before and behind the others with ``mark``."""


@contrib("Tokenizer", "mark mincharnum pad_value separators tokenexp", inputs=1)
def _tokenizer(node: OnnxNode) -> Node:
    """Tokens along a last axis, those of less than ``mincharnum`` characters left out."""
    fewest = node.integer("mincharnum")
    if fewest < 1:
        raise ModelError(f"{node}: mincharnum must be 1 or more, found {fewest}")
    automaton, kind = _cutting(node)
    known = constant_strings([node.string("pad_value"), *MARKS])
    (all_known, spans), utf8 = merged([known, node.required_text()])
    assert isinstance(all_known, Constant)
    filler, begin, end = all_known.value.tolist()
    pieces, counts = string_pieces(spans, utf8, automaton, kind, characters=fewest, filler=filler)
    if node.flag("mark"):
        pieces = _marked(pieces, counts, begin, end, filler)
    return node.forms.put_strings(StringTensor(pieces, utf8))


def _cutting(node: OnnxNode) -> tuple[Automaton, str]:
    """What finds tokens, or what is between them; a single empty separator is that every character is a token."""
    separators = node.strings("separators")
    if node.has("tokenexp") == bool(separators):
        raise ModelError(f"{node}: it takes either tokenexp or separators")
    if separators == ("",):
        return searching_automaton_of(["(?s)."]), "found"
    if separators:
        return searching_automaton_of(separators), "between"
    return searching_automaton_of([node.string("tokenexp")]), "found"


def _marked(pieces: Node, counts: Node, begin: int, end: int, filler: int) -> Node:
    """Tokens with a mark before the first and behind the last one."""
    rank = tensor_of(pieces).ndim
    zeros = expand_dims(counts, rank - 1) * 0
    row = concatenate([zeros + begin, pieces, zeros + filler], rank - 1)
    places = positions(tensor_of(row).shape[-1], [pieces])
    return where(equal(places, expand_dims(counts, rank - 1) + 1), Constant(np.array(end, np.int64)), row)
