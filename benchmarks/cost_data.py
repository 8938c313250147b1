"""Measures schedules of tensor expressions for the learned cost model: ``python benchmarks/cost_data.py rows.jsonl``.

Of each compute and target it draws schedules as a search meets them: the one by default, the sketch with its defaults,
what differs from that in a decision or two, and some at random. Each is compiled, compared with the first and timed
with one thread: the least CPU time of calls that alternate with those of the others. A row of the file is one schedule:
the compute, the target, the decisions, the analytic model's cycles, the features, and the seconds that were measured.
Computes are ``random 12``, by ``random_computes.py``, or names of ``te_computes.py``. ``--minutes`` ends it; a file
that is there goes on from its last compute.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from random_computes import random_compute
from te_case import TeCase
from te_computes import CASES

import loopwright as lw
from loopwright import te
from loopwright.schedules.auto.candidates import Candidates, ScheduleCandidate, Scheduling

TARGETS = ("native", "x86-64-v3", "x86-64-v2")
COUNT = 14
MOST = 2000
ROUNDS, SAMPLE_SECONDS, SLOW = 5, 1e-3, 30.0
"""Rounds of timing, what a sample takes at least, and how many times the fastest prediction is not worth timing."""


def tensors_of(name: str) -> tuple[Sequence[te.Tensor], Sequence[te.Tensor]]:
    """The inputs and outputs of a compute by its name."""
    if name.startswith("random "):
        made = random_compute(int(name.removeprefix("random ")))
        return made.inputs, made.outputs
    case = CASES[name]()
    return case.inputs, case.outputs


def drawn(candidates: Candidates, rng: random.Random) -> list[ScheduleCandidate]:
    """Schedules of different loop nests."""
    found = {}
    default = candidates.default()
    found[default.nest] = default
    first = candidates.sketched({})
    for _ in range(6 * COUNT):
        if first is None or len(found) >= COUNT:
            break
        found.setdefault(first.nest, first)
        at = rng.choice(list(found.values())) if rng.random() < 0.3 else first
        open_ones = [d for d in at.decisions if len(d.legal) > 1]
        if not open_ones:
            at = first
            open_ones = [d for d in at.decisions if len(d.legal) > 1]
        changed = rng.sample(open_ones, min(len(open_ones), rng.choice([1, 1, 2, 3, len(open_ones)])))
        made = candidates.sketched({**at.chosen, **{d.name: rng.choice(d.legal) for d in changed}})
        if made is not None:
            found.setdefault(made.nest, made)
    return list(found.values())


def measured(name: str, target_name: str, seed: int) -> Iterator[dict[str, object]]:
    """The rows of a compute on a target."""
    target = lw.resolve_target(target_name).with_threads(1)
    inputs, outputs = tensors_of(name)
    made = drawn(Candidates(Scheduling(outputs, target, lw.schedule_rules())), random.Random(seed))
    least = min(each.cost.cycles for each in made)
    made = [each for each in made if each.cost.cycles < SLOW * least]
    case = TeCase(inputs, outputs, lambda: None)
    arrays = case.arrays()
    calls, kept, expected = [], [], None
    for each in made:
        kernel = lw.build(each.schedule, [*inputs, *outputs], target=target)
        results = case.results()
        call = kernel.bind(*arrays, *results, threads=1)
        call()
        expected = results if expected is None else expected
        for one, other in zip(results, expected, strict=True):
            scale = float(np.abs(other).max()) + 1e-6
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 * scale, err_msg=str(each.chosen))
        calls.append(call)
        kept.append(kernel)
    counts = [max(1, round(SAMPLE_SECONDS / max(_seconds(call, 1), 1e-7))) for call in calls]
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for number, call in enumerate(calls):
            best[number] = min(best[number], _seconds(call, counts[number]))
    for each, seconds in zip(made, best, strict=True):
        decided = {d.name: d.value for d in each.decisions}
        yield {
            "compute": name,
            "target": target_name,
            "decided": decided,
            "cycles": each.cost.cycles,
            "seconds": seconds,
            "features": [float(f"{value:.4g}") for value in each.features.values()],
        }


def _names() -> Iterator[str]:
    """Computes, a named one behind two random ones as long as there are some."""
    for number, name in itertools.zip_longest(range(MOST), CASES):
        yield from (f"random {2 * number}", f"random {2 * number + 1}")
        if name is not None:
            yield name


def _seconds(call, count: int) -> float:
    begin = time.thread_time()
    for _ in range(count):
        call()
    return (time.thread_time() - begin) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, target = options.one
        for row in measured(name, target, zlib.crc32(f"{name} {target}".encode())):
            print(json.dumps(row))
        return
    done = set()
    if options.file.exists():
        done = {(r["compute"], r["target"]) for r in map(json.loads, options.file.read_text().splitlines())}
    end = time.monotonic() + 60 * options.minutes
    for name, target in ((name, target) for name in _names() for target in TARGETS):
        if time.monotonic() > end:
            return
        if (name, target) in done:
            continue
        command = [sys.executable, __file__, str(options.file), "--one", name, target]
        found = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if found.returncode:
            print(name, target, found.stderr.strip().splitlines()[-1:], flush=True)
            continue
        with options.file.open("a") as file:
            file.write(found.stdout)
        print(name, target, len(found.stdout.splitlines()), flush=True)


if __name__ == "__main__":
    main()
