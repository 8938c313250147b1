"""Pipelines that Halide publishes beside its Adams2019 autoscheduler: ``python benchmarks/halide_cases.py [case …]``.

Ours are tensor expressions of the same definitions, by ``lw.autoschedule`` and by ``lw.default_schedule``, and with
``--measurements 64`` by ``lw.tune_schedule`` too. Each contender is a process of its own, all have ``--threads``
threads and all features of the processor, and their results must agree. A ratio is Halide's time over ours.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from published.shapes import INPUTS, arrays_of

import loopwright as lw
from loopwright import te
from loopwright.runtime.contenders.rounds import Contender, Facts, Refused, Run, alternate, ended, serve

KINDS = ("auto", "tuned", "default", "halide")
TOLERANCE = 1e-3
SAMPLES = 1009
"""Every so many-th element is compared."""


def schedule_of(kind: str, output: te.Tensor, options: argparse.Namespace) -> lw.Schedule:
    target = lw.resolve_target("native").with_threads(options.threads)
    match kind:
        case "default":
            return lw.default_schedule(output, target)
        case "auto":
            return lw.autoschedule(output, target)
    tuned = lw.tune_schedule(
        output, target, measurements=options.measurements, minutes=options.minutes, threads=options.threads
    )
    return tuned.schedule


def contender(name: str, options: argparse.Namespace) -> tuple[Run, Facts]:
    start = time.perf_counter()
    if options.contender == "halide":
        from published.pipelines import prepare

        run, result = prepare(name, options.threads)
    else:
        from published.computes import COMPUTES

        placeholders = [te.placeholder(shape, dtype, name=f"x{k}") for k, (dtype, shape) in enumerate(INPUTS[name])]
        output = COMPUTES[name](*placeholders)
        schedule = schedule_of(options.contender, output, options)
        arrays, result = arrays_of(name)
        kernel = lw.build(schedule, [*placeholders, output])
        run = kernel.bind(*arrays, result, threads=options.threads)
    took = time.perf_counter() - start
    run()
    return run, {"seconds to be ready": took, "sample": np.asarray(result).ravel()[::SAMPLES].astype(float).tolist()}


def agree(samples: Sequence[Sequence[float]]) -> bool:
    scale = max(map(abs, samples[0]))
    return all(np.abs(np.subtract(sample, samples[0])).max() <= TOLERANCE * scale for sample in samples)


def measure(name: str, contenders: dict[str, Contender], rounds: int) -> float | None:
    """Print a line; how many times as fast as Halide the best of ours is, of those that do not measure first."""
    facts: dict[str, Facts] = {}
    for kind, each in contenders.items():
        try:
            facts[kind] = each.load(name)
        except Refused as reason:
            print(f"{name:15} {kind} left out: {reason}", flush=True)
    if not agree([fact["sample"] for fact in facts.values()]):
        print(f"{name:15} the results differ", flush=True)
        return None
    ready = {kind: contenders[kind] for kind in facts}
    for kind, reason in alternate(ready, rounds, measure=lambda each: each.measure(1)).items():
        print(f"{name:15} {kind} left out: {reason}", flush=True)
        ready.pop(kind)
    times = {kind: each.median for kind, each in ready.items()}
    theirs = times.get("halide", math.nan)
    parts = [f"{kind} {1e3 * t:8.2f} ms" + f": {theirs / t:5.2f}" * (kind != "halide") for kind, t in times.items()]
    searched = ", ".join(f"{kind} {fact['seconds to be ready']:.0f} s" for kind, fact in facts.items())
    print(f"{name:15} {'; '.join(parts)} (ready in: {searched})", flush=True)
    return theirs / times["auto"] if {"halide", "auto"} <= set(times) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*", default=[], help=f"some of {', '.join(INPUTS)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measurements", type=int, default=0, help="tune with so many as well (default: do not)")
    parser.add_argument("--minutes", type=float, default=4.0, help="of each case's tuning (default: 4)")
    parser.add_argument("--contender", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        serve(lambda name: contender(name, options))
        return
    shared = [f"--{key}={getattr(options, key)}" for key in ("threads", "measurements", "minutes")]
    kinds = [kind for kind in KINDS if kind != "tuned" or options.measurements]
    each = {k: Contender([sys.executable, __file__, "--contender", k, *shared], options.threads) for k in kinds}
    with ended(each.values()):
        found = [measure(name, each, options.rounds) for name in options.case or INPUTS]
    ratios = [ratio for ratio in found if ratio]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} cases: {mean:.2f} times as fast as Halide (geometric mean), at least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
