"""Random calls on strings: of few different bytes, so that many are alike; spans may reach beyond the bytes."""

import numpy as np
import spans
from draw import Case, Given, Input

from loopwright.base.spans import LENGTH_BITS
from loopwright.graph.node import Tuple
from loopwright.ops import nn
from loopwright.ops.families.strings.automaton import searching_automaton_of
from loopwright.ops.families.strings.case import string_case
from loopwright.ops.families.strings.concat import string_concat
from loopwright.ops.families.strings.equal import string_equal
from loopwright.ops.families.strings.index import string_index
from loopwright.ops.families.strings.matches import string_matches
from loopwright.ops.families.strings.ngrams import ngram_counts
from loopwright.ops.families.strings.number_strings import FLOAT_BYTES, INTEGER_BYTES, number_strings
from loopwright.ops.families.strings.pieces import string_pieces
from loopwright.ops.families.strings.string_numbers import string_numbers

PATTERNS = ("b+", "a(b|c)?", "[ac]b|c", "(aa)+b")


def strings(d, shape, size):
    """Inputs that strings are made of: where they begin, how long they are, and their bytes, a, b and c."""
    return Input(shape, "int64", -1, size), Input(shape, "int64", 0, 5), Input((size,), "uint8", 97, 99)


def spans_of(begins, lengths):
    return begins * 2**LENGTH_BITS + lengths


def draw_equal(d):
    shape, sizes = d.shape(0, 3), (d.int(1, 20), d.int(1, 20))
    inputs = (*strings(d, shape, sizes[0]), *strings(d, shape, sizes[1]))
    return Case(
        lambda a, m, x, b, n, y: string_equal(spans_of(a, m), x, spans_of(b, n), y),
        lambda a, m, x, b, n, y: spans.equal(spans_of(a, m), x, spans_of(b, n), y),
        inputs,
    )


def draw_index(d):
    keys = sorted({"".join("abc"[k] for k in d.ints(0, 2, d.int(0, 4))) for _ in range(d.int(1, 30))})
    known = [key.encode() for key in keys]

    def oracle(begins, lengths, utf8):
        made = spans_of(begins, lengths)
        return np.array([known.index(t) if t in known else -1 for t in spans.read(made, utf8)]).reshape(made.shape)

    return Case(lambda b, n, x: string_index(spans_of(b, n), x, keys), oracle, strings(d, d.shape(0, 3), d.int(1, 20)))


def draw_concat(d):
    shape, sizes = d.shape(0, 2), (d.int(1, 20), d.int(1, 20))
    inputs = (*strings(d, shape, sizes[0]), *strings(d, shape, sizes[1]))

    def oracle(a, m, x, b, n, y):
        return spans.concatenated(spans_of(a, m), x, spans_of(b, n), y, np.empty(int((m + n).sum())))

    return Case(lambda a, m, x, b, n, y: Tuple(string_concat(spans_of(a, m), x, spans_of(b, n), y)), oracle, inputs)


def draw_pieces(d):
    pattern, kind = d.one(*PATTERNS), d.one("found", "between")
    filler = -7

    def oracle(begins, lengths, utf8):
        made = spans.pieces(spans_of(begins, lengths), utf8, pattern.encode(), kind == "found")
        widest = max(map(len, made), default=0)
        rows = [row + [filler] * (widest - len(row)) for row in made]
        return np.array(rows).reshape(*begins.shape, widest), np.array([len(row) for row in made]).reshape(begins.shape)

    def make(begins, lengths, utf8):
        automaton = searching_automaton_of([pattern])
        return Tuple(string_pieces(spans_of(begins, lengths), utf8, automaton, kind, filler=filler))

    return Case(make, oracle, strings(d, d.shape(0, 2), d.int(1, 20)))


def draw_matches(d):
    pattern = d.one(*PATTERNS)
    return Case(
        lambda b, n, x: string_matches(spans_of(b, n), x, pattern),
        lambda b, n, x: spans.matches(spans_of(b, n), x, pattern.encode()),
        strings(d, d.shape(0, 3), d.int(1, 20)),
    )


def draw_case(d):
    upper = d.chance()
    letters = "aZbY 1éÀñŽжЯΩωßİ中ẞ𐐨\N{COMBINING ACUTE ACCENT}"
    text = "".join(letters[k] for k in d.ints(0, len(letters) - 1, d.int(1, 40)))
    return Case(
        lambda x: string_case(x, upper),
        lambda x: np.frombuffer(spans.in_case(text, upper).encode(), np.uint8),
        (Given(np.frombuffer(text.encode(), np.uint8)),),
    )


def draw_ngrams(d):
    columns, shortest, skips = d.int(1, 6), d.int(1, 2), d.int(0, 2)
    longest = d.int(shortest, 3)
    grams = {d.ints(0, 2, d.int(1, 3)): d.int(0, columns - 1) for _ in range(d.int(1, 12))}
    options = [*grams.items()], columns, shortest, longest, skips
    return Case(
        lambda x: ngram_counts(nn.cast(x, "int64"), *options),
        lambda x: spans.ngram_counts(x, *options),
        (Input((d.int(1, 5), d.int(1, 20)), "int8", -1, 2),),
    )


def draw_numbers(d):
    """Numbers of a few digits, with a point or without; a byte stands for a digit, and the first for the sign."""
    whole, count, digits = d.chance(), d.int(0, 20), d.int(1, 6)
    texts = []
    for _ in range(count):
        text = d.one("", "-", "+", " ") + "".join(map(str, d.ints(0, 9, digits)))
        texts.append(text if whole else text + d.one("", ".5", "e3", ".25e-7"))
    wanted = np.array(texts, np.float64).astype(np.int64 if whole else np.float64)
    inputs = tuple(map(Given, spans.packed(*texts)))
    return Case(lambda b, x: string_numbers(b, x, whole), lambda b, x: wanted, inputs)


def draw_written(d):
    """Half numbers, whose 8 digits are exact."""
    shape, floats = d.shape(0, 2), d.chance()
    room = FLOAT_BYTES if floats else INTEGER_BYTES

    def value(x):
        return x.astype(np.float64) / 2 if floats else x.astype(np.int64)

    def oracle(x):
        texts = [f"{each:.8g}".encode() for each in value(x).ravel().tolist()]
        utf8 = np.frombuffer(b"".join(text.ljust(room, b"\0") for text in texts), np.uint8)
        begins = np.arange(len(texts), dtype=np.int64) * room
        return spans_of(begins, np.array([len(text) for text in texts], np.int64)).reshape(x.shape), utf8

    def make(x):
        wide = nn.cast(x, "float64") * 0.5 if floats else nn.cast(x, "int64")
        return Tuple(number_strings(wide))

    return Case(make, oracle, (Input(shape, "int32", -(10**5), 10**5),))


DRAWS = {
    "string_numbers": draw_numbers,
    "number_strings": draw_written,
    "string_equal": draw_equal,
    "string_index": draw_index,
    "string_concat": draw_concat,
    "count_pieces": draw_pieces,
    "string_pieces": draw_pieces,
    "string_matches": draw_matches,
    "string_case": draw_case,
    "ngram_counts": draw_ngrams,
}
