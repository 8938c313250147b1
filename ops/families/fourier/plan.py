"""How a transform is taken apart into stages, and the roots of unity that they multiply by."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass
from .roots import roots_of_unity

RADICES = (8, 10, 9, 7, 6, 5, 4, 3, 2, 11, 13)
"""How many elements a butterfly has; those of 8 keep all they need in 32 registers."""
PASS = 6
"""What it costs to read and write an element once more, in additions and multiplications."""


@cache
def radices_of(length: int) -> tuple[int, ...] | None:
    """The radices of the stages of a transform, longest first; None where the length has a prime factor beyond 13."""
    found = _cheapest(length)
    return None if found is None else tuple(sorted(found[1], reverse=True))


def cost_of(length: int) -> float:
    """What a transform costs, in additions and multiplications; infinitely many without radices."""
    found = _cheapest(length)
    return math.inf if found is None else found[0] * length


@cache
def _cheapest(length: int) -> tuple[float, tuple[int, ...]] | None:
    """The least cost an element, and the radices that have it."""
    if length == 1:
        return 0.0, ()
    options = []
    for radix in RADICES:
        rest = _cheapest(length // radix) if length % radix == 0 else None
        if rest is not None:
            options.append((PASS + _operations(radix) + rest[0], (radix, *rest[1])))
    return min(options, default=None)


def _operations(radix: int) -> float:
    """Additions and multiplications of a butterfly, for each of its elements."""
    primes = [p for p in (2, 3, 5, 7, 11, 13) for _ in range(_power(radix, p))]
    return sum(2.0 if p == 2 else 1.5 * p for p in primes)


def _power(number: int, prime: int) -> int:
    return next(k for k in range(64) if number % prime ** (k + 1))


@dataclass(frozen=True, slots=True)
class FourierStage:
    """A stage of Stockham's algorithm: ``groups`` groups of ``radix`` elements, for each of ``done`` results so far.

    Element ``[p + groups · j, q]`` of what it reads, for all j, gives elements ``[p, done · k + q]`` for all k.
    ``offset`` is where its roots of unity stand in the table.
    """

    radix: int
    groups: int
    done: int
    offset: int


@cache
def stages_of(length: int) -> tuple[FourierStage, ...]:
    """The stages of a transform of a length that ``radices_of`` has radices for."""
    stages, done, offset = [], 1, 0
    for radix in radices_of(length) or ():
        groups = length // done // radix
        stages.append(FourierStage(radix, groups, done, offset))
        done, offset = done * radix, offset + radix * groups
    return tuple(stages)


def table_extent(length: int, is_packed: bool) -> int:
    """How many roots of unity a transform of this length reads; a packed one is of real numbers, taken as pairs."""
    inner = length // 2 if is_packed else length
    return sum(stage.radix * stage.groups for stage in stages_of(inner)) + (length if is_packed else 0)


def root_table(length: int, is_packed: bool, inverse: bool) -> npt.NDArray[np.float64]:
    """The roots of unity of all stages, ``[2, table_extent]``: for each stage ``[k, p]``; behind them those by which
    the halves of a packed transform are put together."""
    inner = length // 2 if is_packed else length
    tables = [
        roots_of_unity(np.outer(np.arange(s.radix), np.arange(s.groups)).ravel(), s.radix * s.groups, inverse)
        for s in stages_of(inner)
    ]
    if is_packed:
        tables.append(roots_of_unity(np.arange(length), length, inverse))
    roots = np.concatenate([*tables, np.zeros(0)])
    return np.stack([roots.real, roots.imag])
