"""The scheduling primitives, one file a family. Each is a step: a frozen record that maps a state to a new state."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..step import STEPS, Step
from .accumulate import Accumulate
from .annotate import Parallel, Unroll, Vectorize
from .caching import CacheRead, CacheWrite
from .decide import Decide
from .hints import Annotate, Prefetch
from .loop_shape import Fuse, Reorder, Split
from .placement import ComputeAt, ComputeInline, ComputeRoot, ReverseComputeAt
from .reduction import RFactor
from .round_up import RoundUp
from .storage import SetScope, StorageAlign, TransformLayout
from .tensorize import Tensorize

__all__ = [
    "Accumulate",
    "Annotate",
    "CacheRead",
    "CacheWrite",
    "ComputeAt",
    "ComputeInline",
    "ComputeRoot",
    "Decide",
    "Fuse",
    "Parallel",
    "Prefetch",
    "RFactor",
    "Reorder",
    "ReverseComputeAt",
    "RoundUp",
    "SetScope",
    "Split",
    "StorageAlign",
    "Tensorize",
    "TransformLayout",
    "Unroll",
    "Vectorize",
    "primitives",
]


def primitives() -> Mapping[str, type[Step]]:
    """The kinds of steps there are, by the name of their primitive."""
    return MappingProxyType(STEPS)
