"""A searcher of one's own: simulated annealing over the decisions of a product, in 30 lines.

It walks from candidate to candidate; a step to a slower one is taken too, the less likely the longer it has walked.
``lw.tune`` compiles and measures what it proposes, in processes of their own.
"""

import math
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import loopwright as lw
from loopwright.tuning.searcher import TrialResult
from loopwright.tuning.space import neighbours


class Annealing:
    """Mutable: it stands at a candidate, and cools down."""

    def __init__(self, space: lw.Space, rng: random.Random, steps: int = 24) -> None:
        self.space, self.rng, self.steps = space, rng, steps
        self.at, self.gain, self.heat = space.implementations[0], 0.0, 0.3
        self.place = space.settle(self.at, {})
        self.seen: set[object] = set()

    def propose(self, count: int) -> Sequence[lw.TuningCandidate]:
        if self.place is None or self.steps <= 0:
            return []
        near = [self.place.candidate] if not self.seen else neighbours(self.space, self.place)
        new = [candidate for candidate in near if candidate.key not in self.seen]
        chosen = self.rng.sample(new, min(count, 4, len(new)))
        self.seen.update(candidate.key for candidate in chosen)
        self.steps -= len(chosen)
        return chosen

    def observe(self, results: Sequence[TrialResult]) -> None:
        for result in results:
            change = math.log(max(result.gain, 1e-9)) - math.log(max(self.gain, 1e-9))
            if change > 0 or self.rng.random() < math.exp(change / self.heat):
                taken = result.candidate
                self.place, self.gain = self.space.settle(taken.implementation, taken.decided), result.gain
        self.heat *= 0.8


def main(minutes: float) -> None:
    x, w = lw.var("x", (48, 192)), lw.var("w", (192, 96))
    model = lw.Function([x, w], lw.nn.relu(lw.nn.matmul(x, w)))
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "tuned.jsonl"
        print(lw.tune(model, records, minutes, searcher=Annealing, threads=1, seed=1))
        print(lw.explain(lw.compile(model, records=records if records.exists() else None)))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.5)
