"""Which tactic serves each function of a model: as its executor prefers, by record, by measuring, or by priority."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ...artifact.extents import evaluate
from ...artifact.function import CompiledFunction, OpCall, TensorSpec
from ...artifact.model import CompiledModel
from ...base.addresses import addresses_of
from ...base.dataclass import dataclass
from ...base.errors import KernelError, RuntimeArgumentError, TargetError
from ...codegen.jit import LoadedCode
from ..executor import context_of
from ..executor_config import ExecutorConfig
from ..functions.host_call import ENTRY, HostCall, watched
from ..functions.symbols import extern_addresses, model_symbols
from .records import TacticRecords
from .tactic import Creator, TacticRegistry

Select = Literal["measure"]
REPEATS = 5
HOPELESS, LONG_SECONDS = 8, 10e-3
"""A tactic whose first run takes so long, and so many times the best one's, is not run again."""


@dataclass(frozen=True, slots=True)
class TacticCandidate:
    """A tactic that serves a function: compiled ``code``, or what ``creator`` makes. Where nobody measured, compiled
    code other than the model's own is not chosen, so that it has no ``priority``."""

    name: str
    priority: int | None
    code: CompiledFunction
    creator: Creator | None = None


@dataclass(frozen=True, slots=True)
class ChosenTactics:
    """What was chosen, by the symbols of functions: the names of the tactics of those that had a choice, and what
    stands for those that are not the model's own code: functions of Python, or other compiled code."""

    names: Mapping[str, str]
    hosts: Mapping[str, HostCall]
    codes: Mapping[str, CompiledFunction]


class TacticChoice:
    """Chooses for the executors of an engine. The file of ``records`` is looked at first, and gets what ``select``
    measures."""

    def __init__(
        self,
        model: CompiledModel,
        registry: TacticRegistry,
        select: Select | None,
        records: str | os.PathLike[str] | None,
    ) -> None:
        if select is not None and str(select) != "measure":
            raise RuntimeArgumentError(f"select should be 'measure', or left out, found {select!r}")
        self._model = model
        self._registry = registry
        self._records = TacticRecords(records, model.target)
        self._measures = select == "measure"
        self._symbols = model_symbols(model)

    def choose(self, config: ExecutorConfig) -> ChosenTactics:
        """The tactics for an executor, those of Python made anew."""
        names: dict[str, str] = {}
        hosts: dict[str, HostCall] = {}
        codes: dict[str, CompiledFunction] = {}
        for function in self._model.functions:
            call = function.call
            if call is None or function.is_packed:
                continue
            others = [c for c in self._model.alternatives.get(function.symbol, ()) if _is_linkable(c)]
            registered = self._registry.of(call.op) if call.is_whole else ()
            if not others and not registered:
                continue
            candidates = [
                TacticCandidate(function.implementation, _priority(function), function),
                *(TacticCandidate(other.implementation, None, other) for other in others),
                *(
                    TacticCandidate(r.name, r.priority, function, r.creator)
                    for r in registered
                    if r.creator().supports(_attributes(call), _types(call))
                ),
            ]
            chosen = self._choose(call, candidates, config.tactics, config.threads or 1)
            names[function.symbol] = chosen.name
            if chosen.creator is not None:
                hosts[function.symbol] = _host_call(function, call, chosen.creator)
            elif chosen.code is not function:
                codes[function.symbol] = chosen.code
        return ChosenTactics(names, hosts, codes)

    def _choose(
        self, call: OpCall, candidates: Sequence[TacticCandidate], preferred: Sequence[str], threads: int
    ) -> TacticCandidate:
        named = {candidate.name: candidate for candidate in candidates}
        for name in preferred:
            if name in named:
                return named[name]
        if not candidates[0].code.dims:
            if self._measures:
                self._measure_all(call, candidates, threads)
            costs = self._records.costs(call, candidates[0].name, threads)
            recorded = [candidate for candidate in candidates if candidate.name in costs]
            if recorded:
                return min(recorded, key=lambda candidate: costs[candidate.name])
        ranked = [(candidate.priority, candidate) for candidate in candidates if candidate.priority is not None]
        return max(ranked, key=lambda pair: pair[0])[1]  # the compiled code among equals

    def _measure_all(self, call: OpCall, candidates: Sequence[TacticCandidate], threads: int) -> None:
        """Add a record for each candidate without one; the first is the model's own code."""
        known = self._records.costs(call, candidates[0].name, threads)
        best = min((known[c.name] for c in candidates if c.name in known), default=float("inf"))
        for candidate in candidates:
            if candidate.name not in known:
                seconds = self._measure(call, candidate, threads, best)
                self._records.add(call, candidate.name, seconds, threads)
                best = min(best, *seconds)

    def _measure(self, call: OpCall, candidate: TacticCandidate, threads: int, best: float) -> tuple[float, ...]:
        """Seconds of some runs on arrays of ones, after one that does not count; of that one alone where it shows that
        others would be in vain. ``best`` is what is known of other candidates."""
        function = candidate.code
        arrays = [
            np.ones(tuple(evaluate(e, {}) for e in spec.shape), spec.dtype.to_numpy()) for spec in function.arguments
        ]
        slots = np.array(addresses_of(arrays), np.int64)
        host = None
        if candidate.creator is None:
            symbols = {**self._symbols, **extern_addresses(function.externs, function.name)}
            code = LoadedCode(function.symbol, [function.object], self._model.target, symbols)  # kept while it runs
            run = ENTRY(code.address())
        else:
            host = _host_call(function, call, candidate.creator)
            run = watched(ENTRY(host.address), [host])
        context = context_of(threads)

        def seconds() -> float:
            return _seconds(lambda: run(context, slots.ctypes.data), candidate.name, host)

        first = seconds()
        return (first,) if first > max(HOPELESS * best, LONG_SECONDS) else tuple(seconds() for _ in range(REPEATS))


def _priority(function: CompiledFunction) -> int:
    """The priority of the implementation that the compiler chose."""
    choice = function.anchor
    assert choice is not None
    return {c.implementation: c.plevel for c in choice.candidates}.get(choice.implementation, 0)


def _is_linkable(function: CompiledFunction) -> bool:
    """Whether the functions of C that it calls are known here: a library may come from where scipy is installed."""
    try:
        extern_addresses(function.externs, function.name)
    except TargetError:
        return False
    return True


def _host_call(function: CompiledFunction, call: OpCall, creator: Creator) -> HostCall:
    """A tactic, made and prepared, as what native code calls."""
    tactic = creator()
    tactic.init(_attributes(call), _types(call))
    return HostCall(function, call, lambda inputs, outputs: tactic.enqueue([*inputs, *outputs]))


def _attributes(call: OpCall) -> dict[str, Any]:
    attributes: dict[str, Any] = json.loads(call.attributes)
    return attributes


def _types(call: OpCall) -> tuple[TensorSpec, ...]:
    return (*call.inputs, *call.outputs)


def _seconds(run: Callable[[], int], name: str, host: HostCall | None) -> float:
    start = time.perf_counter()
    code = run()
    seconds = time.perf_counter() - start
    if code:
        error = host.take_error() if host is not None else None
        if error is not None and not isinstance(error, Exception):
            raise error  # what is to end the program
        if error is None and host is not None:
            raise KeyboardInterrupt  # on the way into the tactic
        raise KernelError(f"the tactic {name} failed when it was measured: {error or f'code {code}'}") from error
    return max(seconds, 1e-9)
