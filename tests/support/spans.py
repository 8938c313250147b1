"""Strings as operators take them, made and read one by one; and the oracles of operators on them in Python."""

import itertools
import re

import numpy as np


def packed(*strings):
    """The spans of some strings, and their bytes, one string behind the other."""
    encoded = [string.encode() for string in strings]
    ends = list(itertools.accumulate(map(len, encoded), initial=0))
    spans = [begin * 2**32 + len(data) for begin, data in zip(ends, encoded, strict=False)]
    return np.array(spans, np.int64), np.frombuffer(b"".join(encoded) or b"\0", np.uint8)


def read(spans, utf8):
    """The bytes of spans, as far as they are there."""
    data = utf8.tobytes()
    pairs = [divmod(int(span), 2**32) for span in spans.ravel()]
    return [data[max(begin, 0) : max(begin, 0) + length] for begin, length in pairs]


def table_of(*keys):
    """A table for ``string_index`` whose slots are all taken in order of the keys' hashes, by the book."""
    spans, utf8 = packed(*keys)
    count = 1 << (2 * len(keys)).bit_length()
    slots = [-1] * count
    for number, key in enumerate(keys):
        value = 0x811C9DC5
        for byte in key.encode():
            value = (value ^ byte) * 0x01000193 % 2**32
        while slots[value % count] != -1:
            value += 1
        slots[value % count] = number
    return np.array(slots, np.int32), spans, utf8


def indices(spans, utf8, slots, keys, keys_utf8):
    known = read(keys, keys_utf8)
    found = [known.index(text) if text in known else -1 for text in read(spans, utf8)]
    return np.array(found).reshape(spans.shape)


def equal(a, a_utf8, b, b_utf8):
    pairs = zip(read(a, a_utf8), read(b, b_utf8), strict=True)
    return np.array([x == y for x, y in pairs]).reshape(a.shape)


def concatenated(a, a_utf8, b, b_utf8, size):
    texts = [x + y for x, y in zip(read(a, a_utf8), read(b, b_utf8), strict=True)]
    ends = list(itertools.accumulate(map(len, texts), initial=0))
    spans = [begin * 2**32 + len(text) for begin, text in zip(ends, texts, strict=False)]
    utf8 = np.frombuffer(b"".join(texts).ljust(len(size), b"\0"), np.uint8)
    return np.array(spans).reshape(a.shape), utf8


def pieces(spans, utf8, pattern, found):
    """The pieces of each string as (begin, end): what a regular expression finds, or what is between."""
    made = []
    for span, text in zip(spans.ravel().tolist(), read(spans, utf8), strict=True):
        begin = min(max(span >> 32, 0), len(utf8))
        matches = [match.span() for match in re.finditer(pattern, text)]
        if found:
            parts = matches
        else:
            cuts = [0, *itertools.chain(*matches), len(text)]
            parts = list(zip(cuts[::2], cuts[1::2], strict=True))
        made.append([(begin + low) * 2**32 + high - low for low, high in parts])
    return made


def ngram_counts(tokens, ngrams, columns, shortest, longest, skips):
    """Of each row, by all its subsequences."""
    found = np.zeros((len(tokens), columns), np.float32)
    for row, out in zip(tokens.tolist(), found, strict=True):
        for grams, column in ngrams:
            size = len(grams)
            for distance in range(1, skips + 2):
                if shortest <= size <= longest and (size > 1 or distance == 1):
                    starts = range(len(row) - (size - 1) * distance)
                    out[column] += sum(row[at : at + size * distance : distance][:size] == list(grams) for at in starts)
    return found


def matches(spans, utf8, pattern):
    found = [re.fullmatch(pattern, text) is not None for text in read(spans, utf8)]
    return np.array(found).reshape(spans.shape)


def in_case(text, upper):
    """Letters in their other case, where that takes as many bytes in three bytes at most."""

    def other(letter):
        made = letter.upper() if upper else letter.lower()
        fits = len(made) == 1 and len(made.encode()) == len(letter.encode()) < 4
        return made if fits else letter

    return "".join(map(other, text))
