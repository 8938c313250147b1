"""A tree of timings as a flame graph: the whole on top, below each stage its parts, as wide as their seconds.

What stands below nothing is the stage's own time. Stages are summed over all functions, as in the table; below that,
each function by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from .html.markup import Markup, element
from .html.table import shortened
from .html.view import styled, view
from .quantities import count_text, seconds_text, share_text
from .timing import CompileTiming, merged

_LEAST_SHARE = 0.001
"""Parts that took a smaller share of the whole are left out."""


def timing_html(timing: CompileTiming) -> str:
    """The view in a notebook."""
    return view(_title(timing), *_graphs(timing))


def timing_page(timing: CompileTiming) -> str:
    """A page that asks nothing of any network."""
    title = element("title", _title(timing))
    shown = Markup(styled(element("div", _title(timing), class_="lw-title"), *_graphs(timing)))
    return f'<!doctype html>\n<html lang="en"><meta charset="utf-8">{title}{element("body", shown)}</html>\n'


def _title(timing: CompileTiming) -> str:
    return f"{timing.name} took {seconds_text(timing.seconds)}"


def _graphs(timing: CompileTiming) -> list[Markup]:
    graphs = [_box(_with_stages_summed(timing), timing)]
    functions = sorted(timing.functions, key=lambda function: -function.seconds)
    if functions:
        whole = CompileTiming("functions", "stage", sum(f.seconds for f in functions), parts=tuple(functions))
        graphs.append(_box(whole, whole))
    return graphs


def _with_stages_summed(timing: CompileTiming) -> CompileTiming:
    """The tree without functions: their stages stand in their place, those of one name summed."""
    parts = [p for part in timing.parts for p in (part.parts if part.kind == "function" else (part,))]
    summed = tuple(map(_with_stages_summed, merged(parts)))
    counts = {count: getattr(timing, count) for count in CompileTiming.COUNTS}
    return CompileTiming(timing.name, timing.kind, timing.seconds, **counts, parts=summed)


def _box(timing: CompileTiming, whole: CompileTiming, parent: float | None = None) -> Markup:
    """A stage above its parts; ``parent`` are the seconds that its width is a share of."""
    parts = [p for p in timing.parts if p.seconds >= _LEAST_SHARE * whole.seconds]
    of_parts = max(timing.seconds, sum(p.seconds for p in timing.parts))  # those of several processes take more
    below = element("div", *(_box(p, whole, of_parts) for p in parts), class_="lw-flame-parts") if parts else Markup()
    share = 1.0 if not parent else timing.seconds / parent
    name = element("div", shortened(timing.name), class_="lw-flame-name", title=_facts(timing, whole))
    return element("div", name, below, class_="lw-flame", style=f"width: {share:.3%}")


def _facts(timing: CompileTiming, whole: CompileTiming) -> str:
    """What the pointer shows of a stage."""
    share = share_text(timing.seconds / whole.seconds if whole.seconds else 0.0)
    counts: Sequence[str] = [
        count_text(number, count.removesuffix("s"))
        for count in CompileTiming.COUNTS
        if (number := getattr(timing, count))
    ]
    return ", ".join((f"{timing.name}: {seconds_text(timing.seconds)}", share, *counts))
