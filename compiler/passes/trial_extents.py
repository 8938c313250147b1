"""The numbers that calls are tried on in place of dimensions, to find out what their relations ask of these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache

from ..symbols import Numbers, Symbol

LARGE = 100003
"""From here on are the extents to try: larger than any window."""
SMALLER = (5003, 503, 53)
"""And from here on where tensors have many dimensions, whose product would be too large."""
SMALLEST = (11, 2)
"""And what one dimension is beside large ones, where windows may not fit."""


@cache
def primes(count: int, least: int = LARGE) -> tuple[int, ...]:
    """The first primes that are large enough: no two extents have a factor in common."""
    numbers = (n for n in itertools.count(least, 2) if all(n % d for d in range(3, math.isqrt(n) + 1, 2)))
    return tuple(itertools.islice(numbers, count))


def smaller(values: Numbers, least: int) -> dict[Symbol, int]:
    """Smaller values in the same order in place of the large ones."""
    chosen = sorted((symbol for symbol, value in values.items() if value >= LARGE), key=lambda symbol: values[symbol])
    return {**values, **dict(zip(chosen, primes(len(chosen), least), strict=True))}


def large(symbols: Sequence[Symbol], factor: int = 1) -> dict[Symbol, int]:
    """Large values without common factors, but for ``factor``."""
    return {symbol: factor * prime for symbol, prime in zip(symbols, primes(len(symbols)), strict=True)}


def apart(symbols: Sequence[Symbol]) -> dict[Symbol, int]:
    """Large values, each several times the next one."""
    return {symbol: value * 4**k for k, (symbol, value) in enumerate(reversed(large(symbols).items()))}


def turned(symbols: Sequence[Symbol]) -> dict[Symbol, int]:
    """Large values, each of another dimension than ``large`` has it for."""
    values = primes(len(symbols))
    return dict(zip(symbols, (*values[1:], *values[:1]), strict=True))


def one_large(symbols: Sequence[Symbol], symbol: Symbol) -> dict[Symbol, int]:
    """Small values for all but one."""
    return {**dict(zip(symbols, primes(len(symbols), SMALLER[-1]), strict=True)), symbol: LARGE}


def each_small(symbols: Sequence[Symbol]) -> Iterator[dict[Symbol, int]]:
    """Large values for all but one, which is smaller from trial to trial."""
    for least, symbol in itertools.product((SMALLER[-1], *SMALLEST), symbols):
        yield {**large(symbols), symbol: least}
