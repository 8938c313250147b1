"""The table of memory that a model's entry and the runtime share.

Its address is in the frame of a run. It has 8-byte words:

    grow, owner,                            i8* grow(owner, number, bytes): memory, or null where it is refused
    (address, bytes, needed, idle) a stage, its memory, which grows where it is too small
    (address, bytes, mode) an output,       of those whose size a stage is the first to know

An output's ``mode`` is 0 where its memory is given, and has to do; 2 where it is memory that grows (1 is another mode
of libraries that earlier versions saved). ``grow`` counts outputs behind the stages, and writes what there is then into
the table. ``needed`` are the bytes that the last run needed; ``idle`` counts the runs in a row that needed much less
than there is, and after many of them ``grow`` is called for less.
"""

from __future__ import annotations

from enum import IntEnum


class OutputMode(IntEnum):
    """Whose memory an output is."""

    GIVEN = 0
    GROWS = 2


GROW_WORDS = 2
STAGE_WORDS = 4
NEEDED, IDLE = 2, 3
"""Words of a stage, behind the first."""
OUTPUT_WORDS = 3


def stage_word(number: int) -> int:
    """The first word of a stage in the table of memory."""
    return GROW_WORDS + STAGE_WORDS * number


def output_word(stages: int, number: int) -> int:
    """The first word of the output of that number among those of the table."""
    return stage_word(stages) + OUTPUT_WORDS * number


def table_words(stages: int, outputs: int) -> int:
    """The words of a table of memory for so many stages and outputs."""
    return output_word(stages, outputs)
