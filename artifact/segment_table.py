"""The table of segments: memory that native code has grow while it runs, since nobody knows before how much it takes.

Its address is in the context of a run (``codegen/abi.py``). It has 8-byte words:

    grow, owner,                 i8* grow(owner, number, bytes, kept): memory, or null where it is refused
    (address, bytes, needed) a segment

``grow`` has a segment of at least so many bytes, twice as many as before if there is memory for them; the first
``kept`` bytes stay what they are. Segments stay between runs, so that the next one asks for nothing. ``needed`` is the
most that was asked for since somebody has set it to 0.
"""

from __future__ import annotations

GROW_WORDS = 2
SEGMENT_WORDS = 3
NEEDED = 2
"""A word of a segment, behind the first."""


def segment_word(number: int) -> int:
    """The first word of a segment in the table."""
    return GROW_WORDS + SEGMENT_WORDS * number


def table_words(segments: int) -> int:
    """The words of a table for so many segments."""
    return segment_word(segments)
