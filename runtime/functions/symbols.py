"""The functions of C that compiled programs may call, by symbol: those that users register, and those of scipy's BLAS.

Object code names them only; they are looked up when it is loaded into this process, that of saved libraries too.
Mutable: the table of registered functions, under a lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, cast

from ...artifact.function import CompiledFunction
from ...artifact.model import CompiledModel
from ...base.dataclass import dataclass
from ...base.errors import LoopwrightError, TargetError
from ...ir.extern import ExternFunction
from ..threads.fork_lock import ForkLock
from ..threads.thread_pool import SHARED_POOL, PoolKey, thread_pool_symbols
from .blas import BLAS_SYMBOLS, blas_address
from .packed_functions import NATIVE


@dataclass(frozen=True, slots=True)
class _Registered:
    """``owner`` is what keeps the code at the address alive, such as a callback of ctypes."""

    prototype: str
    address: int
    owner: object


_registered: dict[str, _Registered] = {}
_lock = ForkLock()


def register_symbol(function: ExternFunction, address: object, override: bool = False) -> None:
    """Say where a function of C is: an address, or a function or callback of ctypes, which is kept alive.

    What is compiled later, and libraries that are loaded later, find it by its symbol. It must be callable from several
    threads at once. Raises ``LoopwrightError`` for a symbol that is registered already, unless ``override`` is asked
    for, and for what is no address.

    >>> import ctypes
    >>> import loopwright as lw
    >>> from loopwright import te
    >>> square = te.extern_function("square_all", ["int64", "update float32"])
    >>> def in_python(n, x):
    ...     for i in range(n):
    ...         x[i] *= x[i]
    >>> kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_float))
    >>> lw.register_symbol(square, kind(in_python))
    """
    if not isinstance(function, ExternFunction):
        raise LoopwrightError(f"register_symbol takes what te.extern_function gives, found {function!r}")
    found = _address(function, address)
    with _lock.held:
        if function.symbol in _registered and not override:
            raise LoopwrightError(
                f"the symbol {function.symbol} is registered already; say override=True to replace it"
            )
        _registered[function.symbol] = _Registered(function.prototype, found, address)


def _address(function: ExternFunction, given: object) -> int:
    if isinstance(given, NATIVE):
        given = ctypes.cast(cast(Any, given), ctypes.c_void_p).value
    if not isinstance(given, int) or isinstance(given, bool) or given <= 0:
        raise LoopwrightError(f"the address of {function.symbol} is a number or a function of ctypes, found {given!r}")
    return given


def extern_addresses(prototypes: Iterable[str], program: str) -> dict[str, int]:
    """Symbol → address of the functions that a program calls.

    Raises ``TargetError`` for a symbol that nobody knows, or that is a function with other parameters.
    """
    return {_symbol(prototype): _find(prototype, program) for prototype in prototypes}


def model_symbols(model: CompiledModel, pool: PoolKey = SHARED_POOL) -> dict[str, int]:
    """Symbol → address of all that a model's code calls outside of itself; its loops run on threads of the pool."""
    return {**thread_pool_symbols(pool), **function_symbols(model.functions)}


def function_symbols(functions: Iterable[CompiledFunction]) -> dict[str, int]:
    """Symbol → address of the functions of C that compiled functions call."""
    externs = {prototype: f.name for f in functions for prototype in f.externs}
    return {symbol: at for p, name in externs.items() for symbol, at in extern_addresses([p], name).items()}


def _symbol(prototype: str) -> str:
    return prototype.removeprefix("void ").split("(", 1)[0]


def _find(prototype: str, program: str) -> int:
    symbol = _symbol(prototype)
    with _lock.held:
        known = _registered.get(symbol)
    if known is not None:
        if known.prototype != prototype:
            raise TargetError(f"{program} calls `{prototype}`, but what is registered is `{known.prototype}`")
        return known.address
    if symbol in BLAS_SYMBOLS:
        return blas_address(symbol, prototype, program)
    raise TargetError(
        f"{program} calls {symbol}, of which no address is known: say where it is by lw.register_symbol, before the "
        "program is loaded"
    )
