"""Operators on strings, which are spans (``base/spans.py``): a tensor of int64, and one of uint8 that it is of.

Spans that reach beyond the bytes are cut there, so that no span makes code read what is not its own.
"""

from . import case, concat, equal, index, matches, ngrams, number_strings, pieces, string_numbers

__all__ = ["case", "concat", "equal", "index", "matches", "ngrams", "number_strings", "pieces", "string_numbers"]
