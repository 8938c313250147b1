"""A tree of timings as text: the stages of all functions summed, then the functions that took longest."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from .quantities import seconds_text, share_text
from .table import Name, number_table, table_text, text_width
from .timing import CompileTiming, merged

_FUNCTIONS = 12
"""Most functions that are shown by themselves."""
_LEAST_SHARE = 0.002
"""Stages that took a smaller part of the whole are left out."""
_WIDTH = 110
"""Columns that names and counts need, also where nobody looks through a terminal."""


def timing_text(timing: CompileTiming) -> str:
    """A table of the stages, and one of functions if there are any. Stages that took next to nothing are left out."""
    table = _table("stage")
    for depth, part in _lines(timing, 0):
        if part.seconds >= _LEAST_SHARE * timing.seconds:
            _add(table, "  " * depth + part.name, part, timing)
    texts = [table_text(table, max(_WIDTH, text_width()))]
    slowest = sorted(timing.functions, key=lambda function: -function.seconds)[:_FUNCTIONS]
    if slowest:
        table = _table("function")
        for function in slowest:
            _add(table, function.name, function, timing)
        texts.append(table_text(table, max(_WIDTH, text_width())))
    return "\n\n".join(texts)


def _lines(timing: CompileTiming, depth: int) -> Iterator[tuple[int, CompileTiming]]:
    """The stages with their depths, functions replaced by their stages, those of one name summed."""
    yield depth, timing
    parts = [p for part in timing.parts for p in (part.parts if part.kind == "function" else (part,))]
    for part in merged(parts):
        yield from _lines(part, depth + 1)


def _table(title: str) -> Table:
    return number_table([title], ["time", "share", *CompileTiming.COUNTS])


def _add(table: Table, name: str, part: CompileTiming, whole: CompileTiming) -> None:
    share = share_text(part.seconds / whole.seconds if whole.seconds else 0.0)
    counts = (f"{getattr(part, count):,}" if getattr(part, count) else "" for count in CompileTiming.COUNTS)
    table.add_row(Name(name), seconds_text(part.seconds), share, *counts)
