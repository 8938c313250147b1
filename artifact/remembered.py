"""What takes LLVM a while to say, and is the same in each process: remembered in the cache on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

from ..base.errors import LoopwrightError
from .cache import disk_cache
from .cache_entry import About
from .cache_key import compiler_version

T = TypeVar("T")


def remembered(
    kind: str,
    about: tuple[str, str],
    question: str,
    make: Callable[[], T],
    to_bytes: Callable[[T], bytes],
    from_bytes: Callable[[bytes], T],
) -> T:
    """What ``make`` finds, or found in an earlier process for the same question of the same kind and version of LLVM.

    ``about`` is the name and the target that the entry says it is of. ``from_bytes`` raises ``LoopwrightError`` for
    content that cannot be; then it is made anew.
    """
    cache = disk_cache()
    key = hashlib.sha256(f"{kind}\0{compiler_version()}\0{question}".encode()).hexdigest()
    content = cache.get(key)
    if content is not None:
        try:
            return from_bytes(content)
        except LoopwrightError as error:
            cache.drop(key, str(error))
    found = make()
    cache.put(key, About(kind, *about, compiler_version()), to_bytes(found))
    return found
