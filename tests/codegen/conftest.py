"""Running hand-built programs natively: compile, load, call with numpy arrays."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from loopwright.artifact.options import CodegenOptions
from loopwright.codegen.abi import symbolic_dims
from loopwright.codegen.compile import CompiledCode, compile_module
from loopwright.codegen.host import resolve_target
from loopwright.codegen.jit import LoadedCode, load
from loopwright.ir.stmt import IRModule, PrimFunc

ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
TASK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
CHUNK = 3


@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
def _parallel_for(context, task, closure, extent):
    """A stand-in for the thread pool: chunks of a few iterations, the last first."""
    for begin in reversed(range(0, extent, CHUNK)):
        code = TASK(task)(context, closure, begin, min(begin + CHUNK, extent))
        if code:
            return code
    return 0


class Kernel:
    """A compiled program that takes numpy arrays and gives the entry's result code."""

    def __init__(self, program: PrimFunc | IRModule, target: str, options: CodegenOptions) -> None:
        module = program if isinstance(program, IRModule) else IRModule((program,))
        self.func = module.entry
        self.code: CompiledCode = compile_module(module, resolve_target(target), options)
        pool = ctypes.cast(_parallel_for, ctypes.c_void_p).value
        self.loaded: LoadedCode = load(self.code, {"lw_parallel_for": pool})

    def __call__(self, *arrays: np.ndarray) -> int:
        dims = {}
        for buffer, array in zip(self.func.buffers, arrays, strict=True):
            dims.update(zip(buffer.shape, array.shape, strict=True))
        slots = [a.ctypes.data for a in arrays] + [dims[d] for d in symbolic_dims(self.func)]
        context = (ctypes.c_int64 * 1)(1)
        return ENTRY(self.loaded.address())(context, (ctypes.c_int64 * len(slots))(*slots))


@pytest.fixture
def native() -> Callable[..., Kernel]:
    """``native(func)`` compiles for this machine, or a lesser one, without the disk cache."""

    def build(program: PrimFunc | IRModule, target: str = "native", **options) -> Kernel:
        return Kernel(program, target, CodegenOptions(cache=False, **options))

    return build


@pytest.fixture(scope="session")
def kernel_of() -> Callable[[PrimFunc], Kernel]:
    """Compiles quickly and without contraction: for hypothesis tests, whose fixtures live longer than an example."""
    return lambda func: Kernel(func, "native", CodegenOptions(precision="strict", opt_level=1, cache=False))
