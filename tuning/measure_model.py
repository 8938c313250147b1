"""Measures a whole model tuned beside the same untuned, in a child process."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.arrays import Array
from ..runtime.bound_engine import BoundEngine
from ..runtime.contenders.latency import median_interval
from ..runtime.engine import Engine
from ..runtime.library import Library, load
from ..runtime.measure.closeness import allowed_distance, distance
from .bursts import fastest_burst
from .checks import random_array
from .outcome import OutcomeKind
from .paired_rounds import RoundLimits, take_turns
from .sandbox import Answer

GRACE = 150.0
"""Calls of the untuned model for which there is time beside the seconds of the job."""
SAMPLE_SECONDS = 0.02
"""A sample is of so many calls that the untuned model takes so long."""


def measure_model(job: Mapping[str, Any]) -> Iterator[Answer]:
    """Answer that it is ready, then with the ratio of the times of the untuned and the tuned library. Which of them is
    loaded, and takes its memory, first alternates with the seed."""
    with tempfile.TemporaryDirectory(prefix="loopwright-tune-") as folder:
        order = (0, 1) if job["seed"] % 2 == 0 else (1, 0)
        loaded = {k: _loaded(job["libraries"][k], Path(folder) / f"{k}.lwlib") for k in order}
        inputs = _inputs(loaded[0], job["inputs"], job["seed"])
        bound = {k: Engine(loaded[k], threads=job["threads"]).bind(inputs) for k in order}
        for k in order:
            bound[k]()
        yield {"grace": GRACE * _seconds(bound[0], 1)}
        for _ in job["items"]:
            yield _answer((bound[0], bound[1]), RoundLimits(*job["limits"]), job["seed"])


def _answer(engines: tuple[BoundEngine, BoundEngine], limits: RoundLimits, seed: int) -> Answer:
    untuned, tuned = engines
    first, second = untuned(), tuned()
    for number, (expected, got) in enumerate(zip(first, second, strict=True)):
        if (error := distance(got, expected)) > (allowed := allowed_distance(expected)):
            detail = f"output {number} of the tuned model is off by {error:.2g} of its largest, not {allowed:.2g}"
            return {"kind": OutcomeKind.WRONG.value, "detail": detail}
    count = 1
    while (seconds := _seconds(untuned, count)) < SAMPLE_SECONDS and count < 10_000:
        count = 1 + max(count, int(count * SAMPLE_SECONDS / max(seconds, 1e-7)))
    turns = take_turns(
        lambda: fastest_burst(lambda calls: _seconds(untuned, calls), count),
        lambda: fastest_burst(lambda calls: _seconds(tuned, calls), count),
        limits,
        random.Random(seed),
    )
    if not turns.ratios:
        return {"kind": OutcomeKind.TIMELESS.value, "detail": "the clock saw no time pass"}
    low, high = median_interval(turns.ratios)
    times = {"ratio": turns.ratio, "low": low, "high": high, "seconds": turns.candidate, "ratios": turns.ratios}
    return {"kind": OutcomeKind.MEASURED.value, **times}


def _seconds(engine: BoundEngine, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        engine()
    return time.perf_counter() - start


def _loaded(given: str | bytes, path: Path) -> Library:
    if isinstance(given, str):
        return load(given)
    path.write_bytes(given)
    return load(path)


def _inputs(library: Library, given: Mapping[str, Array], seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {spec.name: given[spec.name] if spec.name in given else random_array(spec, rng) for spec in library.inputs}
