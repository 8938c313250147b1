"""The view of a report on loops in a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from ...base.html.code import inline_code
from ...base.html.markup import Markup, element, fold, joined
from ...base.html.table import Column, table
from ...base.html.view import view
from .report import CODE_COLUMNS, VectorReport, code_rows

_WHOLE = "print(report)"
_INDENT = "\N{NO-BREAK SPACE}" * 4
"""Other spaces are lost where a cell of a table is put on a page anew, as nbconvert does."""


def report_html(report: VectorReport) -> str:
    """All of the report: warnings, what became of each loop, and the loops of the machine code, folded."""
    return view(f"Loops of {report.name}, for {report.target}", *report_parts(report))


def report_parts(report: VectorReport) -> Iterator[Markup]:
    """The parts of the view of a report, without its title: for a view that says more."""
    for line in (*([report.note] if report.note else []), *report.warnings):
        yield element("div", line, class_="lw-cost")
    rows = (
        (inline_code(_INDENT * loop.depth + loop.header), _verdict(loop.became, loop.costs)) for loop in report.loops
    )
    yield table((Column("loop"), Column("became")), rows, _WHOLE)
    if report.code:
        columns = (Column("loop"), *(Column(title, numeric=True) for title in CODE_COLUMNS))
        yield fold("loops of the machine code", table(columns, code_rows(report.code), _WHOLE))


def _verdict(became: str, costs: tuple[str, ...]) -> Markup:
    return joined((became, *(element("div", cost, class_="lw-cost") for cost in costs)))
