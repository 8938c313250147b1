"""Times for the page: kernels of several schedules, and other programs, in alternating rounds on the same arrays."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..base.dtype import DType
from ..base.errors import RuntimeArgumentError
from ..ir.constants import const_int
from ..runtime.arrays import Array
from ..runtime.kernel import BoundKernel
from ..te.tensor import Tensor
from ..te.work import operations
from .document import RateUnit, Work

ROUNDS = 5
ROUND_SECONDS = 0.01

Program: TypeAlias = Callable[..., Any]
"""Something that computes the same as a kernel: it is called with the arrays of the inputs."""

Call: TypeAlias = Callable[[], object]


def work_of(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Work | None:
    """The operations and bytes of a compute; None where they depend on dimensions that each call chooses."""
    count = const_int(operations(outputs))
    sizes = [_bytes(tensor) for tensor in (*inputs, *outputs)]
    total = sum(size for size in sizes if size is not None)
    unit: RateUnit = "GFLOP/s" if counts_as_float(inputs) else "Gop/s"
    return None if count is None or None in sizes else Work(count, total, unit)


def counts_as_float(inputs: Sequence[Tensor]) -> bool:
    """Whether the arithmetic on these inputs is that of floats, which alone the machine's rates are about: there are
    floats, and no integers too narrow to be indices."""
    kinds = [tensor.dtype for tensor in inputs]
    return any(k.is_float for k in kinds) and all(k.is_float or k.is_bool or k.bits >= 32 for k in kinds)


def _bytes(tensor: Tensor) -> int | None:
    extents = [const_int(extent) for extent in tensor.shape]
    known = [extent for extent in extents if extent is not None]
    return prod(known) * tensor.dtype.storage_bytes if len(known) == len(extents) else None


def random_array(tensor: Tensor, rng: np.random.Generator) -> Array:
    """An array for a tensor of known shape: random numbers, but zeros where they may be used as indices."""
    shape = tuple(const_int(extent) or 0 for extent in tensor.shape)
    kind: DType = tensor.dtype
    if kind.is_float:
        return rng.standard_normal(shape, np.float32).astype(kind.to_numpy())
    small = kind.is_bool or kind.bits == 8
    return rng.integers(0, 2, shape).astype(kind.to_numpy()) if small else np.zeros(shape, kind.to_numpy())


def peer_call(name: str, program: Program, inputs: Sequence[Tensor], arrays: Sequence[Array]) -> Call:
    """A call of a peer. Raises ``RuntimeArgumentError`` where the peer fails."""

    def call() -> None:
        try:
            program(*arrays)
        except Exception as error:
            raise RuntimeArgumentError(
                f"the peer {name!r} fails on {list(inputs)}: {type(error).__name__}: {error}"
            ) from error

    return call


def time_alternating(kernels: Sequence[BoundKernel], peers: Mapping[str, Call]) -> tuple[list[float], dict[str, float]]:
    """Seconds of a call of each kernel and each peer: medians over rounds in which they take turns."""
    calls: list[Call] = [*kernels, *peers.values()]
    counts = [_count(call) for call in calls]
    rounds = [[_seconds(call, count) for call, count in zip(calls, counts, strict=True)] for _ in range(ROUNDS)]
    medians = [statistics.median(samples) for samples in zip(*rounds, strict=True)]
    return medians[: len(kernels)], dict(zip(peers, medians[len(kernels) :], strict=True))


def _count(call: Call) -> int:
    """How many calls make a round; the first one warms up."""
    call()
    return max(1, int(ROUND_SECONDS / max(_seconds(call, 1), 1e-7)))


def _seconds(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
