"""The long run: random schedules in child processes until time is up or enough were accepted; prints what it met.

    python tests/fuzz/campaign.py --seconds 120
    python tests/fuzz/campaign.py --accepted 20000 --each-pair 10 --jobs 2 --seed 7

A schedule counts as accepted if at least one of its steps was, and all that is left of its plan, the refused steps
taken away, computed what it should. Plans are drawn in rounds: each tries pairs of primitives that have met least in
accepted schedules so far. So the seed determines all plans, whatever the number of processes and their speed.
"""

import argparse
import itertools
import json
import os
import queue
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from random_programs import FORMS, KINDS, SIZES
from random_schedules import NUMBERS, PRIMITIVES, TARGETS
from shrink import failure, shrink
from worker import Worker

ROUND = 60
"""Plans drawn before the counts of pairs are looked at again."""
PROGRESS_EVERY = 10
"""Rounds between two lines of progress on stderr."""
NATIVE_EVERY = 5
"""One plan of so many is checked thoroughly: printed after each step, replayed from its trace, run as native code."""


def random_plan(rng, wanted):
    """A plan whose steps name the wanted primitives more than once, amid others."""
    picks = [*wanted, *rng.choices(wanted, k=rng.randint(0, 3)), *rng.choices(PRIMITIVES, k=rng.randint(0, 3))]
    rng.shuffle(picks)
    plan = {
        "dtype": rng.choice(KINDS),
        "sizes": rng.choices(SIZES, k=2),
        "symbolic": rng.choices([True, False, False], k=2),
        "stages": [
            [rng.choice(FORMS), rng.choice([0, 0, 0, 1, 2, 3]), rng.randint(0, 5), rng.randint(0, 39)]
            for _ in range(rng.choice([1, 1, 2, 2, 3, 4]))
        ],
        "extra": rng.randint(0, 5),
        "steps": [
            [name, rng.randint(0, 5), rng.randint(0, 5), rng.randint(0, 7), rng.choice(NUMBERS)] for name in picks
        ],
        "seed": rng.randint(0, 99),
        "outliers": rng.random() < 0.4,
        "target": rng.randrange(len(TARGETS)),
    }
    if "tensorize" in wanted:  # something that an intrinsic computes, in most cases of four elements
        plan["stages"][0] = [rng.choice(["map", "map", "matmul"]), 0, 0, 0]
        plan |= {"sizes": [rng.choice(SIZES), rng.choice([4, 4, 4, 8, 7])], "symbolic": [rng.random() < 0.3, False]}
    if "accumulate" in wanted:  # something that accumulates
        plan["stages"][0] = ["running", 0, 0, rng.randint(0, 39)]
    if {"compute_at", "compute_inline", "reverse_compute_at"}.intersection(wanted):  # a stage between others
        plan["stages"].append([rng.choice(["map", "map", "zip"]), 0, rng.randint(0, 5), rng.randint(0, 39)])
        plan["extra"] = 0
    return plan


@dataclass
class Findings:
    """What was met so far. Mutable."""

    plans: int = 0
    native: int = 0
    accepted: int = 0
    steps: int = 0
    refused: int = 0
    primitives: Counter = field(default_factory=Counter)
    pairs: Counter = field(default_factory=Counter)
    failures: dict = field(default_factory=dict)

    def add(self, plan, native, outcome):
        """Count one plan."""
        self.plans += 1
        self.native += native
        if outcome["error"] is not None:
            self.failures.setdefault(failure(outcome["error"]), (plan, native, outcome["error"]))
            return
        met = Counter(outcome["accepted"])
        self.steps += met.total() + outcome["refused"]
        self.refused += outcome["refused"]
        self.accepted += bool(met)
        self.primitives.update(met)
        self.pairs.update(itertools.combinations(sorted(met), 2))
        self.pairs.update((p, p) for p, times in met.items() if times > 1)

    def rarest(self, count):
        """The pairs met least, in a stable order."""
        every = itertools.combinations_with_replacement(sorted(PRIMITIVES), 2)
        return sorted(every, key=lambda pair: self.pairs[pair])[:count]

    def summary(self):
        return f"{self.plans} plans, {self.accepted} accepted schedules"

    def report(self):
        """All counts as text."""
        names = sorted(PRIMITIVES)
        width = max(map(len, names))
        (rarest,) = self.rarest(1)
        rows = [
            self.summary(),
            f"{self.native} of the plans also printed after each step, replayed from their traces, run as native code",
            f"{self.steps} steps, {self.refused} of them refused: {self.refused / max(self.steps, 1):.1%}",
            f"fewest schedules for a pair of primitives: {self.pairs[rarest]} ({' and '.join(rarest)})",
            "",
            "accepted steps of each primitive, and accepted schedules with each pair (the diagonal: twice the same):",
            " " * (width + 12) + "".join(f"{k:>6}" for k in range(len(names))),
        ]
        for k, name in enumerate(names):
            row = "".join(f"{self.pairs[other, name]:>6}" for other in names[: k + 1])
            rows.append(f"{name:<{width}} {k:>3} {self.primitives[name]:>6} {row}")
        return "\n".join(rows)


def draw(findings, rng):
    """The plans of a round: half of them for the pairs of primitives that have met least, half for any pair."""
    rare = findings.rarest(ROUND // 2)
    return [random_plan(rng, rare[k] if k < len(rare) else rng.sample(PRIMITIVES, 2)) for k in range(ROUND)]


def run(options):
    """Rounds of plans until the options say that it is enough, or Ctrl-C does."""
    findings, start, known = Findings(), time.monotonic(), 0
    workers: queue.SimpleQueue = queue.SimpleQueue()
    for _ in range(options.jobs):
        workers.put(Worker())

    def check(task):
        worker = workers.get()
        try:
            return worker(*task)
        finally:
            workers.put(worker)

    def enough():
        if options.seconds and time.monotonic() - start >= options.seconds:
            return True
        if not options.accepted:
            return False
        return findings.accepted >= options.accepted and findings.pairs[findings.rarest(1)[0]] >= options.each_pair

    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for number in itertools.count():
                plans = draw(findings, random.Random(f"{options.seed} {number}"))
                tasks = [(plan, k % NATIVE_EVERY == 0) for k, plan in enumerate(plans)]
                for task, outcome in zip(tasks, pool.map(check, tasks), strict=True):
                    findings.add(*task, outcome)
                for plan, native, error in list(findings.failures.values())[known:]:
                    met = json.dumps({"plan": plan, "native": native})
                    print(f"after {findings.plans} plans: {met}\n{error}", flush=True)
                known = len(findings.failures)
                if number % PROGRESS_EVERY == 0:
                    print(findings.summary(), file=sys.stderr, flush=True)
                if enough():
                    break
        except KeyboardInterrupt:
            print("interrupted: what follows is of the rounds until then")
    for name, (plan, native, _) in findings.failures.items():
        worker = workers.get()
        small = shrink(plan, lambda p, worker=worker, native=native: worker(p, native)["error"])
        findings.failures[name] = (small, native, worker(small, native)["error"])
        workers.put(worker)
    for _ in range(options.jobs):
        workers.get().close()
    return findings, time.monotonic() - start


def main():
    environment = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=environment("LOOPWRIGHT_FUZZ_SEED"), help="default: a new one")
    parser.add_argument("--seconds", type=float, default=environment("LOOPWRIGHT_FUZZ_SECONDS"))
    parser.add_argument(
        "--accepted", type=int, default=environment("LOOPWRIGHT_FUZZ_ACCEPTED"), help="go on until then"
    )
    parser.add_argument("--each-pair", type=int, default=10, help="and until each pair was met so often")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    if options.seconds is None and options.accepted is None:
        options.seconds = 120.0
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["LOOPWRIGHT_CACHE_DIR"] = cache
        findings, seconds = run(options)
    print(findings.report())
    print(f"\n{seconds:.0f} s, {len(findings.failures)} failures")
    for plan, native, error in findings.failures.values():
        print(f"\n{json.dumps({'plan': plan, 'native': native})}\n{error}")
    return bool(findings.failures)


if __name__ == "__main__":
    sys.exit(main())
