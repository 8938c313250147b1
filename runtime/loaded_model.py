"""A model in memory: machine code, linked to a thread pool, and constants. Executors share it, and none writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from ..artifact.model import CompiledFunction, CompiledModel
from ..base.errors import InternalError, KernelError, OutOfMemoryError
from ..codegen.abi import OUT_OF_MEMORY
from ..codegen.entry import CODE_BITS
from ..codegen.jit import LoadedCode
from .arrays import Array, address_of
from .functions.host_call import ENTRY, HostCall, watched
from .memory_use import most_heap

_LOW = (1 << CODE_BITS) - 1


class LoadedModel:
    """``entry(context, slots)`` runs the model; ``fail(code)`` raises the error that its result means.

    ``symbols`` are the addresses of what the code calls outside of itself. What stands for the functions of some
    symbols instead of their own code are ``hosts``, functions of Python, and ``codes``, other compiled ones.
    """

    def __init__(
        self,
        model: CompiledModel,
        constants: tuple[Array, ...],
        symbols: Mapping[str, int],
        hosts: Mapping[str, HostCall],
        codes: Mapping[str, CompiledFunction],
    ) -> None:
        self.model = model
        self.hosts = hosts
        self._functions = {**{function.symbol: function for function in model.functions}, **codes}
        self._loaded = {
            s: LoadedCode(f.symbol, [f.object], model.target, symbols, sources=[f.source]) for s, f in codes.items()
        }
        addresses = {symbol: code.address() for symbol, code in self._loaded.items()}
        self.symbols = {**symbols, **addresses, **{symbol: host.address for symbol, host in hosts.items()}}
        own = [f for f in model.functions if f.symbol not in self.symbols]
        objects = [model.entry_object, *(f.object for f in own)]
        # Both keep machine code in memory.
        self._code = LoadedCode(
            model.entry, objects, model.target, self.symbols, sources=[None, *(f.source for f in own)]
        )
        self._constants = constants
        self.entry = watched(ENTRY(self._code.address()), tuple(hosts.values()))
        self.constant_addresses = tuple(map(address_of, constants))

    def most_heap(self, dims: Sequence[int], threads: int) -> int:
        """The bytes that a run takes from the heap at the most, beside arena and outputs."""
        return most_heap(self.model, dict(zip(self.model.dims, dims, strict=True)), self._functions, threads)

    def fail(self, code: int) -> NoReturn:
        """Raise the error that a result of the entry other than 0 means."""
        number, low = (code >> CODE_BITS) - 1, code & _LOW
        if not 0 <= number < len(self.model.steps):
            raise InternalError(f"{self.model.name} returned the unknown error code {code}")
        function = self._functions[self.model.steps[number].function.symbol]
        host = self.hosts.get(function.symbol)
        if host is not None and (error := host.take_error()) is not None:
            _raise_from(function, error)
        if host is not None:
            raise KeyboardInterrupt  # on the way into the function
        if low == OUT_OF_MEMORY & _LOW:
            raise OutOfMemoryError(f"{function.name}: there is no memory for its intermediate buffers")
        if 1 <= low <= len(function.messages):
            raise KernelError(f"{function.name}: {function.messages[low - 1]}")
        if function.is_packed:
            raise KernelError(f"{function.name}: the native function returned the error code {low}")
        raise InternalError(f"{function.name} returned the unknown error code {low}")


def _raise_from(function: CompiledFunction, error: BaseException) -> NoReturn:
    """Raise what a function of Python raised, as the cause of our error; what is to end the program as it is."""
    if not isinstance(error, Exception):
        raise error
    raise KernelError(f"{function.name}: {type(error).__name__}: {error}") from error
