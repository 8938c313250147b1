"""Hash-consing: nodes of equal class and equal fields are one object, so structural equality *is* identity.

The table is weak (a node lives as long as somebody holds it) and locked. Keys hold the ``id`` of child nodes; a node
keeps its children alive, so an id cannot be reused while the entry that mentions it exists.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, TypeVar
from weakref import ref

from .timing import CURRENT

T = TypeVar("T")


class _Entry(ref[Any]):
    """A weak reference to a node that knows under which key the table has it."""

    __slots__ = ("key",)
    key: Hashable


_table: dict[Hashable, _Entry] = {}
_lock = threading.RLock()  # reentrant: a node may die, and be forgotten, while its thread holds the lock
_BY_VALUE = {str, int, bool, type(None)}


def _forget(entry: _Entry) -> None:
    with _lock:
        if _table.get(entry.key) is entry:  # an equal node may have been made since this one died
            del _table[entry.key]


def _key(values: tuple[Any, ...]) -> Hashable:
    """Children by identity, plain values by value. Each field has one or the other, so they cannot be confused."""
    return tuple([v if type(v) in _BY_VALUE else _key(v) if type(v) is tuple else id(v) for v in values])


class Interned(type):
    """Metaclass of hash-consed classes. A class that sets ``interned = False`` makes a fresh object at each call."""

    interned = True

    def intern_key(cls, args: tuple[Any, ...]) -> Hashable:
        """What makes two calls of the class one object; a class may override it as a static method."""
        return tuple([v if type(v) in _BY_VALUE else _key(v) if type(v) is tuple else id(v) for v in args])

    def __call__(cls: type[T], *args: Any, **kwargs: Any) -> T:
        if not cls.interned:  # type: ignore[attr-defined]
            return type.__call__(cls, *args, **kwargs)  # type: ignore[no-any-return]
        if kwargs or len(args) < len(cls.__match_args__):  # type: ignore[attr-defined]
            # Fill in the defaults through a throw-away object, so that all spellings of a call share an entry.
            args = type.__call__(cls, *args, **kwargs).__reduce__()[1]
        key = (cls, cls.intern_key(args))  # type: ignore[attr-defined]
        entry = _table.get(key)
        if entry is not None and (found := entry()) is not None:
            return found  # type: ignore[no-any-return]
        made = type.__call__(cls, *args)
        with _lock:
            entry = _table.get(key)
            if entry is not None and (found := entry()) is not None:
                return found  # type: ignore[no-any-return]
            _table[key] = entry = _Entry(made, _forget)
            entry.key = key
        stage = CURRENT.get()
        if stage is not None:
            stage.nodes += 1
        return made  # type: ignore[no-any-return]
