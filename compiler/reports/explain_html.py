"""The view of an explanation in a notebook: a fold a function, in which each call has its candidates."""

from __future__ import annotations

from collections.abc import Iterator

from ...artifact.choice import CandidateReport, Choice
from ...base.html.code import inline_code
from ...base.html.markup import Markup, element, fold
from ...base.html.table import Column, facts, shortened, table
from ...base.html.view import view
from ...base.quantities import count_text
from .explain import ExplainedFunction, Explanation

MOST_UNFOLDED = 3
"""Of so few functions all is shown at once."""

_WHOLE = "print(explanation)"
_COLUMNS = (
    Column("implementation"),
    Column("priority", numeric=True),
    Column("verdict"),
    Column("conditions"),
    Column("recorded"),
)


def explanation_html(explanation: Explanation) -> str:
    """Each function with the implementation that it has; inside, what else might have served its calls, and why not."""
    count = len(explanation.functions)
    functions = (_function(function, count <= MOST_UNFOLDED) for function in explanation.functions)
    target = facts({"target": shortened(explanation.target, 80)})
    rewrites = (element("div", shortened(str(each))) for each in explanation.rewrites)
    return view(f"Choices for {count_text(count, 'function')}", target, *rewrites, *functions)


def _function(function: ExplainedFunction, unfolded: bool) -> Markup:
    anchor = next((choice for choice in reversed(function.choices) if choice.anchor), None)
    served = "" if anchor is None else f" → {anchor.implementation}"
    count = f", called {function.steps} times" if function.steps > 1 else ""
    origin = facts({"nodes": ", ".join(function.origin)})
    choices = tuple(_choices(function)) or (element("div", "a copy"),)
    return fold(shortened(f"{function.name}{count}{served}"), origin, *choices, unfolded=unfolded)


def _choices(function: ExplainedFunction) -> Iterator[Markup]:
    """What serves each call, and the candidates after the last kernel of a call that has several."""
    for number, choice in enumerate(function.choices):
        if choice.kernel == 0:
            yield element("div", inline_code(choice.call, "graph"))
        yield element("div", "→ ", element("strong", choice.implementation), f": {shortened(choice.reason)}")
        following = function.choices[number + 1 : number + 2]
        if not following or following[0].kernel == 0:
            yield from _candidates(choice)


def _candidates(choice: Choice) -> Iterator[Markup]:
    if len(choice.candidates) > 1 or any(c.clauses or c.recorded is not None for c in choice.candidates):
        yield table(_COLUMNS, map(_row, choice.candidates), _WHOLE)
    for note in choice.notes:
        yield element("div", shortened(note))


def _row(candidate: CandidateReport) -> tuple[str, ...]:
    why = f": {candidate.refused.splitlines()[0]}" if candidate.refused is not None else ""
    return (
        candidate.implementation,
        str(candidate.plevel),
        f"{candidate.verdict}{why}",
        "; ".join(map(str, candidate.clauses)),
        "" if candidate.recorded is None else str(candidate.recorded),
    )
