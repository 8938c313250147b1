"""Strings as spans of the bytes that they are in."""

import numpy as np
import pytest

from loopwright.base.errors import RuntimeArgumentError
from loopwright.base.spans import LENGTH_BITS, LENGTHS, pack_strings, unpack_strings

LETTERS = {"ascii": "ab \0", "separators": "aé\x1f", "two bytes": "aé", "up to four bytes": "aéह😀"}


def random_strings(rng, letters, count, longest):
    lengths = rng.integers(0, longest + 1, count)
    return np.array(["".join(rng.choice(list(letters), n)) for n in lengths] + [None], object)[:-1]


@pytest.mark.parametrize("longest", [0, 5, 300])
@pytest.mark.parametrize("count", [0, 1, 20, 21, 150, 151, 500])
@pytest.mark.parametrize("letters", LETTERS.values(), ids=LETTERS)
def test_spans_are_where_the_bytes_of_each_string_stand(letters, count, longest):
    rng = np.random.default_rng([count, longest])
    arrays = [random_strings(rng, letters, count, longest), random_strings(rng, letters, 6, longest).reshape(2, 3)]
    spans, utf8 = pack_strings(arrays, str)
    data = utf8.tobytes()
    for array, found in zip(arrays, spans, strict=True):
        assert found.shape == array.shape
        assert found.dtype == np.int64
        for string, span in zip(array.flat, found.flat, strict=True):
            begin, length = span >> LENGTH_BITS, span & LENGTHS
            assert data[begin : begin + length] == string.encode()
        np.testing.assert_array_equal(unpack_strings(found, utf8), array)


@pytest.mark.parametrize("behind", [0, 5000])
def test_bytes_that_are_no_character_are_replaced(behind):
    """Also where few are read of many bytes."""
    data = "aé".encode() + b"\0" * behind
    spans = np.array([0 << LENGTH_BITS | 1, 0 << LENGTH_BITS | 2, 2 << LENGTH_BITS | 1, 1 << LENGTH_BITS | 2])
    assert [*unpack_strings(spans, np.frombuffer(data, np.uint8))] == ["a", "a\ufffd", "\ufffd", "é"]
    assert [*unpack_strings(spans[:1], np.frombuffer(data + b"\xff", np.uint8))] == ["a"]


@pytest.mark.parametrize("text", ["a\x1fb", "\x1f", "aé\xffb\x1f"])
def test_many_strings_that_cannot_be_cut_from_one_text_are_told_one_by_one(text):
    data = text.encode("utf-8" if text.isascii() else "latin-1")
    rng = np.random.default_rng(0)
    begins = rng.integers(0, len(data), 200)
    ends = rng.integers(begins, len(data) + 1)
    found = unpack_strings(begins << LENGTH_BITS | (ends - begins), np.frombuffer(data, np.uint8))
    assert [*found] == [data[begin:end].decode(errors="replace") for begin, end in zip(begins, ends, strict=True)]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize(
    ("wrong", "message"), [(3, "found 3 as number 1"), (None, "found None"), ("\ud800", "has no UTF-8")]
)
def test_what_is_no_string_is_named(wrong, message, count):
    with pytest.raises(RuntimeArgumentError, match=message):
        pack_strings([np.array(["a", wrong, *["b"] * count], object)], lambda number: f"input {number}")
