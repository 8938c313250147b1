"""What ``loopwright run`` tells of a compiled model and of its run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from .. import RuntimeArgumentError
from ..codegen.model import CompiledFunction
from ..ir.quantities import digits, seconds_text, share_text
from ..ir.table import Name, lines_of, number_table, print_table
from ..runtime.arrays import Array
from ..runtime.library import Library
from .shorten import hot_block, shorten

PIPE_WIDTH = 160
LOOP_LINES = 40
LLVM_LINES = 24


def make_console() -> Console:
    """The console on stdout; text in a pipe is not folded to the width of a terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises ``RuntimeArgumentError`` where that cannot be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RuntimeArgumentError(f"{path} cannot be written: {error.strerror}") from error


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


def outputs_json(library: Library, outputs: Sequence[Array]) -> list[dict[str, Any]]:
    """Shape, dtype, least, mean and largest element of each output; of those that are finite, if there are any."""
    return [
        {"output": spec.name, "dtype": str(spec.dtype), "shape": list(array.shape)} | _statistics(array)
        for spec, array in zip(library.outputs, outputs, strict=True)
    ]


def print_outputs(console: Console, library: Library, outputs: Sequence[Array]) -> None:
    """``outputs_json`` as a table."""
    table = number_table(["output", "type"], ["least", "mean", "largest", "not finite"])
    for spec, row in zip(library.outputs, outputs_json(library, outputs), strict=True):
        kind = f"{spec.dtype}[{', '.join(map(str, spec.shape))}]"
        numbers = (digits(row[name]) if name in row else "" for name in ("least", "mean", "largest"))
        table.add_row(Name(spec.name), Name(kind), *numbers, str(row["not_finite"]))
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
        calls[step.function.symbol] += 1
        total[step.function.symbol] += seconds
    return calls, total


def _statistics(array: Array) -> dict[str, float]:
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    found: dict[str, float] = {"not_finite": int(values.size - finite.size)}
    if finite.size:
        found |= {"least": float(finite.min()), "mean": float(finite.mean()), "largest": float(finite.max())}
    return found
