"""The view of an engine in a notebook: what it takes and gives, and what it runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.html.table import Column, facts, table
from ..base.html.view import view
from ..base.quantities import bytes_text
from .executor import Executor
from .executor_config import ExecutorConfig
from .library import Library
from .library_html import model_facts


def engine_html(
    library: Library, configs: Sequence[ExecutorConfig], executors: Sequence[Executor], tactics: Mapping[str, str]
) -> str:
    """The model's inputs and outputs, and a row for each executor; ``executors`` are none before ``init``."""
    arenas = [bytes_text(executor.arena_bytes) for executor in executors] or ["not loaded"] * len(configs)
    rows = [
        (str(number), str(config.threads), ", ".join(map(str, config.cores)) or "any", arena)
        for number, (config, arena) in enumerate(zip(configs, arenas, strict=True))
    ]
    columns = (Column("executor"), Column("threads", numeric=True), Column("cores"), Column("arena", numeric=True))
    chosen = facts({"tactics": ", ".join(f"{symbol}: {name}" for symbol, name in tactics.items())})
    return view(f"Engine of {library.model.name}", model_facts(library.model), table(columns, rows, "engine"), chosen)
