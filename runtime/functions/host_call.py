"""Functions of Python in the place of kernels: native code calls them with the arguments of a kernel's entry.

Mutable: the errors that calls have raised and nobody has taken yet, one a thread.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ...artifact.extents import evaluate
from ...artifact.function import CompiledFunction, OpCall, TensorSpec
from ..arrays import Array

ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
"""A kernel's entry, see ``codegen.abi``. Calling one releases Python's lock; one that is Python takes it again."""

FAILED = 1
"""What the entry returns where Python raised an error, which waits in the ``HostCall``."""

Compute: TypeAlias = Callable[[list[Array], list[Array]], object]
"""Fills the outputs, which come second, from the inputs, which it must not write."""


class _Inside(threading.local):
    """How many functions of Python run on this thread, one inside the other."""

    depth = 0


_inside = _Inside()


def is_inside() -> bool:
    """Whether the calling thread is in a function that an engine runs."""
    return _inside.depth > 0


class HostCall:
    """``address`` is that of an entry which calls ``compute`` with the tensors of a function's call as arrays.

    They are views of memory that is used for other values afterwards. An error goes to the thread that ran the model.
    """

    def __init__(self, function: CompiledFunction, call: OpCall, compute: Compute) -> None:
        self._call = call
        self._compute = compute
        self._dims = function.dims
        self._positions = call.positions
        self._arguments = max(call.positions) + 1
        self._errors: dict[int, BaseException] = {}
        self._completed: dict[int, int] = {}
        self._entry = ENTRY(self._run)  # kept: native code has its address
        self.address = ctypes.cast(self._entry, ctypes.c_void_p).value or 0

    def take_error(self) -> BaseException | None:
        """The error of this thread's last run."""
        return self._errors.pop(threading.get_ident(), None)

    def completed(self, thread: int) -> int:
        """How many calls have come to their end on a thread, with or without an error."""
        return self._completed.get(thread, 0)

    def forget_threads(self) -> None:
        """Forget the threads that are inside; a forked child does not have them."""
        self._errors.clear()

    def _run(self, context: int, args: int) -> int:
        thread = threading.get_ident()
        self._completed.setdefault(thread, 0)
        try:
            _inside.depth += 1
            self._compute(*self._arrays(args))
        except BaseException as error:  # none may cross native code: it is raised behind it
            self._errors[thread] = error
            return FAILED
        finally:  # no call, in which an interrupt could come
            _inside.depth -= 1
            self._completed[thread] += 1
        return 0

    def _arrays(self, args: int) -> tuple[list[Array], list[Array]]:
        slots = (ctypes.c_int64 * (self._arguments + len(self._dims))).from_address(args)
        dims = dict(zip(self._dims, slots[self._arguments :], strict=True))
        specs = (*self._call.inputs, *self._call.outputs)
        arrays = [_array(spec, dims, slots[k]) for spec, k in zip(specs, self._positions, strict=True)]
        count = len(self._call.inputs)
        for array in arrays[:count]:
            array.flags.writeable = False
        return arrays[:count], arrays[count:]


def watched(native: Any, hosts: Sequence[HostCall]) -> Any:
    """A native entry that calls ``hosts``, where an interrupt that Python notices on the way into one of them is not
    lost: nobody hears of it there, but the call does not come to its end."""

    def run(context: object, slots: object) -> int:
        thread = threading.get_ident()
        before = [host.completed(thread) for host in hosts]
        code = int(native(context, slots))
        after = [host.completed(thread) for host in hosts]
        if code == 0 and any(b == a for b, a in zip(before, after, strict=True)):
            raise KeyboardInterrupt
        return code

    return run if hosts else native


def _array(spec: TensorSpec, dims: dict[str, int], address: int) -> Array:
    """The memory at an address as an array of this type."""
    shape = tuple(evaluate(extent, dims) for extent in spec.shape)
    dtype: np.dtype[Any] = spec.dtype.to_numpy()
    memory = (ctypes.c_char * (prod(shape) * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memoryview(memory))
