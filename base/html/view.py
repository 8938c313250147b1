"""The view of an object: what ``_repr_html_`` gives. It needs no script, and is never longer than ``MOST_BYTES``."""

from __future__ import annotations

from .markup import Markup, element, markup
from .style import STYLE
from .table import shortened

MOST_BYTES = 200_000
"""Notebooks keep what they show in their file, so that a view must be small beside it."""

_LEFT_OUT = "… the rest is left out, as it would be too long here: print has all"
_ROOM_FOR_REST = 2_000 + len(STYLE)
"""Bytes for the style, the title and the note on what is left out."""


def view(title: str, *parts: Markup) -> str:
    """A title, and parts below it: as many as there is room for, in order; at the end it is said that some are left
    out."""
    shown = [element("div", shortened(title), class_="lw-title")]
    room = MOST_BYTES - _ROOM_FOR_REST
    for part in parts:
        room -= len(part.encode())
        if room < 0:
            shown.append(element("div", _LEFT_OUT, class_="lw-cut"))
            break
        shown.append(markup(part))
    return styled(*shown)


def styled(*parts: Markup) -> str:
    """Parts in the style of views, without a bound."""
    return element("div", element("style", Markup(STYLE)), *parts, class_="loopwright-view")
