"""Code for people: the hot part of a listing, and runs of lines that differ in numbers only folded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

SHOWN_OF_A_RUN = 2
WIDTH = 140


def shorten(text: str, limit: int) -> str:
    """The text in at most ``limit`` lines, none too wide. Of neighbours that differ in numbers only, the first few are
    kept."""
    lines = list(_without_runs(text.splitlines()))
    shown = [line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines[:limit]]
    return "\n".join([*shown, f"… {len(lines) - limit} more lines"] if len(lines) > limit else shown)


def _without_runs(lines: Sequence[str]) -> Iterator[str]:
    for _, found in groupby(lines, key=lambda line: re.sub(r"( \+ )?\d+", "", line)):
        run = list(found)
        yield from run[:SHOWN_OF_A_RUN]
        if (left := len(run) - SHOWN_OF_A_RUN) > 0:
            indent = run[0][: len(run[0]) - len(run[0].lstrip())]
            yield f"{indent}… {left} more like this"


def hot_block(llvm_ir: str) -> str:
    """The longest basic block that jumps to itself, an innermost loop; without loops, the longest block."""
    blocks = re.findall(r"(?m)^([\w.$-]+):\n((?: .*\n?)*)", llvm_ir)
    loops = [(label, body) for label, body in blocks if f'label %"{label}"' in body]
    label, body = max(loops or blocks, key=lambda block: block[1].count("\n"), default=("", llvm_ir))
    return f"{label}:\n{body}"
