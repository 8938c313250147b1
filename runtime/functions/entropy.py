"""The packed function that models which draw random numbers without a seed ask for a key, once a run."""

from __future__ import annotations

import os

from ..arrays import Array
from .packed_functions import register_func


def entropy(_: Array, key: Array, node: str) -> None:
    """Fill ``key`` with bits from the system. ``node`` tells apart the calls of a model, which would else be equal."""
    key[...] = int.from_bytes(os.urandom(8), "little")


register_func("loopwright.entropy", entropy)
