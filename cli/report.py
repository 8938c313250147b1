"""What ``loopwright run`` tells of a compiled model and of its run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..artifact.function import CompiledFunction
from ..base.quantities import seconds_text, share_text
from ..base.table import lines_of, number_table, print_table
from ..runtime.library import Library
from .shorten import hot_block, shorten

LOOP_LINES = 40
LLVM_LINES = 24


def make_console() -> Console:
    """The console on stdout: as wide as the terminal, or ``COLUMNS``, and 80 columns elsewhere."""
    return Console(highlight=False)


def selection_json(library: Library, step_seconds: Sequence[float]) -> list[dict[str, Any]]:
    """The functions in order of first use: calls, their time together, the implementation that serves them, and why."""
    calls, seconds = _by_function(library, step_seconds)
    return [
        {
            "function": function.name,
            "calls": calls[function.symbol],
            "ms": seconds[function.symbol] * 1e3,
            "implementation": function.implementation,
            "why": function.anchor.reason if function.anchor is not None else "it calls no operator",
        }
        for function in library.functions
    ]


def print_selection(console: Console, library: Library, step_seconds: Sequence[float]) -> None:
    """``selection_json`` as a table."""
    table = number_table(["function and implementation"], ["calls", "time"], ["why"])
    for row in selection_json(library, step_seconds):
        names = lines_of(row["function"], row["implementation"])
        table.add_row(names, str(row["calls"]), seconds_text(row["ms"] / 1e3), escape(row["why"]))
    print_table(console, table)


def print_code(console: Console, library: Library, step_seconds: Sequence[float]) -> None:
    """The loop nest and LLVM IR of the function that most of the time goes to, shortened."""
    if not library.functions:
        return
    _, seconds = _by_function(library, step_seconds)
    hottest = hottest_function(library, step_seconds)
    share = seconds[hottest.symbol] / max(sum(step_seconds), 1e-12)
    texts = (
        (f"Loop nest of {hottest.symbol}, {share_text(share)} of the time", shorten(hottest.loop_ir, LOOP_LINES)),
        ("LLVM IR of its longest innermost loop", shorten(hot_block(hottest.llvm_ir), LLVM_LINES)),
    )
    for title, text in texts:
        console.print(f"\n=== {title} ===", markup=False)
        console.print(text, markup=False, soft_wrap=True)


def hottest_function(library: Library, step_seconds: Sequence[float]) -> CompiledFunction:
    """The function that most of the time goes to; there must be one."""
    _, seconds = _by_function(library, step_seconds)
    return max(library.functions, key=lambda function: seconds[function.symbol])


def _by_function(library: Library, step_seconds: Sequence[float]) -> tuple[dict[str, int], dict[str, float]]:
    """How often each function is called, and how long all its calls take, by symbol."""
    calls: dict[str, int] = defaultdict(int)
    total: dict[str, float] = defaultdict(float)
    for step, seconds in zip(library.model.steps, step_seconds, strict=True):
        calls[step.symbol] += 1
        total[step.symbol] += seconds
    return calls, total
