"""Calls of the operators on strings, with their oracles, for the test of all operators."""

import numpy as np
import spans

from loopwright.ops.families.strings.automaton import searching_automaton_of
from loopwright.ops.families.strings.case import CODE_POINTS, STRING_CASE
from loopwright.ops.families.strings.concat import STRING_CONCAT
from loopwright.ops.families.strings.decimal_scale import powers_of_ten
from loopwright.ops.families.strings.equal import STRING_EQUAL
from loopwright.ops.families.strings.index import STRING_INDEX
from loopwright.ops.families.strings.matches import STRING_MATCHES
from loopwright.ops.families.strings.ngram_trie import ngram_trie
from loopwright.ops.families.strings.ngrams import NGRAM_COUNTS, NgramCountsAttrs
from loopwright.ops.families.strings.number_strings import FLOAT_BYTES, INTEGER_BYTES, NUMBER_STRINGS
from loopwright.ops.families.strings.pieces import COUNT_PIECES, STRING_PIECES, PiecesAttrs
from loopwright.ops.families.strings.string_numbers import STRING_NUMBERS, StringNumbersAttrs

WORDS = spans.packed("ab", "", "éa", "abc", "bab", "ab ab", "b")
OTHERS = spans.packed("ab", "x", "éa", "abd", "bab", "ab", "")
BEYOND = np.array([-(2**32) + 3, 5 * 2**32 + 99, 99 * 2**32 + 1, 2**63 - 1, 3 * 2**32 + 2]), WORDS[1]
TEXT = "Grüße ÀÉ жЯ ẞ İ 中 \N{DESERET SMALL LETTER LONG I}z"
GRAMS = [((0,), 2), ((1, 0), 0), ((0, 1, 0), 1), ((2, 2), 0)]
TOKENS = np.array([[0, 1, 0, 1, 2, 2], [1, 0, 0, -1, 1, 1]])
AUTOMATON = searching_automaton_of(["a?b"])
TABLES = AUTOMATON.steps, AUTOMATON.accepts


def _case_table():
    table = np.arange(CODE_POINTS, dtype=np.uint16)
    for code in range(CODE_POINTS):
        if code not in range(0xD800, 0xE000):
            table[code] = ord(spans.in_case(chr(code), True))
    return table


def _trie():
    trie = ngram_trie(GRAMS)
    return trie.slots, trie.parents, trie.tokens, trie.columns


def _pieces(kind, filler):
    def oracle(text, utf8, steps, accepts, *_):
        made = spans.pieces(text, utf8, b"a?b", kind == "found")
        if filler is None:
            return np.array([len(row) for row in made])
        return np.array([(row + [filler] * 5)[:3] for row in made])

    return oracle


def _reading(whole):
    return lambda *inputs: STRING_NUMBERS(*inputs, attrs=StringNumbersAttrs(whole))


def _numbers(spans_of, utf8, powers):
    return np.array([float(text) for text in spans.read(spans_of, utf8)])


def _written(room):
    """Spans and bytes of numbers, each in a room of its own."""

    def oracle(x, powers):
        texts = [f"{value:.8g}" if x.dtype.kind == "f" else str(value) for value in x.ravel().tolist()]
        utf8 = np.zeros(len(texts) * room, np.uint8)
        for k, text in enumerate(texts):
            utf8[k * room : k * room + len(text)] = list(text.encode())
        lengths = np.array([len(text) for text in texts])
        return np.arange(len(texts)) * room * 2**32 + lengths, utf8

    return oracle


CASES = {
    "string_numbers": [
        (_reading(whole=False), _numbers, *spans.packed("12", " -7.5", "1e3", ".25", "inf"), powers_of_ten()),
        (
            _reading(whole=True),
            lambda *inputs: _numbers(*inputs).astype(np.int64),
            *spans.packed("12", " -7", "0"),
            powers_of_ten(),
        ),
    ],
    "number_strings": [
        (NUMBER_STRINGS, _written(FLOAT_BYTES), np.array([1.5, -0.1, 1e20, 0, 1e-7]), powers_of_ten()),
        (NUMBER_STRINGS, _written(INTEGER_BYTES), np.array([1, -20, 0, 2**62]), powers_of_ten()),
    ],
    "string_equal": [
        (STRING_EQUAL, spans.equal, *WORDS, *OTHERS),
        (STRING_EQUAL, spans.equal, *BEYOND, *BEYOND),
    ],
    "string_index": [
        (STRING_INDEX, spans.indices, *strings, *spans.table_of(*keys))
        for strings in (WORDS, BEYOND)
        for keys in (("ab", "", "bab"), ("éa",), tuple("abcdefghij"))
    ],
    "string_concat": [
        (STRING_CONCAT, spans.concatenated, *WORDS, *OTHERS, np.zeros(len(WORDS[1]) + len(OTHERS[1]) + 2)),
    ],
    "string_matches": [
        (STRING_MATCHES, lambda x, y, *_: spans.matches(x, y, b"a?b"), *WORDS, *TABLES),
    ],
    "string_case": [
        (
            STRING_CASE,
            lambda x, _: np.frombuffer(spans.in_case(TEXT, True).encode(), np.uint8),
            np.frombuffer(TEXT.encode(), np.uint8),
            _case_table(),
        )
    ],
    "count_pieces": [
        (lambda *a, kind=kind: COUNT_PIECES(*a, attrs=PiecesAttrs(kind)), _pieces(kind, None), *WORDS, *TABLES)
        for kind in ("found", "between")
    ],
    "string_pieces": [
        (
            lambda *a, kind=kind: STRING_PIECES(*a, attrs=PiecesAttrs(kind)),
            _pieces(kind, 77),
            *WORDS,
            *TABLES,
            np.array(77),
            np.zeros(3),
        )
        for kind in ("found", "between")
    ],
    "ngram_counts": [
        (
            lambda *a, options=options: NGRAM_COUNTS(*a, attrs=NgramCountsAttrs(3, *options)),
            lambda x, *_, options=options: spans.ngram_counts(x, GRAMS, 3, *options),
            TOKENS,
            *_trie(),
        )
        for options in ((1, 3, 0), (2, 3, 1), (1, 2, 2))
    ],
}
