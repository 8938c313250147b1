"""Hash-consing: nodes of equal class and equal fields are one object, so structural equality *is* identity.

The table is weak (a node lives as long as somebody holds it) and locked. Keys hold the ``id`` of child nodes; a node
keeps its children alive, so an id cannot be reused while the entry that mentions it exists.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

_table: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
_lock = threading.Lock()


def _key(value: Any) -> Hashable:
    if type(value) is tuple:
        return tuple([_key(v) for v in value])
    if value is None or isinstance(value, (str, int)):
        return value
    return id(value)


class Interned(type):
    """Metaclass of hash-consed classes. A class that sets ``interned = False`` makes a fresh object at each call."""

    interned = True

    def intern_key(cls, args: tuple[Any, ...]) -> Hashable:
        """What makes two calls of the class one object; a class may override it as a static method."""
        return _key(args)

    def __call__(cls: type[T], *args: Any, **kwargs: Any) -> T:
        if not cls.interned:  # type: ignore[attr-defined]
            return super().__call__(*args, **kwargs)  # type: ignore[misc, no-any-return]
        if kwargs or len(args) < len(cls.__match_args__):  # type: ignore[attr-defined]
            # Fill in the defaults through a throw-away object, so that all spellings of a call share an entry.
            args = super().__call__(*args, **kwargs).__reduce__()[1]  # type: ignore[misc]
        key = (cls, cls.intern_key(args))  # type: ignore[attr-defined]
        found = _table.get(key)
        if found is not None:
            return found  # type: ignore[no-any-return]
        made = super().__call__(*args)  # type: ignore[misc]
        with _lock:
            return _table.setdefault(key, made)  # type: ignore[no-any-return]
