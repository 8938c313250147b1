"""Packed functions: functions by global names, which operators of a graph may call.

Mutable: the table of names, under a lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from ...base.errors import LoopwrightError
from ..threads.fork_lock import ForkLock

PackedFunction: TypeAlias = Callable[..., Any]
Registered = TypeVar("Registered", bound=PackedFunction)

_functions: dict[str, PackedFunction] = {}
_lock = ForkLock()

NATIVE = ctypes.CFUNCTYPE(None).__mro__[1]
"""The base of all functions of ctypes, those of libraries too, which has no public name."""


def register_func(name: str, function: Registered, override: bool = False) -> Registered:
    """Give a function a global name, such as ``contrib.scale.forward``, and return it.

    Where ``lw.nn.extern`` calls it, it gets the inputs as read-only arrays, then an array for the output, which it
    fills, and the options of the call by name; it must keep none of the arrays. A function of ctypes is called with the
    arguments of a kernel's entry instead, without Python.

    Raises ``LoopwrightError`` for a name that is taken, unless ``override`` is asked for. Engines that are initialised
    keep the function they have found.

    >>> import loopwright as lw
    >>> def forward(x, y, factor):
    ...     y[...] = x * factor
    >>> lw.register_func("contrib.doc_scale.forward", forward) is lw.get_func("contrib.doc_scale.forward")
    True
    """
    if not all(part.isidentifier() for part in str(name).split(".")):
        raise LoopwrightError(f"the name of a function is identifiers with dots between them, found {name!r}")
    if not callable(function):
        raise LoopwrightError(f"{name} is registered for a function, found {function!r}")
    with _lock.held:
        if name in _functions and not override:
            raise LoopwrightError(f"the function {name} is registered already; say override=True to replace it")
        _functions[name] = function
    return function


def get_func(name: object) -> PackedFunction:
    """The function of a name. Raises ``LoopwrightError`` if there is none."""
    with _lock.held:
        found = _functions.get(name) if isinstance(name, str) else None
    if found is None:
        raise LoopwrightError(f"there is no function {name!r}: register it by lw.register_func")
    return found


def list_funcs() -> tuple[str, ...]:
    """The names of all functions, sorted."""
    with _lock.held:
        return tuple(sorted(_functions))
