"""Checks and measures the code of candidates beside the untuned code, in a child process."""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ..artifact.extents import evaluate
from ..artifact.function import CompiledFunction
from ..artifact.function_bytes import from_bytes
from ..base.addresses import addresses_of
from ..base.aligned import aligned_empty
from ..base.errors import InternalError, KernelError
from ..base.target import Target
from ..codegen.host import resolve_target
from ..codegen.jit import LoadedCode
from ..runtime.arrays import Array
from ..runtime.contenders.latency import median_interval
from ..runtime.executor import context_of
from ..runtime.functions.symbols import function_symbols
from ..runtime.measure.timing import Repeat, repeater, time_calls
from ..runtime.threads.thread_pool import thread_pool_symbols
from .bursts import fastest_burst
from .checks import Check, Fault, check_inputs, fault_of
from .outcome import OutcomeKind
from .paired_rounds import PairedRounds, RoundLimits, take_turns
from .sandbox import Answer

SAMPLE_SECONDS = 2e-3
"""A sample of the reference takes so long at least."""
HOPELESS, LONG_SECONDS, TRIES = 4.0, 5e-3, 3
"""A candidate each of whose first calls takes so long, and so many times the reference's, is not called again."""
GRACE = 100.0
"""Calls of the untuned code for which there is time beside the seconds of a candidate."""
_MOST_CALLS = 100_000


def measure_candidates(job: Mapping[str, Any]) -> Iterator[Answer]:
    """The seconds of the untuned code when it is ready, then an answer for each candidate."""
    target, rng = resolve_target(job["target"]), random.Random(job["seed"])
    limits = RoundLimits(*job["limits"])
    context = context_of(job["threads"])
    cases = [
        Case(from_bytes(code), inputs, calls, target, context, job["seed"], job["direct"])
        for code, inputs, calls in job["references"]
    ]
    whole = sum(case.seconds * case.calls for case in cases)
    yield {"seconds": [case.seconds for case in cases], "grace": GRACE * whole}
    for codes in job["items"]:
        try:
            yield _measured([LoadedCandidate(from_bytes(code), target, context) for code in codes], cases, limits, rng)
        except Exception as error:  # of any kind: the run goes on
            yield {"kind": OutcomeKind.FAILED.value, "detail": f"{type(error).__name__}: {str(error)[:300]}"}


def time_untuned(job: Mapping[str, Any]) -> Iterator[Answer]:
    """Answer that it is ready, then for each task with the seconds of its functions by the untuned choice."""
    target, context = resolve_target(job["target"]), context_of(job["threads"])
    yield {}
    for references in job["items"]:
        try:
            cases = (
                Case(from_bytes(code), inputs, calls, target, context, job["seed"], False)
                for code, inputs, calls in references
            )
            seconds = tuple(case.seconds for case in cases)
            yield {"kind": OutcomeKind.MEASURED.value, "ratio": 1.0, "low": 1.0, "high": 1.0, "seconds": seconds}
        except Exception as error:  # of any kind: the run goes on
            yield {"kind": OutcomeKind.FAILED.value, "detail": f"{type(error).__name__}: {str(error)[:300]}"}


class LoadedCandidate:
    """The code of a function in memory."""

    def __init__(self, code: CompiledFunction, target: Target, context: bytes) -> None:
        self.code = code
        symbols = {**thread_pool_symbols(), **function_symbols([code])}
        self._loaded = LoadedCode(code.symbol, [code.object], target, symbols)
        self._context = context

    def on(self, arrays: Sequence[Array]) -> Repeat:
        """What calls it on arrays: its inputs, then its outputs. They are kept."""
        slots = np.array(addresses_of(arrays), np.int64)
        arguments = ctypes.c_void_p(slots.ctypes.data)
        context = ctypes.cast(ctypes.c_char_p(self._context), ctypes.c_void_p)
        call = repeater(self._loaded.address(), context, arguments)

        def kept(count: int, _kept: object = (slots, arrays, self)) -> int:
            return call(count)

        return kept

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs, in arrays that hold no number before."""
        outputs = self.outputs(len(inputs))
        self.seconds(self.on([*inputs, *outputs]), 1)
        return outputs

    def outputs(self, inputs: int) -> list[Array]:
        """Arrays for the outputs, whose bytes are all ones: NaN, or -1."""
        found = []
        for spec in self.code.arguments[inputs:]:
            array = aligned_empty(tuple(evaluate(e, {}) for e in spec.shape), spec.dtype.to_numpy())
            array.reshape(-1).view(np.uint8)[...] = 0xFF
            found.append(array)
        return found

    def seconds(self, call: Repeat, count: int) -> float:
        """Seconds of so many calls. Raises ``KernelError`` for an error code."""
        return time_calls(call, count, self._fail)

    def sample(self, call: Repeat, count: int) -> float:
        """Seconds of one call, by a sample of so many."""
        return fastest_burst(lambda calls: self.seconds(call, calls), count)

    def _fail(self, code: int) -> NoReturn:
        messages = self.code.messages
        if 1 <= code <= len(messages):
            raise KernelError(messages[code - 1])
        raise InternalError(f"{self.code.name} returned the error code {code}")


class Case:
    """A fused function by the untuned choice, with its inputs and results: what candidates are compared with.
    ``calls`` is how often the model calls it."""

    def __init__(
        self, code: CompiledFunction, inputs: int, calls: int, target: Target, context: bytes, seed: int, direct: bool
    ) -> None:
        self.untuned = LoadedCandidate(code, target, context)
        self.calls = calls
        self.checks = self._checks(inputs, seed, direct)
        self.inputs = self.checks[0].inputs
        self._call = self.untuned.on([*self.inputs, *self.untuned.outputs(inputs)])
        self.untuned.seconds(self._call, 1)
        self.count = self._count()
        self.seconds = min(self.time() for _ in range(3)) / calls

    def _checks(self, inputs: int, seed: int, direct: bool) -> list[Check]:
        """Inputs with the results of the untuned code."""
        specs = self.untuned.code.arguments[:inputs]
        normal, outliers = check_inputs(specs, seed)
        try:
            expected = self.untuned.run(normal)
        except KernelError:  # numbers that it has no result for, such as indices beyond an end
            normal = [np.zeros_like(array) if array.dtype.kind in "iu" else array for array in normal]
            outliers = [np.zeros_like(a) if a.dtype.kind in "iu" else a for a in outliers]
            expected = self.untuned.run(normal)
        beyond = self.untuned.run(outliers)
        return [Check(normal, expected, None), Check(outliers, beyond, expected if direct else None)]

    def _count(self) -> int:
        count = 1
        while (seconds := self.untuned.seconds(self._call, count)) < SAMPLE_SECONDS and count < _MOST_CALLS:
            count = min(_MOST_CALLS, max(count + 1, int(count * min(8.0, 1.2 * SAMPLE_SECONDS / max(seconds, 1e-9)))))
        return count

    def time(self) -> float:
        """Seconds of the untuned code for all calls of the model, by one sample."""
        return self.untuned.sample(self._call, self.count) * self.calls

    def fault(self, candidate: LoadedCandidate) -> Fault | None:
        """What is wrong with the results of a candidate; None if nothing is."""
        for check in self.checks:
            if (fault := fault_of(check, candidate.run(check.inputs))) is not None:
                return fault
        return None


def _measured(
    candidates: Sequence[LoadedCandidate], cases: Sequence[Case], limits: RoundLimits, rng: random.Random
) -> Answer:
    pairs = list(zip(candidates, cases, strict=True))
    if (fault := _first_fault(pairs)) is not None:
        return {"kind": fault.kind.value, "detail": fault.text}
    calls = [one.on([*case.inputs, *one.outputs(len(case.inputs))]) for one, case in pairs]
    timed = list(zip(pairs, calls, strict=True))
    untuned = sum(case.seconds * case.calls for case in cases)
    fastest = math.inf
    for _ in range(TRIES):
        fastest = min(fastest, sum(one.seconds(call, 1) * case.calls for (one, case), call in timed))
        if not (is_hopeless := fastest > HOPELESS * untuned and fastest > LONG_SECONDS):
            break
    if is_hopeless:
        turns = PairedRounds((untuned,), (fastest,))
    else:
        turns = take_turns(
            lambda: sum(case.time() for case in cases),
            lambda: sum(one.sample(call, case.count) * case.calls for (one, case), call in timed),
            limits,
            rng,
        )
    ratios = turns.ratios
    if not ratios:
        return {"kind": OutcomeKind.TIMELESS.value, "detail": "the clock saw no time pass"}
    if (fault := _first_fault(pairs)) is not None:  # what runs often may still go wrong
        return {"kind": fault.kind.value, "detail": f"after it was measured: {fault.text}"}
    low, high = median_interval(ratios)
    total = sum(case.calls for case in cases)
    return {
        "kind": OutcomeKind.MEASURED.value,
        "ratio": turns.ratio,
        "low": low,
        "high": high,
        "seconds": tuple(seconds / total for seconds in turns.candidate),
        "ratios": ratios,
    }


def _first_fault(pairs: Sequence[tuple[LoadedCandidate, Case]]) -> Fault | None:
    return next((fault for one, case in pairs if (fault := case.fault(one)) is not None), None)
