"""The search of a whole model: rewrites of calls first, then what serves the calls; see ``tune.py``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from ..api.compile import compile
from ..api.model_graph import planned_graph
from ..base.dataclass import dataclass
from ..compiler.selection.records import TuningRecords
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from ..graph.structural import graph_hash
from ..graph.types import GivenShapes
from ..runtime.library import Library
from .bench import Bench
from .journal import Journal
from .report import TuningProgress, TuningReport
from .rewrite_search import RewriteSearch, RewritesFound
from .rewrite_tasks import rewrite_tasks, unplanned
from .searcher import MakeSearcher
from .tasks import tasks_of, why_none
from .tuner import Tuner, TuningBudget

if TYPE_CHECKING:
    from onnx import ModelProto

REWRITES_SHARE = 0.4
"""The part of the time that the rewrites of calls may take, before what serves them is searched."""


@dataclass(frozen=True, slots=True, eq=False)
class TunedModel:
    """A model as it will be compiled, and the names of the operators to tune, all of them if there are none."""

    model: ModelProto | bytes | str | os.PathLike[str] | Function
    shapes: GivenShapes | None
    settings: CompileSettings
    only: Collection[str]

    def library(self, records: TuningRecords | None) -> Library:
        """The model, compiled by records."""
        target, options = self.settings.target, self.settings.options
        return compile(
            self.model,
            target,
            self.shapes,
            options.precision,
            progress=False,
            records=records,
            arithmetic=options.arithmetic,
        )

    def graph(self, settings: CompileSettings) -> Function:
        """The graph whose calls are served, by settings that may have records or leave layouts unplanned."""
        return planned_graph(self.model, self.shapes, settings, False)


def search_model(
    tuned: TunedModel,
    bench: Bench,
    journal: Journal,
    make: MakeSearcher,
    seconds: float,
    seed: int,
    tell: Callable[[TuningProgress], None],
) -> TuningReport:
    """Search rewrites in the graph whose layouts are not planned, then what serves the calls of the planned one, for so
    many seconds at the most, but for what confirms winners. The model is compiled before they are counted, since that
    takes as long as the cache lacks of it."""
    tell(TuningProgress("compiling the model", (), seconds))
    bench.prepare(journal.records())
    end = time.monotonic() + seconds

    def left() -> float:
        return max(0.0, end - time.monotonic())

    rewrites = _search_rewrites(tuned, bench, journal, lambda: left() < (1 - REWRITES_SHARE) * seconds, left, tell)
    settings = tuned.settings.with_records(journal.records())
    graph = tuned.graph(settings)
    found = tasks_of(graph, settings, tuned.only)
    note = "" if found or rewrites.rows else why_none(graph, tuned.settings, tuned.only)
    report = Tuner(found, bench, journal, make, TuningBudget(left()), seed, tell, rewrites).run()
    return replace(report, note=note)


def _search_rewrites(
    tuned: TunedModel,
    bench: Bench,
    journal: Journal,
    is_over: Callable[[], bool],
    left: Callable[[], float],
    tell: Callable[[TuningProgress], None],
) -> RewritesFound:
    settings = tuned.settings.with_records(journal.records())
    graph = tuned.graph(unplanned(settings))
    tasks = rewrite_tasks(graph, settings, tuned.only)
    return RewriteSearch(tasks, graph_hash(graph), settings.target, bench, journal).run(is_over, left, tell)
