"""The steps of a model one by one, on the memory of an executor: to time them, and to look at what each has written."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Sequence

from ..codegen.entry import CODE_BITS
from ..codegen.jit import LoadedCode
from ..codegen.model import CompiledModel
from .symbols import model_symbols

REPEATS = 3
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


def step_calls(
    model: CompiledModel, slots: Sequence[int], context: bytes, fail: Callable[[int], None]
) -> list[Callable[[], None]]:
    """A function for each step, which runs it; in order, so that each finds its inputs. ``slots`` are the arguments of
    the entry; ``fail`` is called with an error code as the entry returns it."""
    symbols = model_symbols(model)
    codes = {f.symbol: LoadedCode(f.symbol, [f.object], model.target, symbols) for f in model.functions}
    kernels = {symbol: _KERNEL(code.address()) for symbol, code in codes.items()}

    def call_of(number: int) -> Callable[[], None]:
        step = model.steps[number]
        kernel = kernels[step.function.symbol]
        arguments = struct.pack(f"{len(step.call.operands)}q", *(slots[k] for k in step.call.operands))

        def call(code: LoadedCode = codes[step.function.symbol]) -> None:  # keeps the machine code in memory
            if error := kernel(context, arguments):
                fail((number + 1) << CODE_BITS | (error & ((1 << CODE_BITS) - 1)))

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
