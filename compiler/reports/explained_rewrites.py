"""Which rewrites of a model's calls tuning records name, and whether they are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ...base.brief import BriefRepr
from ...base.dataclass import dataclass
from ...base.quantities import seconds_text
from ...graph.node import Call, Function
from ...graph.visit import post_order
from ...ops.families.attention.written_out import written_out
from ..layout.layout_planning import plan_layouts
from ..layout.recorded_rewrite import rewrite_match, rewrite_name
from ..passes.write_out_attention import FUSED, is_attention
from ..selection.choices import call_text
from ..selection.records import Match
from ..settings import CompileSettings


@dataclass(frozen=True, slots=True, repr=False)
class ExplainedRewrite(BriefRepr):
    """A call as it was before layouts are planned (text), the rewrite that a record names, ``reason``: on what machine
    that was, and what the model took with it, and the imported nodes of such calls."""

    call: str
    rewrite: str
    reason: str
    origin: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self) | {"origin": list(self.origin)}

    def __str__(self) -> str:
        origin = f", for {', '.join(self.origin)}" if self.origin else ""
        return f"rewrite of {self.call}{origin}\n      → {self.rewrite}: {self.reason}"


def explained_rewrites(graph: Function, settings: CompileSettings) -> tuple[ExplainedRewrite, ...]:
    """The rewrites that records name for calls of a graph whose layouts are not planned yet, calls of one type
    together."""
    origins: dict[tuple[str, str, str], dict[str, None]] = {}
    for call, match, is_made in _recorded(graph, settings):
        took = f"recorded on {match.level}, where the model took {seconds_text(match.record.cost)}"
        reason = took if is_made else f"{took}; there is none here, and it is planned as without it"
        key = call_text(call), match.record.implementation, reason
        origins.setdefault(key, {}).update(dict.fromkeys(call.origin))
    return tuple(ExplainedRewrite(*key, tuple(origin)) for key, origin in origins.items())


def _recorded(graph: Function, settings: CompileSettings) -> Iterator[tuple[Call, Match, bool]]:
    """Calls whose rewrite records name, the record, and whether the call can be made so."""
    for node in post_order(graph.body):
        if is_attention(node) and (match := rewrite_match(node, settings)) is not None:
            yield node, match, match.record.implementation == FUSED or written_out(node) is not None
    for choice in plan_layouts(graph, settings).choices:
        if (match := rewrite_match(choice.call, settings)) is not None:
            yield choice.call, match, rewrite_name(choice.chosen.layouts) == match.record.implementation
