"""A space of made-up decisions, for tests of searchers, and how good its candidates are."""

from loopwright.lowering.decisions import Decision, nearest
from loopwright.tuning.candidate import TuningCandidate
from loopwright.tuning.searcher import TrialResult
from loopwright.tuning.space import Settled

TILED, PLAIN = "matmul.paneled", "matmul.direct"
"""The names are those of products, so that their records serve these."""
MOST_SUMS = 24


class MadeUpSpace:
    """One implementation decides the rows and vectors of a tile, whose product is bounded, and whether it packs, which
    is illegal with an odd number of rows; the other one decides nothing."""

    implementations = (TILED, PLAIN)

    def __init__(self, starts=()):
        self.starts = tuple(starts)

    def settle(self, implementation, wanted):
        if implementation == PLAIN:
            return Settled(TuningCandidate(PLAIN), ())
        made = []

        def decide(name, legal, default):
            own = Decision(name, tuple(legal), default, default)
            value = nearest(wanted[name], own) if name in wanted else default
            made.append(Decision(name, tuple(legal), default, value))
            return value

        rows = decide("rows", range(1, 13), 4)
        decide("vectors", range(1, MOST_SUMS // rows + 1), 1)
        packs = decide("pack", (False, True), False)
        if packs and rows % 2:
            return None
        return Settled(TuningCandidate(TILED, tuple((d.name, d.value) for d in made)), tuple(made))

    def all(self):
        for rows in range(1, 13):
            for vectors in range(1, MOST_SUMS // rows + 1):
                for pack in (False, True):
                    found = self.settle(TILED, {"rows": rows, "vectors": vectors, "pack": pack})
                    if found is not None:
                        yield found.candidate
        yield TuningCandidate(PLAIN)


def gain_of(candidate):
    """The best are 8 rows of 3 vectors, packed; the smooth way there leads over even rows."""
    if candidate.implementation == PLAIN:
        return 0.9
    decided = candidate.decided
    tile = abs(decided["rows"] - 8) / 8 + abs(decided["vectors"] - 3) / 3
    return 2.0 / (1 + tile) * (1.2 if decided["pack"] else 1.0)


def searched(searcher, count=8, most=10_000, gain=gain_of):
    """All that a searcher proposes, in order, each told its gain."""
    found = []
    while len(found) < most:
        proposed = list(searcher.propose(count))
        assert len(proposed) <= count
        if not proposed:
            return found
        found += proposed
        searcher.observe([TrialResult(candidate, gain(candidate)) for candidate in proposed])
    return found
