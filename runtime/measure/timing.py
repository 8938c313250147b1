"""How long native code takes: repeats of many calls in a row, what an empty kernel takes subtracted."""

from __future__ import annotations

import ctypes
import functools
import statistics
import time
from collections.abc import Callable
from importlib import resources
from typing import Literal, NoReturn

from ...base.brief import BriefRepr
from ...base.dataclass import dataclass
from ...base.errors import RuntimeArgumentError
from ...base.quantities import seconds_text
from ..threads.resident import load_resident

_TARGET_SECONDS = 0.005
_MAX_NUMBER = 10_000_000


@dataclass(frozen=True, slots=True, repr=False)
class Timing(BriefRepr):
    """Seconds per call, without the overhead of the call: one sample per repeat, each the mean of ``number`` calls."""

    samples: tuple[float, ...]
    number: int

    @property
    def min(self) -> float:
        """The seconds of the fastest repeat."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """The median of the repeats, in seconds."""
        return statistics.median(self.samples)

    @property
    def max(self) -> float:
        """The seconds of the slowest repeat."""
        return max(self.samples)

    def __str__(self) -> str:
        return (
            f"min {seconds_text(self.min)}, median {seconds_text(self.median)} "
            f"({len(self.samples)} repeats of {self.number} calls)"
        )


Repeat = Callable[[int], int]
"""Calls a kernel that often, and returns 0 or its first error code."""


def measure(
    entry: int,
    ctx: ctypes.c_void_p,
    args: ctypes.c_void_p,
    repeats: int,
    number: int | Literal["auto"],
    fail: Callable[[int], NoReturn],
) -> Timing:
    """Time calls of ``entry(ctx, args)``. ``fail`` raises for an error code.

    ``number`` "auto" takes as many calls a repeat as last five milliseconds.
    """
    _check_positive("repeats", repeats)
    auto = isinstance(number, str) and number == "auto"
    if not auto:
        _check_positive("number", number)
    call, nothing = repeater(entry, ctx, args), repeater(_native()["lw_nothing"], ctx, args)
    time_calls(call, 1, fail)  # pages are touched and workers started before the clock runs
    count = _calibrate(call, fail) if number == "auto" else number
    overhead = min(time_calls(nothing, count, fail) for _ in range(5))
    samples = [time_calls(call, count, fail) for _ in range(repeats)]
    return Timing(tuple(max(0.0, sample - overhead) / count for sample in samples), count)


def _check_positive(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RuntimeArgumentError(f"{name} should be a positive whole number, found {value!r}")


def _calibrate(call: Repeat, fail: Callable[[int], NoReturn]) -> int:
    """The number of calls that last long enough to be timed."""
    count = 1
    while (seconds := time_calls(call, count, fail)) < _TARGET_SECONDS and count < _MAX_NUMBER:
        growth = _TARGET_SECONDS / max(seconds, 1e-9)
        count = min(_MAX_NUMBER, max(count + 1, int(count * min(growth * 1.1, 10.0))))
    return count


def time_calls(call: Repeat, count: int, fail: Callable[[int], NoReturn]) -> float:
    """Seconds of so many calls in a row. ``fail`` raises for an error code."""
    start = time.perf_counter()
    error = call(count)
    seconds = time.perf_counter() - start
    if error:
        fail(error)
    return seconds


def repeater(entry: int, ctx: ctypes.c_void_p, args: ctypes.c_void_p) -> Repeat:
    """What calls ``entry(ctx, args)`` as often as it is told, from native code."""
    function = _REPEAT(_native()["lw_repeat"])
    return lambda count: int(function(entry, ctx, args, count))


_REPEAT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@functools.cache
def _native() -> dict[str, int]:
    text = resources.files(__package__).joinpath("timing.ll").read_text(encoding="utf-8")
    return load_resident(text, ("lw_repeat", "lw_nothing"))
