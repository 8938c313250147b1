"""The results of an imported model, in the forms in which Python is shown them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..base.dataclass import dataclass
from ..base.output_form import OutputForm
from ..graph.node import Node
from .output_forms import OutputForms


@dataclass(frozen=True, slots=True)
class ShownResults:
    """The results of the graph function, with their names and forms."""

    results: tuple[Node, ...]
    names: tuple[str, ...]
    forms: tuple[OutputForm | None, ...]


def shown_results(results: Sequence[Node], names: Sequence[str], forms: OutputForms) -> ShownResults:
    """The results of a model; behind them the bytes of those that are strings, each once."""
    strings = {result: found for result in results if forms.of(result) is None and (found := forms.strings_of(result))}
    sources = list(dict.fromkeys(found.utf8 for found in strings.values()))
    number = {utf8: len(results) + k for k, utf8 in enumerate(sources)}
    shown = [
        OutputForm("strings", source=number[strings[result].utf8]) if result in strings else forms.of(result)
        for result in results
    ]
    taken = list(names)
    for _ in sources:
        taken.append(unique_name("utf8", taken))
    return ShownResults((*results, *sources), tuple(taken), (*shown, *[OutputForm("bytes")] * len(sources)))


def unique_name(name: str, taken: Iterable[str]) -> str:
    """The name, with a number behind it where it is taken."""
    known, found, number = set(taken), name, 1
    while found in known:
        found, number = f"{name}_{number}", number + 1
    return found
