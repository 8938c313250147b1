"""What a search for the best candidate is to the tuner: it proposes some, and is told what came of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from .candidate import TuningCandidate
from .space import Space


@dataclass(frozen=True, slots=True)
class TrialResult:
    """``gain`` is how many times as fast as the untuned code a candidate is, and 0 for one that failed."""

    candidate: TuningCandidate
    gain: float


@runtime_checkable
class Searcher(Protocol):
    """A search of one space. It draws from the random numbers that it is given alone, so that a seed replays it."""

    def propose(self, count: int) -> Sequence[TuningCandidate]:
        """Propose at most so many candidates, none that it has proposed before; none at all ends the search."""

    def observe(self, results: Sequence[TrialResult]) -> None:
        """What came of all that was proposed last."""


MakeSearcher: TypeAlias = Callable[[Space, random.Random], Searcher]


def searcher_named(given: object) -> MakeSearcher:
    """What makes the searchers that a user asks for: a name, or a function of a space and of random numbers.

    Raises ``RuntimeArgumentError`` for anything else.
    """
    from .descent import ThenDescent
    from .evolutionary_search import EvolutionarySearch
    from .grid_search import GridSearch
    from .random_search import RandomSearch
    from .ranked_search import PredictsCost, RankedSearch

    def evolution(space: Space, rng: random.Random) -> Searcher:
        searcher: Searcher = EvolutionarySearch(space, rng)
        if isinstance(space, PredictsCost):
            searcher = RankedSearch(space, searcher, rng)
        return ThenDescent(space, searcher)

    known: Mapping[object, MakeSearcher] = {"evolution": evolution, "random": RandomSearch, "grid": GridSearch}
    if isinstance(given, str) and given in known:
        return known[given]
    if not callable(given):
        raise RuntimeArgumentError(
            f"searcher should be {', '.join(map(repr, known))}, or a function of a space and of random numbers that "
            f"gives a Searcher, found {given!r}"
        )
    return given
