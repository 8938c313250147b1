"""Generic functions over target keys: a default, and overrides for some keys; a target's most specific key decides.

Mutable: ``register`` adds to the table of its function, under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ...base.errors import LoopwrightError, SelectionError
from ...base.target import Target
from .foreign_code import note

DEFAULT_KEY = "default"
"""Serves the targets that no other key does."""

F = TypeVar("F", bound=Callable[..., Any])


class GenericFunction(Generic[F]):
    """Functions of one signature, by target key. ``purpose`` names it in errors: ``"the strategy of nn.dense"``."""

    def __init__(self, purpose: str, default: F | None = None) -> None:
        self.purpose = purpose
        self._functions: dict[str, F] = {}
        self._lock = threading.Lock()
        if default is not None:
            self.register()(default)

    def __repr__(self) -> str:
        return f"GenericFunction({self.purpose!r}, keys={list(self.keys())})"

    def register(self, key: str = DEFAULT_KEY, override: bool = False) -> Callable[[F], F]:
        """Decorator: the function for targets that have ``key``.

        A second registration is a ``LoopwrightError`` unless ``override`` is asked for.
        """

        def add(function: F) -> F:
            if not callable(function):
                raise LoopwrightError(f"{self.purpose} for {key!r} should be a function, found {function!r}")
            note(function)
            with self._lock:
                present = self._functions.get(key)
                if present is not None and not override:
                    raise LoopwrightError(
                        f"{self.purpose} is registered for {key!r} already, as {where(present)}, and now as "
                        f"{where(function)}; say override=True to replace it"
                    )
                self._functions[key] = function
            return function

        return add

    def keys(self) -> tuple[str, ...]:
        """The keys that have a function, the default first, then by name."""
        return tuple(sorted(self._functions, key=lambda key: (key != DEFAULT_KEY, key)))

    def key_for(self, target: Target) -> str | None:
        """The target's most specific key that has a function; the default key if none has; None without a default."""
        return next((key for key in (*target.keys, DEFAULT_KEY) if key in self._functions), None)

    def find(self, target: Target) -> F | None:
        """The function of ``key_for(target)``."""
        key = self.key_for(target)
        return None if key is None else self._functions[key]

    def for_target(self, target: Target) -> F:
        """The function of ``key_for(target)``. Raises ``SelectionError`` if there is none."""
        found = self.find(target)
        if found is None:
            raise SelectionError(f"{self.purpose} is registered for {', '.join(self.keys())}, not for {target}")
        return found


def where(function: object) -> str:
    """The place of a function in words: its module and name."""
    if isinstance(function, GenericFunction):
        return repr(function)
    name = getattr(function, "__qualname__", None)
    return repr(function) if name is None else f"{getattr(function, '__module__', '?')}.{name}"
