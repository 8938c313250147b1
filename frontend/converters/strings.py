"""ONNX's operators on strings: joined, cut, cleaned, matched, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...base.dtype import FLOAT32, INT64
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ops.families import reduce
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.gather import take
from ...ops.families.nonzero import nonzero
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.strings.automaton import literal_automaton, searching_automaton_of
from ...ops.families.strings.case import string_case
from ...ops.families.strings.concat import string_concat
from ...ops.families.strings.index import string_index
from ...ops.families.strings.matches import string_matches
from ...ops.families.strings.ngrams import ngram_counts
from ...ops.families.strings.pieces import string_pieces
from ..assumed_extent import with_extent
from ..onnx_node import OnnxNode
from ..registry import converter
from ..string_values import StringTensor

BLANKS = r"[\x09-\x0d\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
"""What Python, and so ONNX, takes for the space between words."""


@converter("StringConcat", 20)
def _string_concat(node: OnnxNode) -> Node:
    a, b = node.required_text(0), node.required_text(1)
    return node.forms.put_strings(StringTensor(*string_concat(a.spans, a.utf8, b.spans, b.utf8)))


@converter("StringSplit", 20)
def _string_split(node: OnnxNode) -> Sequence[Node]:
    """Without a delimiter strings are split where there is space, and have none at their ends."""
    text, delimiter = node.required_text(), node.string("delimiter", "")
    most = node.integer("maxsplit") if node.has("maxsplit") else -1
    automaton = literal_automaton(delimiter.encode()) if delimiter else searching_automaton_of([BLANKS])
    pieces, counts = string_pieces(text.spans, text.utf8, automaton, most=most, strip=not delimiter)
    return node.forms.put_strings(StringTensor(pieces, text.utf8)), counts


@converter("RegexFullMatch", 20)
def _regex_full_match(node: OnnxNode) -> Node:
    text = node.required_text()
    return string_matches(text.spans, text.utf8, node.string("pattern"))


@converter("StringNormalizer", 10)
def _string_normalizer(node: OnnxNode) -> Node:
    """Strings that are stop words are left out, of a vector or a matrix of one row; if none is left, there is an empty
    one. The case that is compared is that of ``case_change_action``, else the lower one, or, if it is sensitive, the
    strings' own. ``locale`` is not looked at: the case of letters is Unicode's."""
    text, stops = node.required_text(), node.strings("stopwords")
    action = node.string("case_change_action", "NONE")
    if action not in ("NONE", "LOWER", "UPPER"):
        raise node.unsupported(f"the case_change_action {action!r}")
    changed = text if action == "NONE" else _in_case(text, upper=action == "UPPER")
    if not stops:
        return node.forms.put_strings(changed)
    compared = text
    if not node.flag("is_case_sensitive"):
        upper = action == "UPPER"
        compared = _in_case(text, upper)
        stops = tuple(word.upper() if upper else word.lower() for word in stops)
    stays = string_index(compared.spans, compared.utf8, stops) < 0
    return node.forms.put_strings(StringTensor(_those_that_stay(node, changed.spans, stays), changed.utf8))


def _in_case(text: StringTensor, upper: bool) -> StringTensor:
    return StringTensor(text.spans, string_case(text.utf8, upper))


def _those_that_stay(node: OnnxNode, spans: Node, stays: Node) -> Node:
    """The spans of which something holds; the empty one if there are none."""
    if tensor_of(spans).ndim == 2:
        spans, stays = (with_extent(x, 0, 1) for x in (spans, stays))
    shape = tensor_of(spans).shape
    if len(shape) != 1 and (len(shape) != 2 or node.numbers(shape[:1]) != (1,)):
        raise node.unsupported(f"leaving words out of {tensor_of(spans)}, which is no vector and no matrix of one row,")
    none = reshape(reduce.max(cast(stays, INT64)) < 1, (1,))
    kept = concatenate([reshape(stays, (-1,)), none], 0)
    all_spans = concatenate([reshape(spans, (-1,)), Constant(np.zeros(1, np.int64))], 0)
    found = take(all_spans, reshape(nonzero(kept), (-1,)))
    return expand_dims(found, 0) if len(shape) == 2 else found


@converter("TfIdfVectorizer", 9)
def _tf_idf_vectorizer(node: OnnxNode) -> Node:
    """Tokens of strings are numbered by their place in the pool. Weights are those of the columns."""
    columns = np.array(node.required_ints("ngram_indexes"))
    width = int(columns.max(initial=-1)) + 1
    tokens, pool = _tokens(node)
    counts = ngram_counts(
        tokens if node.rank == 2 else reshape(tokens, (1, -1)),
        _ngrams(node, pool, columns),
        width,
        node.integer("min_gram_length"),
        node.integer("max_gram_length"),
        node.integer("max_skip_count"),
    )
    found = counts if node.rank == 2 else reshape(counts, (-1,))
    mode, weights = node.string("mode"), node.float_array("weights")
    if len(weights) and len(weights) < width:
        raise ModelError(f"{node}: there are {len(weights)} weights for {width} columns")
    factors = Constant(weights[:width] if len(weights) else np.ones(width, np.float32))
    match mode:
        case "TF":
            return found
        case "IDF":
            return cast(found > 0.0, FLOAT32) * factors
        case "TFIDF":
            return found * factors
        case _:
            raise node.unsupported(f"the mode {mode!r}, which is none of TF, IDF and TFIDF,")


def _tokens(node: OnnxNode) -> tuple[Node, list[int]]:
    """The input as integers, and the pool of n-grams in the same ones."""
    if node.rank not in (1, 2):
        raise ModelError(f"{node}: it takes a vector or a matrix, found {node.type()}")
    text = node.text(0)
    if text is None:
        return cast(node[0], INT64), list(node.required_ints("pool_int64s"))
    words = node.strings("pool_strings")
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return string_index(text.spans, text.utf8, list(numbers)), [numbers[word] for word in words]


def _ngrams(node: OnnxNode, pool: Sequence[int], columns: npt.NDArray[np.int64]) -> list[tuple[Sequence[int], int]]:
    """The n-grams of the lengths that are counted, each with its column. The pool has all of one token first, then
    those of two, and so on, from where ``ngram_counts`` says."""
    starts = [*node.required_ints("ngram_counts"), len(pool)]
    found: list[tuple[Sequence[int], int]] = []
    number = 0
    for size, (begin, end) in enumerate(pairwise(starts), 1):
        if not 0 <= begin <= end <= len(pool) or (end - begin) % size:
            raise ModelError(f"{node}: ngram_counts {starts[:-1]} do not fit a pool of {len(pool)}")
        for at in range(begin, end, size):
            if number >= len(columns):
                raise ModelError(f"{node}: there are more n-grams than the {len(columns)} ngram_indexes")
            if node.integer("min_gram_length") <= size <= node.integer("max_gram_length"):
                found.append((pool[at : at + size], int(columns[number])))
            number += 1
    return found
