"""A model in memory: machine code, linked to a thread pool, and constants. Executors share it, and none writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from ..artifact.function import CompiledFunction
from ..artifact.model import CompiledModel
from ..base.addresses import address_of
from ..base.errors import InternalError, KernelError, OutOfMemoryError
from ..codegen.abi import CODE_BITS, OUT_OF_MEMORY
from ..codegen.jit import LoadedCode
from .arrays import Array
from .functions.host_call import ENTRY, HostCall, watched
from .iterations import iteration_text
from .memory_use import HeapDemand
from .stage_errors import refuse_stage

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
        self._heap: HeapDemand | None = None
        self.entry = watched(ENTRY(self._code.address()), tuple(hosts.values()))
        self.constant_addresses = tuple(map(address_of, constants))

    def most_heap(self, dims: Sequence[int], threads: int) -> int:
        """The bytes that a run takes from the heap at the most, beside arena and outputs."""
        if self._heap is None:
            self._heap = HeapDemand(self.model, self._functions)
        return self._heap.most(dims, threads)

    def _hosts_of(self, function: CompiledFunction) -> Iterator[HostCall]:
        """The functions of Python that a function is, or calls."""
        if function.symbol in self.hosts:
            yield self.hosts[function.symbol]
        for symbol in function.calls:
            yield from self._hosts_of(self._functions[symbol])

    def fail(self, code: int, frame: Sequence[int] = (), cause: BaseException | None = None) -> NoReturn:
        """Raise the error that a result of the entry other than 0 means, which left ``frame``; ``cause`` is why memory
        was refused."""
        number, low = (code >> CODE_BITS) - 1, code & _LOW
        if 0 <= (stage := number - len(self.model.steps)) < len(self.model.body.stages):
            refuse_stage(self.model, self.model.body.stages[stage], low - 1, frame, cause)
        if not 0 <= number < len(self.model.steps):
            raise InternalError(f"{self.model.name} returned the unknown error code {code}")
        step = self.model.steps[number]
        function = self._functions[step.symbol]
        where = f"{function.name}{iteration_text(step, function, frame)}"
        hosts = list(self._hosts_of(function))
        for host in hosts:
            if (error := host.take_error()) is not None:
                _raise_from(where, error)
        if hosts and function.symbol in self.hosts:
            raise KeyboardInterrupt  # on the way into the function
        if low == OUT_OF_MEMORY & _LOW:
            if isinstance(cause, OutOfMemoryError):
                raise OutOfMemoryError(f"{where}: {cause}") from cause
            if cause is not None:
                raise cause
            raise OutOfMemoryError(f"{function.name}: there is no memory for its intermediate buffers")
        if 1 <= low <= len(function.messages):
            raise KernelError(f"{where}: {function.messages[low - 1]}")
        if function.is_packed:
            raise KernelError(f"{function.name}: the native function returned the error code {low}")
        raise InternalError(f"{function.name} returned the unknown error code {low}")


def _raise_from(where: str, error: BaseException) -> NoReturn:
    """Raise what a function of Python raised, as the cause of our error; what is to end the program as it is."""
    if not isinstance(error, Exception):
        raise error
    raise KernelError(f"{where}: {type(error).__name__}: {error}") from error
