"""How the demo shows what it finds: headings, code that fits the terminal, and times beside those of others."""

import os
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import loopwright as lw

WIDTH = shutil.get_terminal_size((80, 24)).columns
ROUNDS = 5
LEAST_SECONDS = 0.02
PAUSE_SECONDS = 0.05
"""Before each turn: threads of the contender before may still wait for work, and use the processor."""


def output_folder() -> Path:
    """The folder that the program's argument names, or else build/demo of the clone; it is made where it is missing."""
    clone = Path(__file__).resolve().parents[2]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else clone / "build" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def short(path: str | os.PathLike[str]) -> str:
    """A path as short as it can be written from the current folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def cut(line: str) -> str:
    """A line that fits the terminal."""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def heading(text: str) -> None:
    print(f"\n{text}\n{'=' * min(len(text), WIDTH)}", flush=True)


def show_code(title: str, text: str, limit: int) -> None:
    """At most ``limit`` lines of code, behind a bar, and how many there are."""
    lines = text.expandtabs(4).rstrip().splitlines()
    print(f"{title}{f' ({limit} of {len(lines)} lines)' if len(lines) > limit else ''}:")
    for line in lines[:limit]:
        print(cut(f"│ {line}"))
    print(flush=True)


def hottest_loop(assembly: str) -> str:
    """The innermost loop of a listing for x86 in which most products are summed."""
    loops = re.finditer(r"(?m)^(\.L\w+):\n(?:\s.*\n)*?\s+j\w+\s+\1$", assembly)
    return max((loop[0] for loop in loops), key=lambda text: text.count("fma"))


def innermost_nest(loop_ir: str) -> str:
    """The longest innermost loop of a lowered nest, below the heads of the loops around it."""
    heads: tuple[str, ...] = ()
    bodies: dict[tuple[str, ...], list[str]] = {}
    for line in loop_ir.splitlines():
        heads = tuple(head for head in heads if _depth(head) < _depth(line))
        if line.endswith(":"):
            heads += (line,)
        else:
            bodies.setdefault(heads, []).append(line)
    innermost = (
        heads for heads in bodies if not any(other[: len(heads)] == heads for other in bodies.keys() - {heads})
    )
    longest = max(innermost, key=lambda heads: len(bodies[heads]))
    return "\n".join([*longest, *bodies[longest]])


def show_functions(library: lw.Library, profile: lw.Profile, limit: int = 5) -> None:
    """The fused functions that take the longest, with the shapes of their first input and of their output."""
    arguments = {function.symbol: function.arguments for function in library.functions}
    rows = [("time", "share", "function", "first input → output")]
    for row in profile.functions[:limit]:
        first, *_, last = arguments[row.symbol]
        shapes = " → ".join("×".join(map(str, spec.shape)) for spec in (first, last))
        rows.append((duration(row.seconds), f"{row.share:.0%}", row.name.removeprefix("fused_"), shapes))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print(f"{len(profile.functions)} fused functions; those whose calls take the longest:")
    for spent, share, name, shapes in rows:
        print(cut(f"  {spent:>{widths[0]}}  {share:>{widths[1]}}  {name:{widths[2]}}  {shapes}"))
    print(flush=True)


def compare_times(contenders: Mapping[str, Callable[[], object]], operations: int = 0) -> None:
    """A line for each contender: the median time of its calls, its rate, and how many times as long as the first's.

    They take turns, so that a busy moment of the machine hits all alike.
    """
    rounds = [{who: _seconds(call) for who, call in contenders.items()} for _ in range(ROUNDS)]
    medians = {who: statistics.median(times[who] for times in rounds) for who in contenders}
    first, *_ = medians.values()
    for number, (who, seconds) in enumerate(medians.items()):
        rate = f"{operations / seconds / 1e9:9.1f} GFLOP/s" if operations else ""
        beside = f"   {seconds / first:.2f} × the time" if number else ""
        print(f"  {who:<24} {duration(seconds):>8}{rate}{beside}", flush=True)


def duration(seconds: float) -> str:
    """Three significant digits, in milliseconds or microseconds."""
    value, unit = (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "µs")
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def _seconds(call: Callable[[], object]) -> float:
    """The mean of some calls in a row, the first one left out."""
    time.sleep(PAUSE_SECONDS)
    call()
    calls, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < LEAST_SECONDS:
        call()
        calls += 1
    return passed / calls


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
