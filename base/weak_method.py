"""Methods that do not keep their object: what an object hands on to be called back would else keep it, in a cycle."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def while_alive(method: Callable[P, R]) -> Callable[P, R | None]:
    """Calls a method as long as its object is there, and gives None from then on."""
    reference = weakref.WeakMethod(method)

    def call(*args: P.args, **options: P.kwargs) -> R | None:
        found = reference()
        return None if found is None else found(*args, **options)

    return call


def weak_method(method: Callable[P, R]) -> Callable[P, R]:
    """Calls a method, whose object is there whenever it is called, since the caller's user keeps it."""
    reference = weakref.WeakMethod(method)

    def call(*args: P.args, **options: P.kwargs) -> R:
        found = reference()
        assert found is not None
        return found(*args, **options)

    return call
