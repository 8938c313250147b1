"""Tables as HTML: of facts by their names, and of rows under a head, cut where there are very many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..dataclass import dataclass
from ..quantities import share_text
from .markup import Markup, element, joined

MOST_BYTES = 60_000
"""A table whose HTML would be longer is cut."""

LONGEST_CELL = 200


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its title; numbers stand at the right."""

    title: str
    numeric: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], whole: str) -> Markup:
    """A row for each of ``rows``; columns that are empty in all of them are left out. ``whole`` is what a user types to
    see all of a table that is cut."""
    rows = list(rows)
    kept = [number for number in range(len(columns)) if any(row[number] for row in rows)]
    columns = [columns[number] for number in kept]
    head = element("tr", *(_cell("th", column.title, column) for column in columns))
    body: list[Markup] = []
    size = left = 0
    for row in rows:
        made = element("tr", *(_cell("td", row[number], column) for number, column in zip(kept, columns, strict=True)))
        size += len(made.encode())
        if size > MOST_BYTES:
            left += 1
        else:
            body.append(made)
    shown = element("table", element("thead", head), element("tbody", *body), class_="lw-table")
    cut = element("div", f"… {left} more rows, in {whole}", class_="lw-cut") if left else Markup()
    return element("div", shown, cut, class_="lw-scroll")


def facts(named: Mapping[str, str]) -> Markup:
    """What is known of an object, a line a fact; those without a text are left out."""
    lines = (joined((element("dt", name), element("dd", shortened(text)))) for name, text in named.items() if text)
    return element("dl", *lines, class_="lw-facts")


def share_bar(share: float) -> Markup:
    """A share, from 0 to 1, as a percentage with a bar behind it."""
    return element("span", share_text(share), class_="lw-share", style=f"--lw-share: {min(1.0, max(0.0, share)):.1%}")


def shortened(text: str, longest: int = LONGEST_CELL) -> str:
    """The text, cut if it is long; markup as it is."""
    return text if isinstance(text, Markup) or len(text) <= longest else f"{text[:longest]}…"


def _cell(name: str, text: str, column: Column) -> Markup:
    return element(name, shortened(text), class_="lw-number") if column.numeric else element(name, shortened(text))
