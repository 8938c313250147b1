"""The times of a profile: whole calls, each followed by the fused functions of the model one by one, in rounds.

What else runs on a machine holds up most calls somewhere, but each function in a few calls only. So what counts are the
medians of each function, and of the engine around them: a call undisturbed is their sum.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from ...artifact.block import ModelStep
from ...artifact.extents import evaluate
from ...artifact.function import CompiledFunction
from ...artifact.machine_rates import MachineRates
from ...artifact.model import CompiledModel
from ...base.dataclass import dataclass
from .measure_rates import measure_rates
from .profile import Profile, StepProfile

ROUNDS = 5
_LEAST_PAIRS, _MOST_PAIRS = 2, 20
_ROUND_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Pair:
    """Seconds of a whole call, of the compiled code in it, and of each step behind it."""

    call: float
    code: float
    steps: tuple[float, ...]


def measure_profile(
    model: CompiledModel,
    threads: int,
    dims: Mapping[str, int],
    tactics: Mapping[str, str],
    call: Callable[[], float],
    steps: Sequence[Callable[[], None]],
) -> Profile:
    """Time a model. ``dims`` are its dimensions, ``tactics`` what serves functions that had a choice; ``call`` is a
    whole call, and gives the seconds that the compiled code took of it; ``steps`` run a fused function each, in order.
    """
    pairs: list[Pair] = []
    rates = []
    for _ in range(ROUNDS):
        pairs += _round(call, steps)
        rates.append(measure_rates(model.target, threads))
    best = _median_rates(rates)
    seconds = zip(model.steps, step_seconds(pairs), strict=True)
    return Profile(
        model.name,
        threads,
        statistics.median(pair.call for pair in pairs),
        statistics.median(max(0.0, pair.call - pair.code) for pair in pairs),
        best,
        tuple(_step(model, step, each, dims, tactics, best) for step, each in seconds),
    )


def step_seconds(pairs: Sequence[Pair]) -> list[float]:
    """The median of each step. Where all steps together take longer than the code of a call, which is without the time
    that it takes to call each from Python, they are shortened to that."""
    medians = [statistics.median(times) for times in zip(*(pair.steps for pair in pairs), strict=True)]
    total, code = sum(medians), statistics.median(pair.code for pair in pairs)
    return [median * min(1.0, code / total) for median in medians] if total else medians


def _round(call: Callable[[], float], steps: Sequence[Callable[[], None]]) -> list[Pair]:
    pairs: list[Pair] = []
    end = time.perf_counter() + _ROUND_SECONDS
    while len(pairs) < _LEAST_PAIRS or (len(pairs) < _MOST_PAIRS and time.perf_counter() < end):
        start = time.perf_counter()
        code = call()
        pairs.append(Pair(time.perf_counter() - start, code, tuple(map(_seconds, steps))))
    return pairs


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _median_rates(measured: Sequence[MachineRates]) -> MachineRates:
    sizes = [size for size, _ in measured[0].bandwidths]
    bandwidths = (statistics.median(rates.bandwidths[k][1] for rates in measured) for k in range(len(sizes)))
    operations = statistics.median(rates.operations for rates in measured)
    return MachineRates(operations, tuple(zip(sizes, bandwidths, strict=True)))


def _step(
    model: CompiledModel,
    step: ModelStep,
    seconds: float,
    dims: Mapping[str, int],
    tactics: Mapping[str, str],
    rates: MachineRates,
) -> StepProfile:
    function = model.function_of(step)
    known = model.dims_of(step, dims)
    operations, traffic = evaluate(function.operations, known), evaluate(function.traffic, known)
    return StepProfile(
        function.name,
        function.symbol,
        tactics.get(function.symbol, function.implementation),
        step.origin,
        _shape(step, function, dims, known),
        seconds,
        operations,
        traffic,
        rates.least_seconds(operations, traffic),
        rates.bound(operations, traffic),
    )


def _shape(
    step: ModelStep, function: CompiledFunction, dims: Mapping[str, int], known: Mapping[str, int]
) -> tuple[int, ...]:
    """The shape of the step's last output: the imported model's where it is a value of that, else as it is held."""
    if step.results:
        return tuple(evaluate(extent, dims) for extent in step.results[-1].shape)
    return tuple(evaluate(extent, known) for extent in function.arguments[-1].shape) if function.arguments else ()
