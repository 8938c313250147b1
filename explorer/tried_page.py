"""``lw.explore_search``: the candidates of a search as a page, each a dot, with its trace and its loop nest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ..base.brief import one_line
from ..base.errors import RuntimeArgumentError
from ..base.quantities import count_text, ratio_text
from ..lowering.schedule import Schedule
from .page import filled_page, write_text


class SearchedSchedule(Protocol):
    """A schedule that was tried, as ``lw.TriedSchedule`` is one."""

    @property
    def schedule(self) -> Schedule:
        """The schedule, with its trace."""

    @property
    def predicted(self) -> float:
        """The cycles that a model predicts; 0 where it predicts none."""

    @property
    def gain(self) -> float:
        """How many times as fast as the first one of the search it was measured to be; 0 where it has no time."""

    @property
    def outcome(self) -> str:
        """What became of it."""


def explore_search(candidates: Sequence[SearchedSchedule], path: str | os.PathLike[str], name: str = "search") -> Path:
    """Write the candidates of a search, such as ``lw.tune_schedule(…).candidates``, as an HTML file: dots show the time
    that was predicted against the one that was measured, on logarithmic scales, and a click shows the trace and the
    loop nest of one. The first candidate is what the others are compared with. Raises ``RuntimeArgumentError`` where
    there are none, or what is given is no list of candidates, and where the file cannot be written.
    """
    _check(candidates, name)
    made = [_entry(candidate, number) for number, candidate in enumerate(candidates)]
    best = max(candidate.gain for candidate in candidates)
    subtitle = f"{count_text(len(made), 'candidate')}; the fastest is {ratio_text(best)} as fast as the first"
    value = {"title": name, "subtitle": subtitle, "candidates": made}
    styles, scripts = ("explorer.css", "tried.css"), ("tried.js", "start.js")
    return write_text(filled_page("tried.html", styles, scripts, name, value), path)


def _check(candidates: object, name: object) -> None:
    if not isinstance(candidates, Sequence) or not all(hasattr(each, "schedule") for each in candidates):
        shown = one_line(repr(candidates))
        raise RuntimeArgumentError(f"candidates are a list of schedules that were tried, found {shown}")
    if not candidates:
        raise RuntimeArgumentError("there are no candidates to show")
    if not isinstance(name, str):
        raise RuntimeArgumentError(f"the name of a search is a text, found {one_line(repr(name))}")


def _entry(candidate: SearchedSchedule, number: int) -> dict[str, Any]:
    measured = f"{ratio_text(candidate.gain)} as fast" if candidate.gain > 0 else candidate.outcome
    predicted = f", predicted {candidate.predicted:,.0f} cycles" if candidate.predicted > 0 else ""
    return {
        "predicted": candidate.predicted,
        "gain": candidate.gain,
        "told": f"{number}: {measured}{predicted}",
        "trace": str(candidate.schedule.trace),
        "nest": str(candidate.schedule),
    }
