"""Quantities as people read them: three significant digits and a unit, for every table, report and message.

No number has an exponent but those that no unit is for, and none is cut: `base/table.py` puts them into columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_SECONDS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
_BYTES = (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))
_LEAST_SHARE = 5e-4
"""A smaller share is 0.0% when it is rounded, but not nothing."""


def digits(value: float) -> str:
    """Three significant digits: ``"1.50"``, ``"12.3"``, ``"1234"``, ``"0"``; an exponent below a thousandth, and from
    10⁹ on: ``"1.23e-05"``."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = int(f"{value:.2e}".partition("e")[2])  # of the rounded number: 9.996 has two digits before the point
    return f"{value:.{max(0, 2 - exponent)}f}" if -3 <= exponent < 9 else f"{value:.2e}"


def seconds_text(seconds: float) -> str:
    """A duration in the unit that suits it: ``"1.50 ms"``."""
    return _scaled(seconds, _SECONDS)


def bytes_text(count: float) -> str:
    """A size in memory or on disk: ``"512 B"``, ``"1.50 KiB"``."""
    return f"{count:.0f} B" if abs(count) < _BYTES[-1][1] else _scaled(count, _BYTES)


def giga(rate: float) -> str:
    """A rate in 10⁹ a second, for columns whose title has the unit: ``"129"``."""
    return digits(rate / 1e9)


def rate_text(rate: float, unit: str) -> str:
    """A rate a second with its unit, ``"FLOP/s"`` or ``"B/s"``: ``"129 GFLOP/s"``."""
    return f"{giga(rate)} G{unit}"


def share_text(share: float) -> str:
    """A part of a whole, in percent with one decimal, so that shares in a column line up: ``"45.6%"``."""
    return "<0.1%" if 0 < share < _LEAST_SHARE else f"{share:.1%}"


def ratio_text(ratio: float) -> str:
    """How many times: ``"1.54×"``."""
    return f"{digits(ratio)}×"


def error_text(error: float) -> str:
    """A relative error, of which the order of magnitude counts: ``"1.2e-05"``, ``"0"``."""
    return f"{error:.1e}" if error else "0"


def count_text(count: int, thing: str, things: str = "") -> str:
    """A number of things: ``"1 thread"``, ``"2 threads"``."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"


def bounds_text(low: int, high: int | None, unit: int) -> str:
    """Bounds of a dimension in words: ``1 to 32, a multiple of 8``; None is no upper bound."""
    span = f"{low} or more" if high is None else f"{low} to {high}"
    return span if unit == 1 else f"{span}, a multiple of {unit}"


def shape_text(shape: Sequence[object]) -> str:
    """A shape: ``"1×64×56×56"``; ``"scalar"`` for none."""
    return "×".join(map(str, shape)) or "scalar"


def _scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    """The number in the largest unit of which there is at least one once it is rounded."""
    rounded = abs(float(f"{value:.2e}"))
    unit, scale = next((pair for pair in units if rounded >= pair[1]), units[-1])
    return f"{digits(value / scale)} {unit}"
