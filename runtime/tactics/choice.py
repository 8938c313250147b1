"""Which tactic serves each function of a model: as its executor prefers, by record, by measuring, or by priority."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...codegen.extents import evaluate
from ...codegen.jit import LoadedCode
from ...codegen.model import CompiledFunction, CompiledModel, OpCall, TensorSpec
from ...ir.errors import KernelError, RuntimeArgumentError
from ..arrays import Array, addresses_of
from ..executor import context_of
from ..executor_config import ExecutorConfig
from ..functions.host_call import ENTRY, HostCall
from .records import TacticRecords
from .tactic import Creator, TacticRegistry

Select = Literal["measure"]
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tactic that serves a function; ``creator`` is None for the compiled code."""

    name: str
    priority: int
    creator: Creator | None


@dataclass(frozen=True, slots=True)
class ChosenTactics:
    """By the symbols of functions: the names of the tactics of those that had a choice, and what stands for those that
    are not compiled code."""

    names: Mapping[str, str]
    hosts: Mapping[str, HostCall]


class TacticChoice:
    """Chooses for the executors of an engine. ``records`` are looked at first, and get what ``select`` measures."""

    def __init__(
        self,
        model: CompiledModel,
        registry: TacticRegistry,
        records: TacticRecords,
        select: Select | None,
        symbols: Mapping[str, int],
    ) -> None:
        if select not in (None, "measure"):
            raise RuntimeArgumentError(f"select should be 'measure', or left out, found {select!r}")
        self._model = model
        self._registry = registry
        self._records = records
        self._measures = select == "measure"
        self._symbols = symbols

    def choose(self, config: ExecutorConfig) -> ChosenTactics:
        """The tactics for an executor, those of Python made anew."""
        names: dict[str, str] = {}
        hosts: dict[str, HostCall] = {}
        for function in self._model.functions:
            call = function.call
            if call is None or function.is_packed or not (registered := self._registry.of(call.op)):
                continue
            fitting = [
                Candidate(r.name, r.priority, r.creator)
                for r in registered
                if r.creator().supports(_attributes(call), _types(call))
            ]
            chosen = self._choose(function, call, [_compiled(function), *fitting], config.tactics, config.threads or 1)
            names[function.symbol] = chosen.name
            if chosen.creator is not None:
                hosts[function.symbol] = _host_call(function, call, chosen.creator)
        return ChosenTactics(names, hosts)

    def _choose(
        self,
        function: CompiledFunction,
        call: OpCall,
        candidates: Sequence[Candidate],
        preferred: Sequence[str],
        threads: int,
    ) -> Candidate:
        named = {candidate.name: candidate for candidate in candidates}
        for name in preferred:
            if name in named:
                return named[name]
        if not function.dims:
            costs = self._records.costs(call, threads)
            if self._measures:
                for candidate in candidates:
                    if candidate.name not in costs:
                        seconds = self._measure(function, call, candidate, threads)
                        self._records.add(call, candidate.name, seconds, threads)
                costs = self._records.costs(call, threads)
            recorded = [candidate for candidate in candidates if candidate.name in costs]
            if recorded:
                return min(recorded, key=lambda candidate: costs[candidate.name])
        return max(candidates, key=lambda candidate: candidate.priority)  # the compiled code among equals

    def _measure(
        self, function: CompiledFunction, call: OpCall, candidate: Candidate, threads: int
    ) -> tuple[float, ...]:
        """Seconds of some runs on arrays of ones, after one that does not count."""
        arrays = _arrays_of(function, call)
        slots = np.array(addresses_of(arrays), np.int64)
        if candidate.creator is None:
            code = LoadedCode(function.symbol, [function.object], self._model.target, self._symbols)
            run, host = ENTRY(code.address()), None
        else:
            host = _host_call(function, call, candidate.creator)
            run = ENTRY(host.address)
        context = context_of(threads)
        seconds = [_seconds(lambda: run(context, slots.ctypes.data), candidate.name, host) for _ in range(REPEATS + 1)]
        return tuple(seconds[1:])


def _compiled(function: CompiledFunction) -> Candidate:
    """The code that the library has: it is called as its implementation is."""
    choice = function.choices[0]
    priorities = {c.implementation: c.plevel for c in choice.candidates}
    return Candidate(choice.implementation, priorities.get(choice.implementation, 0), None)


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


def _arrays_of(function: CompiledFunction, call: OpCall) -> list[Array]:
    """Arrays for the arguments of a function without symbolic dimensions, in order."""
    specs = dict(zip(call.operands, _types(call), strict=True))
    return [
        np.ones(tuple(evaluate(e, {}) for e in spec.shape), spec.dtype.to_numpy()) for _, spec in sorted(specs.items())
    ]


def _seconds(run: Callable[[], int], name: str, host: HostCall | None) -> float:
    start = time.perf_counter()
    code = run()
    seconds = time.perf_counter() - start
    if code:
        error = host.take_error() if host is not None else None
        raise KernelError(f"the tactic {name} failed when it was measured: {error or f'code {code}'}") from error
    return max(seconds, 1e-9)
