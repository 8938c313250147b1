"""Latencies for people: a table for terminals, and a chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...base.quantities import count_text, error_text, seconds_text
from ..measure.bar_chart import Bar, bar_chart
from .latency import PERCENTILES, Latency

if TYPE_CHECKING:
    from rich.table import Table

DIFFERS = "≠"
"""Marks a contender whose outputs are not ours."""
_REASON = 60
"""Characters of a problem that a chart has room for."""


def latency_table(latencies: Sequence[Latency]) -> Table:
    """A row a contender; ours is the first. For rich to print."""
    from ...base.table import Name, number_table

    ours, *peers = latencies
    beside = ("time ÷ ours", "off by") if peers else ()
    table = number_table(("contender",), ("calls", *(f"p{p}" for p in PERCENTILES), *beside))
    for each in latencies:
        table.add_row(Name(each.contender), *([""] * (4 + len(beside)) if each.problem else _numbers(each, ours)))
    return table


def _numbers(each: Latency, ours: Latency) -> Iterator[str]:
    yield str(len(each.samples))
    yield from (seconds_text(each.percentile(p)) for p in PERCENTILES)
    if each.difference is not None:
        yield str(each.ratio_to(ours))
        yield f"{'' if each.agrees else f'{DIFFERS} '}{error_text(each.difference)}"


def latency_notes(latencies: Sequence[Latency]) -> Iterator[str]:
    """What the rows do not say: who did not get through, and who computes something else."""
    for each in latencies:
        if each.problem:
            yield f"{each.contender} failed: {each.problem}"
        elif not each.agrees and each.difference is not None:
            yield (
                f"{DIFFERS} {each.contender} computes something else: its outputs differ from ours by "
                f"{error_text(each.difference)} of the largest magnitude; {error_text(each.allowed)} is allowed"
            )


def latency_chart(title: str, groups: Sequence[Sequence[Latency]]) -> str:
    """An SVG file: a bar a contender, as long as its median call, with a line from the 10th to the 90th percentile.
    There is a group for each number of threads, ours first."""
    return bar_chart(title, [_bar(each, group[0]) for group in groups for each in group])


def _bar(each: Latency, ours: Latency) -> Bar:
    threads = count_text(each.threads, "thread")
    name = f"{each.contender}, {threads}"
    if each.problem:
        return Bar(name, "failed", 0.0, each.problem[:_REASON], hint=each.problem)
    percentiles = ", ".join(f"p{p} {seconds_text(each.percentile(p))}" for p in PERCENTILES)
    ratio = "" if each is ours else f", {each.ratio_to(ours)} of ours"
    about = f"{count_text(len(each.samples), 'call')}{'' if each.agrees else f', {DIFFERS} other outputs'}"
    return Bar(
        name,
        about,
        each.median,
        f"{seconds_text(each.median)}{ratio}",
        dark=1.0 if each is ours else 0.0,
        spread=(each.percentile(10), each.percentile(90)),
        hint=f"{name}: {percentiles}",
    )
