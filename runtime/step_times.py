"""What each step of a model takes by itself: the kernels called one by one, on the memory of an engine."""

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


def time_steps(
    model: CompiledModel, slots: Sequence[int], context: bytes, fail: Callable[[int], None]
) -> tuple[float, ...]:
    """Seconds for each step, in order: the least of some runs of all. ``slots`` are the arguments of the entry.

    Steps run in order, so that each finds its inputs. ``fail`` is called with an error code as the entry returns it.
    """
    symbols = model_symbols(model)
    codes = {f.symbol: LoadedCode(f.symbol, [f.object], model.target, symbols) for f in model.functions}
    kernels = {symbol: _KERNEL(code.address()) for symbol, code in codes.items()}
    best = [float("inf")] * len(model.steps)
    for _ in range(REPEATS):
        for number, step in enumerate(model.steps):
            arguments = struct.pack(f"{len(step.call.operands)}q", *(slots[k] for k in step.call.operands))
            kernel = kernels[step.function.symbol]
            start = time.perf_counter()
            code = kernel(context, arguments)
            best[number] = min(best[number], time.perf_counter() - start)
            if code:
                fail((number + 1) << CODE_BITS | (code & ((1 << CODE_BITS) - 1)))
    return tuple(best)
