"""How often Python looks for cycles of garbage while something compiles, which makes many objects and few cycles."""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager

from .process_setting import ProcessSetting

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""To look for cycles as often as Python does takes a tenth of the time of a compilation."""


def _set_first_threshold(objects: int) -> None:
    gc.set_threshold(objects, *gc.get_threshold()[1:])


_threshold = ProcessSetting(lambda: gc.get_threshold()[0], _set_first_threshold)


def rare_collections() -> AbstractContextManager[None]:
    """A block in which more objects are made between two searches for cycles, in all threads. A program that has
    searches switched off, or as rare, keeps that; and so does one that sets another number meanwhile."""
    return _threshold.block(OBJECTS_BETWEEN_COLLECTIONS, lambda before: 0 < before < OBJECTS_BETWEEN_COLLECTIONS)
