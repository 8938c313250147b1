"""The steps of a model one by one, on the memory of an executor: to time them, and to look at what each has written."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence

from ..codegen.abi import CODE_BITS
from ..codegen.jit import LoadedCode
from .functions.host_call import ENTRY, watched
from .loaded_model import LoadedModel

REPEATS = 3


def step_calls(loaded: LoadedModel, slots: Sequence[int], context: bytes) -> list[Callable[[], None]]:
    """A function for each step, which runs it; in order, so that each finds its inputs. ``slots`` are the arguments of
    the entry."""
    model, symbols = loaded.model, loaded.symbols
    addresses, codes = dict(symbols), {}
    for f in (f for f in model.functions if f.symbol not in symbols):
        codes[f.symbol] = LoadedCode(f.symbol, [f.object], model.target, addresses, sources=[f.source])
        addresses[f.symbol] = codes[f.symbol].address()

    def call_of(number: int) -> Callable[[], None]:
        step = model.steps[number]
        symbol = step.symbol
        hosts = [loaded.hosts[symbol]] if symbol in loaded.hosts else []
        kernel = watched(ENTRY(addresses[symbol]), hosts)
        arguments = struct.pack(f"{len(step.operands)}q", *(slots[k] for k in step.operands))

        def call(_codes: dict[str, LoadedCode] = codes) -> None:  # keeps the machine code in memory
            if error := kernel(context, arguments):
                loaded.fail((number + 1) << CODE_BITS | (error & ((1 << CODE_BITS) - 1)))

        return call

    return [call_of(number) for number in range(len(model.steps))]


def time_steps(calls: Sequence[Callable[[], None]]) -> tuple[float, ...]:
    """Seconds for each step, in order: the least of some runs of all."""
    best = [float("inf")] * len(calls)
    for _ in range(REPEATS):
        for number, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[number] = min(best[number], time.perf_counter() - start)
    return tuple(best)
