"""HTML as values: text is escaped when an element takes it in, so that no name or program can become markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already. Any other text is escaped before it becomes a part of an element."""

    __slots__ = ()


def markup(text: str) -> Markup:
    """The text as HTML: markup as it is, all else escaped, with half surrogate pairs, which no page can hold, as
    question marks."""
    return text if isinstance(text, Markup) else Markup(escape(text.encode("utf-8", "replace").decode()))


def joined(parts: Iterable[str]) -> Markup:
    """The parts one after another."""
    return Markup("".join(map(markup, parts)))


def element(name: str, *children: str, **attributes: str) -> Markup:
    """The markup of one element, around its parts. An underscore at the end of an attribute's name is left out, as in
    ``class_``.

    >>> element("td", "a < b", class_="lw-number")
    '<td class="lw-number">a &lt; b</td>'
    """
    given = "".join(f' {key.rstrip("_")}="{markup(str(value))}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def fold(summary: str, *parts: str, unfolded: bool = False) -> Markup:
    """Parts that a click on their summary shows and hides."""
    content = element("summary", summary), *parts
    return element("details", *content, open="") if unfolded else element("details", *content)
