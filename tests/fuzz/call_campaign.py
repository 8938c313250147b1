"""The long run of random calls of operators, of random graphs, of random loops, or of calls of onnxruntime's own
operators, in child processes; prints what it met.

    python tests/fuzz/call_campaign.py operators --seconds 120
    python tests/fuzz/call_campaign.py graphs --count 5000 --jobs 1 --seed 7
    python tests/fuzz/call_campaign.py loops --seconds 600
    python tests/fuzz/call_campaign.py contrib --seconds 600

Every operator of the registry takes its turns: with attributes, shapes, types and values that are drawn, for targets
of which some are compiled for only, by the implementation that is chosen, by another one, or scheduled by all. The seed
determines all plans, whatever the number of processes and their speed.
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

import contrib_plans
import graph_plans
import loop_plans
import operator_plans
from shrink import failure
from worker import Worker

KINDS = {"operators": operator_plans, "graphs": graph_plans, "loops": loop_plans, "contrib": contrib_plans}
"""Modules with ``SCRIPT``, ``draw(rng, number)`` that gives a plan, and ``simpler(plan)`` that gives smaller ones."""
BATCH = 32
PROGRESS_EVERY = 10
"""Batches between two lines of progress on stderr."""
ATTEMPTS = 150
"""Most plans tried to make one that fails smaller."""


def shrunk(kind, plan, worker):
    """The smallest plan found that fails in the same way, and its error."""
    error = worker.ask(plan)["error"] or "it passes when it is tried again"
    wanted, tried, progress = failure(error), 0, True
    while progress and tried < ATTEMPTS:
        progress = False
        for candidate in itertools.islice(kind.simpler(plan), ATTEMPTS - tried):
            tried += 1
            found = worker.ask(candidate)["error"]
            if found is not None and failure(found) == wanted:
                plan, error, progress = candidate, found, True
                break
    return plan, error


def run(kind, options):
    """Batches of plans until the options say that it is enough, or Ctrl-C does."""
    start, done, met, failures = time.monotonic(), 0, Counter(), {}
    workers: queue.SimpleQueue = queue.SimpleQueue()
    for _ in range(options.jobs):
        workers.put(Worker(kind.SCRIPT))

    def check(plan):
        worker = workers.get()
        try:
            return worker.ask(plan)
        finally:
            workers.put(worker)

    def enough():
        late = options.seconds is not None and time.monotonic() - start >= options.seconds
        return late or (options.count is not None and done >= options.count)

    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            while not enough():
                plans = [kind.draw(random.Random(f"{options.seed} {n}"), n) for n in range(done, done + BATCH)]
                for plan, outcome in zip(plans, pool.map(check, plans), strict=True):
                    done += 1
                    met.update(outcome["met"])
                    if outcome["error"] and failure(outcome["error"]) not in failures:
                        failures[failure(outcome["error"])] = plan
                        print(f"after {done} plans: {outcome['error']}\n{json.dumps(plan)}", flush=True)
                if done // BATCH % PROGRESS_EVERY == 0:
                    print(f"{done} plans, {len(failures)} failures", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("interrupted: what follows is of the plans until then")
    small = []
    for plan in failures.values():
        worker = workers.get()
        small.append(shrunk(kind, plan, worker))
        workers.put(worker)
    for _ in range(options.jobs):
        workers.get().close()
    return done, met, small, time.monotonic() - start


def main():
    environment = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=environment("LOOPWRIGHT_FUZZ_SEED"), help="default: a new one")
    parser.add_argument("--seconds", type=float, default=environment("LOOPWRIGHT_FUZZ_SECONDS"))
    parser.add_argument("--count", type=int, help="go on until so many plans are done")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    if options.seconds is None and options.count is None:
        options.seconds = 120.0
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["LOOPWRIGHT_CACHE_DIR"] = cache
        done, met, failures, seconds = run(KINDS[options.kind], options)
    print(", ".join(f"{name} {count}" for name, count in sorted(met.items())))
    print(f"\n{done} {options.kind} in {seconds:.0f} s, {len(failures)} failures")
    for plan, error in failures:
        print(f"\n{json.dumps(plan)}\n{error}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
