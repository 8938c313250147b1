"""A model in memory: machine code, linked to a thread pool, and constants. Executors share it, and none writes it."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, NoReturn

from ..codegen.abi import OUT_OF_MEMORY
from ..codegen.entry import CODE_BITS
from ..codegen.jit import LoadedCode
from ..codegen.model import CompiledModel
from ..ir.errors import InternalError, KernelError, OutOfMemoryError
from .arrays import Array, address_of

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
"""Calls of such a function release Python's lock."""
_LOW = (1 << CODE_BITS) - 1


class LoadedModel:
    """``entry(context, slots)`` runs the model; ``fail(code)`` raises the error that its result means."""

    def __init__(self, model: CompiledModel, constants: tuple[Array, ...], symbols: Mapping[str, int]) -> None:
        self.model = model
        objects = [model.entry_object, *(f.object for f in model.functions)]
        self._code = LoadedCode(model.entry, objects, model.target, symbols)  # keeps the machine code in memory
        self._constants = constants
        self.entry: Any = _ENTRY(self._code.address())
        self.constant_addresses = tuple(map(address_of, constants))

    def fail(self, code: int) -> NoReturn:
        """Raise the error that a result of the entry other than 0 means."""
        number, low = (code >> CODE_BITS) - 1, code & _LOW
        if not 0 <= number < len(self.model.steps):
            raise InternalError(f"{self.model.name} returned the unknown error code {code}")
        function = self.model.steps[number].function
        if low == OUT_OF_MEMORY & _LOW:
            raise OutOfMemoryError(f"{function.name}: there is no memory for its intermediate buffers")
        if 1 <= low <= len(function.messages):
            raise KernelError(f"{function.name}: {function.messages[low - 1]}")
        raise InternalError(f"{function.name} returned the unknown error code {low}")
