"""Tables that fit their width: numbers stand whole, and names give way in their middle."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .dataclass import dataclass

LEAST_NAME = 12
"""Columns that a name keeps, however narrow the terminal is."""
_AMPLE = 1 << 20


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a table: one line, of which the middle becomes ``…`` where there is no room."""

    text: str
    style: str = ""

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        size = cell_len(self.text)
        return Measurement(min(size, LEAST_NAME), size)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(cut_middle(self.text, options.max_width), self.style, no_wrap=True)


def cut_middle(text: str, width: int) -> str:
    """The text in at most ``width`` columns, ``…`` in the place of its middle: ``"fused_nn_…relu_12"``."""
    if cell_len(text) <= width:
        return text
    left = max(0, width - 1) // 2
    right = max(0, width - 1 - left)
    return f"{set_cell_size(text, left)}…{set_cell_size(text[::-1], right)[::-1]}"


def number_table(names: Sequence[str], numbers: Sequence[str], texts: Sequence[str] = ()) -> Table:
    """A table with columns of these titles: ``names`` hold ``Name``, ``numbers`` stand right-aligned and whole,
    ``texts`` are folded between words."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for name in names:
        table.add_column(name)
    for number in numbers:
        table.add_column(Text(number, justify="right"), justify="right", no_wrap=True)
    for text in texts:
        table.add_column(text, overflow="fold")
    return table


def lines_of(*names: str) -> Group:
    """A cell of several names, one below the other; those behind the first are dim."""
    return Group(*(Name(name, "dim" if number else "") for number, name in enumerate(names)))


def print_table(console: Console, table: Table) -> None:
    """Print a table; the console becomes wider where its numbers would not be whole otherwise."""
    least = Measurement.get(console, console.options.update(width=_AMPLE), table).minimum
    console.width = max(least, console.width)
    console.print(table)


def table_text(table: Table, width: int) -> str:
    """The table in plain text, in ``width`` columns if its numbers fit in there."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as found:
        print_table(console, table)
    return "\n".join(line.rstrip() for line in found.get().strip("\n").splitlines())


def text_width() -> int:
    """The width of the terminal that stdout is, else 80 columns."""
    return Console().width
