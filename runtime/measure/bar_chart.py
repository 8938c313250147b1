"""Bar charts as SVG: a bar a line, its name and what it is about on the left, its number behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from ...base.dataclass import dataclass

_HEIGHT, _LEFT, _LONGEST, _RIGHT, _TOP = 34, 380, 350, 190, 30
"""Pixels: of a bar with its gap, before the bars, of the longest bar, behind it, above all."""
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LETTERS = 56
"""Of a name that fit before the bars."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of that ``length``, in any unit that all of a chart share. ``about`` stands small below its name, ``label``
    behind it; ``dark`` is the part of it that is drawn dark, ``spread`` two lengths between which a line is drawn, and
    ``hint`` what a pointer on it shows."""

    name: str
    about: str
    length: float
    label: str
    dark: float = 0.0
    spread: tuple[float, float] | None = None
    hint: str = ""


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """The chart as the text of an SVG file."""
    longest = max((reach for bar in bars for reach in (bar.length, *(bar.spread or ()))), default=0.0) or 1.0
    width, height = _LEFT + _LONGEST + _RIGHT, _TOP + _HEIGHT * len(bars) + 8
    drawn = "".join(_drawn(_TOP + _HEIGHT * k, bar, _LONGEST / longest) for k, bar in enumerate(bars))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"
 font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="8" y="18" font-weight="bold">{_escaped(title)}</text>
{drawn}</svg>
"""


def _escaped(text: str) -> str:
    """The text as XML, which has no control characters and no half surrogate pairs, as names of a model may have."""
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _drawn(y: int, bar: Bar, scale: float) -> str:
    length, spread = bar.length * scale, [bound * scale for bound in bar.spread or ()]
    rectangle = f'<rect x="{_LEFT}" y="{y + 5}" height="{_HEIGHT - 14}"'
    return f"""<g><title>{_escaped(bar.hint or bar.about)}</title>
<text x="{_LEFT - 8}" y="{y + 14}" text-anchor="end">{_escaped(_cut(bar.name))}</text>
<text x="{_LEFT - 8}" y="{y + 27}" text-anchor="end" font-size="10" fill="#666">{_escaped(_cut(bar.about))}</text>
{rectangle} width="{length:.1f}" fill="#9ecae1"/>
{rectangle} width="{length * bar.dark:.1f}" fill="#3182bd"/>
{"".join(_line(y, spread))}
<text x="{_LEFT + max(length, *spread, 0.0) + 6:.1f}" y="{y + 19}" font-size="11">{_escaped(bar.label)}</text></g>
"""


def _line(y: int, spread: Sequence[float]) -> Iterable[str]:
    """The line of a spread, with a stroke at each end."""
    middle = y + 5 + (_HEIGHT - 14) / 2
    ends = [_LEFT + bound for bound in spread]
    if ends:
        yield _stroke(ends[0], ends[1], middle, middle)
    for end in ends:
        yield _stroke(end, end, middle - 4, middle + 4)


def _stroke(x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" stroke="#333"/>'


def _cut(text: str) -> str:
    """The text, whose middle gives way where it is long, as in tables."""
    kept = (_LETTERS - 1) // 2
    return text if len(text) <= _LETTERS else f"{text[:kept]}…{text[-kept:]}"
