"""Results as a table for terminals, as Markdown, as an SVG chart, and as lines of a CSV history."""

from __future__ import annotations

import csv
import datetime as dt
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from results import OURS, Record, Result
from rich.console import Console
from rich.table import Table


def shown_seconds(seconds: float) -> str:
    """Three digits, in the unit that suits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _bar_of(result: Result) -> str:
    bar = result.bar
    parts = [f"{bar.ratio:g}×"] if bar.ratio else []
    if bar.share is not None:
        parts.append(f"{bar.share:.0%}" + (" of memory" if bar.either else ""))
    return (" or " if bar.either else ", ").join(parts)


def _verdict(result: Result) -> str:
    if OURS not in result.seconds:
        return f"refused: {result.refused.get(OURS, '')}"
    wrong = [peer for peer in result.errors if not result.right(peer)]
    if wrong:
        return f"differs from {', '.join(f'{p} by {result.errors[p]:.0e}' for p in wrong)}"
    if not result.bar.ratio and result.bar.share is None:
        return ""
    return "met" if result.met else "below"


HEADINGS = ("case", "threads", "time", "rate", "of roof", "best peer", "its time", "ratio", "bar", "")


def row(result: Result) -> Sequence[str]:
    best, share, ratio = result.best_peer, result.share, result.ratio
    return (
        f"{result.group} {result.name}",
        str(result.threads),
        shown_seconds(result.seconds[OURS]) if OURS in result.seconds else "",
        result.rate,
        f"{share:.0%} ({result.roof})" if share is not None else "",
        best or "",
        shown_seconds(result.seconds[best]) if best else "",
        f"{ratio:.2f}" if ratio is not None else "",
        _bar_of(result),
        _verdict(result),
    )


def print_results(results: Iterable[Result], title: str) -> None:
    """The table, and why peers were left out."""
    results = list(results)
    console = Console(width=None if Console().is_terminal else 170)
    table = Table(*HEADINGS, title=title)
    for column in table.columns[1:8]:
        column.justify = "right"
    for result in results:
        table.add_row(*row(result))
    console.print(table)
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for peer, why in result.refused.items():
            reasons.setdefault((peer, why), []).append(result.name)
    for (peer, why), names in reasons.items():
        console.print(f"{peer} left out of {len(names)} ({names[0]} …): {why}", style="dim", markup=False)
    console.print(summary(results))


def summary(results: Iterable[Result]) -> str:
    """How many bars are met, and the geometric mean of the ratios by number of threads."""
    judged = [r for r in results if r.bar.ratio or r.bar.share is not None]
    parts = [f"{sum(r.met for r in judged)} of {len(judged)} bars met"]
    for threads in sorted({r.threads for r in judged}):
        ratios = [r.ratio for r in judged if r.threads == threads and r.ratio]
        if ratios:
            parts.append(f"{threads} thread{'s' * (threads > 1)}: geometric mean {geometric_mean(ratios):.2f}")
    return "; ".join(parts)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def append_history(path: Path, record: Record, results: Iterable[Result]) -> None:
    """One line a contender and case, so that runs can be compared over time."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(["date", "machine", "group", "case", "threads", "contender", "version", "seconds"])
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        for r in results:
            for name, seconds in r.seconds.items():
                version = record.about["versions"].get(name, "")
                where = record.about["machine"]
                writer.writerow([now, where, r.group, r.name, r.threads, name, version, f"{seconds:.6g}"])


_ROW, _LEFT, _UNIT = 18, 330, 150


def svg_chart(results: Iterable[Result], title: str) -> str:
    """A bar a case, as long as the ratio; a line at 1, where the best peer is, and a mark at the bar to meet."""
    drawn = [(r, r.ratio) for r in results if r.ratio is not None and r.bar.ratio]
    height, width = _ROW * len(drawn) + 60, _LEFT + 5 * _UNIT
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            'font-size="12">'
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="20" font-size="14">{escape(title)}</text>',
    ]
    for index, (result, ratio) in enumerate(drawn):
        y = 40 + index * _ROW
        length, bar = min(ratio, 4.5) * _UNIT, _LEFT + result.bar.ratio * _UNIT
        label = f"{result.group} {result.name}, {result.threads} thr."
        colour = "#3b7d4f" if result.met else "#b5523b"
        lines += [
            f'<text x="{_LEFT - 6}" y="{y + 12}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{_LEFT}" y="{y + 2}" width="{length:.0f}" height="{_ROW - 5}" fill="{colour}"/>',
            f'<line x1="{bar:.0f}" x2="{bar:.0f}" y1="{y}" y2="{y + _ROW - 1}" stroke="black" stroke-dasharray="2"/>',
            f'<text x="{_LEFT + length + 4:.0f}" y="{y + 12}">{ratio:.2f} ({escape(result.best_peer or "")})</text>',
        ]
    one = _LEFT + _UNIT
    lines += [f'<line x1="{one}" x2="{one}" y1="34" y2="{height - 10}" stroke="black"/>', "</svg>"]
    return "\n".join(lines) + "\n"
