"""Results as a table for terminals, as Markdown, as an SVG chart, and as lines of a CSV history.

As a script it prints the page of results: ``report.py kernels.json models.json > RESULTS.md``.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from results import BESIDE, DIRECT, OURS, Record, Result
from rich.console import Console
from rich.table import Table

from loopwright.base.quantities import bytes_text, count_text, rate_text, seconds_text


def _bar_of(result: Result) -> str:
    bar = result.bar
    parts = [f"{bar.ratio:g}×"] if bar.ratio else []
    if bar.share is not None:
        parts.append(f"{bar.share:.0%}" + (" of memory" if bar.either else ""))
    if bar.gain is not None and result.gain is not None:
        parts.append(f"{bar.gain:g}× float32: {result.gain:.2f}")
    return (" or " if bar.either else ", ").join(parts)


def _verdict(result: Result) -> str:
    if OURS not in result.seconds:
        return f"refused: {' '.join(result.refused.get(OURS, '').split()[:1])}"
    wrong = [peer for peer in result.errors if not result.right(peer)]
    if wrong:
        return f"differs from {', '.join(f'{p} by {result.errors[p]:.0e}' for p in wrong)}"
    if not result.bar.ratio and result.bar.share is None:
        return ""
    return "met" if result.met else "below"


COST_HEADINGS = (
    "model",
    "compile",
    "load",
    "onnxruntime",
    "openvino",
    "memory",
    "onnxruntime ",
    "openvino ",
    "ours ÷ onnxruntime",
    "while compiling",
    "constants",
)


def cost_row(model: str, costs: Mapping[str, Mapping[str, float]]) -> Sequence[str]:
    """Seconds to be ready by kind, then the most memory while becoming so and running once."""

    def seconds(kind: str) -> str:
        return seconds_text(costs[kind]["seconds"]) if kind in costs else ""

    def size(kind: str, what: str = "bytes") -> str:
        return bytes_text(costs[kind][what]) if kind in costs else ""

    both = "load" in costs and "onnxruntime" in costs
    return (
        model,
        *map(seconds, ("compile", "load", "onnxruntime", "openvino")),
        *map(size, ("load", "onnxruntime", "openvino")),
        f"{costs['load']['bytes'] / costs['onnxruntime']['bytes']:.2f}" if both else "",
        size("compile"),
        size("compile", "constants"),
    )


def print_costs(costs: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    table = Table(*COST_HEADINGS, title="becoming ready, and memory above what the imports take")
    for model, of_model in costs.items():
        table.add_row(*cost_row(model, of_model))
    Console(width=None if Console().is_terminal else 170).print(table)


HEADINGS = (
    *("case", "threads", "time", "direct", "rate", "of roof", "best peer", "its time"),
    *("ratio", "direct ratio", "bar", ""),
)
"""``direct``: the time with direct arithmetic, where that was measured."""


def row(result: Result) -> Sequence[str]:
    share = result.share

    def seconds(name: str | None) -> str:
        return seconds_text(result.seconds[name]) if name in result.seconds else ""

    return (
        f"{result.group} {result.name}",
        str(result.threads),
        seconds(OURS),
        seconds(DIRECT),
        result.rate,
        f"{share:.0%} ({result.roof})" if share is not None else "",
        result.best_peer or "",
        seconds(result.best_peer),
        *(f"{ratio:.2f}" if ratio is not None else "" for ratio in (result.ratio, result.direct_ratio)),
        _bar_of(result),
        _verdict(result),
    )


def print_results(results: Iterable[Result], title: str) -> None:
    """The table, and why peers were left out."""
    results = list(results)
    console = Console(width=None if Console().is_terminal else 170)
    table = Table(*HEADINGS, title=title)
    for column in table.columns[1:10]:
        column.justify = "right"
    for result in results:
        table.add_row(*row(result))
    console.print(table)
    for line in _left_out(results):
        console.print(line, style="dim", markup=False)
    console.print(summary(results))


def summary(results: Iterable[Result]) -> str:
    """How many bars are met, and the geometric mean of the ratios by number of threads."""
    judged = [r for r in results if r.bar.ratio or r.bar.share is not None]
    parts = [f"{sum(r.met for r in judged)} of {len(judged)} bars met"]
    for threads in sorted({r.threads for r in judged}):
        ratios = [r.ratio for r in judged if r.threads == threads and r.ratio]
        direct = [r.direct_ratio for r in judged if r.threads == threads and r.direct_ratio]
        if ratios:
            also = f", {geometric_mean(direct):.2f} with direct arithmetic" if direct else ""
            parts.append(f"{count_text(threads, 'thread')}: geometric mean {geometric_mean(ratios):.2f}{also}")
    return "; ".join(parts)


GROUP_HEADINGS = ("group", "threads", "cases", "bars met", "ratio", "least", "times as fast as with 1 thread")


def group_rows(results: Sequence[Result]) -> Iterator[Sequence[str]]:
    """Of each group with each number of threads how many bars are met, the geometric mean and the least of the ratios,
    and the geometric mean of what threads bring."""
    alone = {r.key[:2]: r.seconds[OURS] for r in results if r.threads == 1 and OURS in r.seconds}
    for group, threads in dict.fromkeys((r.group, r.threads) for r in results):
        of_group = [r for r in results if (r.group, r.threads) == (group, threads)]
        ratios = [r.ratio for r in of_group if r.ratio]
        gains = [alone[r.key[:2]] / r.seconds[OURS] for r in of_group if r.key[:2] in alone and OURS in r.seconds]
        yield (
            group,
            str(threads),
            str(len(of_group)),
            str(sum(r.met for r in of_group)),
            f"{geometric_mean(ratios):.2f}" if ratios else "",
            f"{min(ratios):.2f}" if ratios else "",
            f"{geometric_mean(gains):.2f}" if gains and threads > 1 else "",
        )


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


def markdown(record: Record, title: str) -> str:
    """The full tables of a record: a heading for each group of cases, then what models cost, and who was left out."""
    about, results = record.about, list(record.results.values())
    found = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    measured = f"Measured at commit {about['commit']} on {about.get('date', 'no day')}."
    lines = [f"## {title}", "", f"{about['machine']}. Python {about['python']}, {found}. {measured}", ""]
    lines += [f"- {threads} thread(s): {_rates(rates)}" for threads, rates in about.get("rates", {}).items()]
    lines += ["", summary(results) + ".", "", *_markdown_table(GROUP_HEADINGS, group_rows(results)), ""]
    for group in dict.fromkeys(r.group for r in results):
        rows = [row(r) for r in results if r.group == group]
        lines += [f"### {group}", "", *_markdown_table(HEADINGS, rows), ""]
        for way, how in BESIDE.items():
            beside = [r for r in results if r.group == group and way in r.seconds and OURS in r.seconds]
            times = ", ".join(f"{r.name} ({r.threads}) {r.seconds[way] / r.seconds[OURS]:.2f}" for r in beside)
            lines += [f"{how.capitalize()}, times as long: {times}.", ""] if times else []
    if record.costs:
        rows = [cost_row(model, costs) for model, costs in record.costs.items()]
        lines += [
            "### becoming ready, and memory above what the imports take",
            "",
            *_markdown_table(COST_HEADINGS, rows),
        ]
    lines += ["", *(f"- {line}" for line in _left_out(results)), ""]
    return "\n".join(lines)


def _rates(rates: Mapping[str, float]) -> str:
    parts = [f"fma peak {rate_text(rates['peak'], 'FLOP/s')}"]
    return ", ".join(parts + [f"{key} {rate_text(rate, 'B/s')}" for key, rate in rates.items() if key != "peak"])


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in cells]


def _left_out(results: Iterable[Result]) -> Iterator[str]:
    """Which peers did not take part in which groups, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for peer, why in result.refused.items():
            reasons.setdefault((peer, " ".join(why.split())), []).append(result.group)
    for (peer, why), groups in reasons.items():
        yield f"{peer} left out of {len(groups)} ({', '.join(dict.fromkeys(groups))}): {why}"


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


def main() -> None:
    print(
        "# Results\n\nTimes are medians over rounds in which the contenders take turns, each in a process of its own;"
    )
    print(
        "the ratio is the best peer's time over ours, the roof what bounds the work: the fma peak, or the bandwidth of"
    )
    print(
        "the place where its data stays between calls, measured in the same rounds. A bar is met or not; which, and by"
    )
    print("how much, each line says.\n")
    print(
        "Of the products in matmul-small, 8×8×8 and larger, the time of a call is taken off: that of the same contender"
    )
    print("on 1×1×1, round by round. What is left counts as the roofline's time at least, since no kernel is faster; a")
    print("peer of which next to nothing is left is left out.\n")
    for path in map(Path, sys.argv[1:]):
        print(markdown(Record(path), path.stem))


if __name__ == "__main__":
    main()
