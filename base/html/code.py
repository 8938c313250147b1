"""Program text as HTML: coloured, the first lines open and the rest folded, and cut where it is very long.

The colours and what they mark are those of the explorer (``explorer/assets/text_view.js``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from .markup import Markup, element, fold, joined, markup

Language: TypeAlias = Literal["loops", "graph", "python", "llvm", "assembly"]

OPEN_LINES = 40
"""So many lines are shown before the rest is folded."""

FOLDED_LINES = 8
"""Fewer lines than this are not worth a fold."""

MOST_BYTES = 60_000
"""A text whose HTML would be longer is cut."""

LONGEST_LINE = 600

_NUMBER = r"(?P<number>\b\d[\w.]*\b)"
_TOKENS: dict[Language, re.Pattern[str]] = {
    "loops": re.compile(
        r"(?P<quiet>#.*$)|(?P<keyword>\b(?:for|in|if|else|while|def|let|assert|where)\b)"
        rf"|(?P<kind>\b(?:vectorized|parallel|unrolled)\b)|{_NUMBER}"
    ),
    "graph": re.compile(
        rf"(?P<quiet>#.*$)|(?P<keyword>\b(?:def|return)\b)|(?P<kind>\b[a-z_][\w.]*(?=\())|(?:%[\w.]+)|{_NUMBER}"
    ),
    "python": re.compile(rf"(?P<quiet>#.*$)|(?P<keyword>\.\w+(?=\())|(?P<kind>\"[^\"]*\")|{_NUMBER}"),
    "llvm": re.compile(
        r"(?P<quiet>;.*$|, align \d+|![\w.]*)|(?P<keyword>\b(?:define|ret|br|phi|load|store|call|declare)\b)"
        r"|(?P<kind><\d+ x \w+>)|(?P<number>(?<=\s)-?\d[\w.+-]*)"
    ),
    "assembly": re.compile(
        r"(?P<quiet>\s#.*$|^\s+\..*$)|(?P<keyword>^\s+[a-z]\w*)|(?P<kind>%[xyzk](?:mm)?\d+\b)|(?P<number>\$-?\w+)"
    ),
}


def code(text: str, language: Language, whole: str, most_bytes: int = MOST_BYTES) -> Markup:
    """A text of several lines. ``whole`` is what a user types to see all of a text that is cut, as
    ``"print(kernel.assembly)"``."""
    lines = text.splitlines()
    shown = list(_until_full(lines, language, most_bytes))
    left = len(lines) - len(shown)
    cut = element("div", f"… {left} more lines, in {whole}", class_="lw-cut") if left else Markup()
    first = shown if len(shown) <= OPEN_LINES + FOLDED_LINES else shown[:OPEN_LINES]
    rest = shown[len(first) :]
    folded = fold(f"{len(rest)} more lines", _block(rest)) if rest else Markup()
    return element("div", _block(first), folded, cut, class_="lw-code")


def inline_code(text: str, language: Language = "loops") -> Markup:
    """A piece of a program within text, or in a cell of a table."""
    return element("code", _coloured(text, language), class_="lw-inline")


def _until_full(lines: Sequence[str], language: Language, most_bytes: int) -> Iterator[Markup]:
    size = 0
    for line in lines:
        made = _coloured(line, language)
        size += len(made.encode())
        if size > most_bytes:
            return
        yield made


def _block(lines: Sequence[Markup]) -> Markup:
    return element("pre", Markup("\n".join(lines)))


def _coloured(line: str, language: Language) -> Markup:
    line = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"
    parts, end = [], 0
    for match in _TOKENS[language].finditer(line):
        token = markup(match[0])
        parts.append(markup(line[end : match.start()]))
        parts.append(element("span", token, class_=f"lw-{match.lastgroup}") if match.lastgroup else token)
        end = match.end()
    return joined((*parts, markup(line[end:])))
