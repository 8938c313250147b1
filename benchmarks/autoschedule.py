"""Autoscheduled kernels beside default schedules and numpy: ``python benchmarks/autoschedule.py [case …]``.

The cases are those of ``te_computes.py``: naive definitions of users' kinds. Each contender is a process of its own,
rounds alternate, and what is compared are medians; a ratio above 1 is how many times as fast as by default. All have
``--threads`` threads. ``--candidates`` and ``--seed`` are those of ``lw.autoschedule``; what a search takes is told.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

from te_case import TeCase
from te_computes import CASES

import loopwright as lw
from loopwright.runtime.contenders.rounds import Contender, Facts, Refused, Run, alternate, ended, serve

KINDS = ("auto", "default", "numpy")


def schedule_of(case: TeCase, kind: str, options: argparse.Namespace) -> lw.Schedule:
    target = lw.resolve_target("native").with_threads(options.threads)
    if kind == "default":
        return lw.default_schedule(case.outputs, target)
    return lw.autoschedule(case.outputs, target, candidates=options.candidates, seed=options.seed)


def contender(name: str, options: argparse.Namespace) -> tuple[Run, Facts]:
    case = CASES[name]()
    arrays = case.arrays()
    if options.contender == "numpy":
        return lambda: case.reference(*arrays), {}
    start = time.perf_counter()
    schedule = schedule_of(case, options.contender, options)
    took = time.perf_counter() - start
    kernel = lw.build(schedule, [*case.inputs, *case.outputs])
    return kernel.bind(*arrays, *case.results(), threads=options.threads), {"seconds to schedule": took}


def measure(names: list[str], options: argparse.Namespace) -> None:
    shared = [f"--{key}={getattr(options, key)}" for key in ("threads", "candidates", "seed")]
    each = {
        kind: Contender([sys.executable, __file__, "--contender", kind, *shared], options.threads) for kind in KINDS
    }
    gains: list[float] = []
    with ended(each.values()):
        for name in names:
            try:
                facts = {kind: one.load(name) for kind, one in each.items()}
            except Refused as reason:
                print(f"{name:18} {reason}", flush=True)
                continue
            refused = alternate(each, options.rounds)
            if refused:
                print(f"{name:18} {refused}", flush=True)
                continue
            auto, default, numpy = (each[kind].median * 1e6 for kind in KINDS)
            gains.append(default / auto)
            took = facts["auto"]["seconds to schedule"]
            print(
                f"{name:18} auto {auto:9.1f} µs, default {default:9.1f} µs: {default / auto:6.2f} times as fast, "
                f"numpy {numpy:9.1f} µs: {numpy / auto:6.2f}; {took:.1f} s to search",
                flush=True,
            )
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        print(f"{len(gains)} cases: {mean:.2f} times as fast as by default (geometric mean), at least {min(gains):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*", default=[], help=f"one of {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--candidates", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contender", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [name for name in options.case if name not in CASES]
    if unknown:
        raise SystemExit(f"no case is called {unknown[0]!r}; there are {', '.join(CASES)}")
    if options.contender:
        serve(lambda name: contender(name, options))
        return
    measure(options.case or list(CASES), options)


if __name__ == "__main__":
    main()
