"""Tests over combinations of values: each pair of values always, or each value, and all combinations among the slow
tests."""

from collections.abc import Iterable, Sequence
from itertools import combinations, product

import pytest


def each_pair(**values):
    """Parametrize a test with the values of several names, of each name a sequence or a dict's keys.

    The combinations that run always hold each pair of values of any two names at least once, which finds what two
    choices together break; all others are marked as slow.
    """
    return _parametrized(values, covering([len(column) for column in values.values()]))


def each_value(**values):
    """As ``each_pair``, for tests that take long: the combinations that run hold each value at least once."""
    counts = [len(column) for column in values.values()]
    return _parametrized(values, {tuple(k % count for count in counts) for k in range(max(counts))})


def _parametrized(values, chosen):
    columns = [list(column) for column in values.values()]
    return pytest.mark.parametrize(
        list(values),
        [
            pytest.param(
                *(column[k] for column, k in zip(columns, at, strict=True)),
                id="-".join(_text(column[k]) for column, k in zip(columns, at, strict=True)),
                marks=() if at in chosen else pytest.mark.slow,
            )
            for at in product(*(range(len(column)) for column in columns))
        ],
    )


def covering(counts: Sequence[int]) -> set[tuple[int, ...]]:
    """Few combinations of one number below each count which hold every pair of numbers of two places: each time that
    combination which has most pairs that are missing, the first of several."""
    combined = list(product(*map(range, counts)))
    missing = {pair for each in combined for pair in _pairs(each)}
    chosen = set()
    while missing:
        best = max(combined, key=lambda each: len(missing.intersection(_pairs(each))))
        chosen.add(best)
        missing.difference_update(_pairs(best))
    return chosen


def _pairs(combination: tuple[int, ...]) -> Iterable[tuple[tuple[int, int], tuple[int, int]]]:
    return combinations(enumerate(combination), 2)


def _text(value) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)
