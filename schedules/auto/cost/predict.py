"""The cycles that a lowered function is predicted to take: what ``autoschedule`` ranks candidates by."""

from __future__ import annotations

import math

from ....base.brief import BriefRepr
from ....base.dataclass import dataclass
from ....base.target import Target
from ....ir.stmt import PrimFunc
from ....lowering.passes.short_loops import LEAST_CYCLES
from ...machine import CORE
from .instructions import BodyWork, work_of
from .nest import LoopNode, loop_tree
from .traffic import Arrays, Traffic

THREADS = 4
"""So many share parallel loops where the target does not say how many do."""
MEMORY_THREADS = 2.0
"""So many are enough to use up what memory gives."""
LAUNCH_CYCLES = LEAST_CYCLES / 2
"""To hand a loop to other threads, and to wait for them."""
SHARED_BYTES = 16 << 20
"""What a cache beyond the second one holds; targets do not say."""
HIDDEN = 0.75
"""The part of the shorter of computing and fetching that the other hides."""


@dataclass(frozen=True, slots=True, repr=False)
class PredictedCost(BriefRepr):
    """Cycles: ``computing``; ``fetching``, from the second cache and from beyond; and ``cycles``, in which a part of
    these hides behind the other; on as many threads as share the work."""

    cycles: float
    computing: float
    fetching: float

    def __str__(self) -> str:
        return f"{self.cycles:.0f} cycles: {self.computing:.0f} to compute, {self.fetching:.0f} to fetch"


@dataclass(frozen=True, slots=True, eq=False)
class NestAnalysis:
    """A lowered function ``func`` as the model sees it: its tree of loops with the ``work`` in each, and its arrays."""

    func: PrimFunc
    target: Target
    root: LoopNode
    work: dict[LoopNode, BodyWork]
    arrays: Arrays
    cost: PredictedCost


def predict(func: PrimFunc, target: Target) -> PredictedCost:
    """What a lowered function costs on a target. It need not be right, but comparable."""
    return analyse(func, target).cost


def analyse(func: PrimFunc, target: Target) -> NestAnalysis:
    """What a lowered function costs on a target, and what that is made of."""
    root = loop_tree(func)
    work, arrays = work_of(root, target), Arrays(root)
    return NestAnalysis(func, target, root, work, arrays, _cost(root, work, arrays, target))


def _cost(root: LoopNode, work: dict[LoopNode, BodyWork], arrays: Arrays, target: Target) -> PredictedCost:
    threads = float(target.threads or THREADS)
    total = computing = work[root].cycles(target.vector_registers)
    fetching = 0.0
    for nest in root.inner:
        compute, launches = _computing(nest, work, target, threads)
        fetch = _fetching(nest, arrays, target, min(threads, _tasks(nest)))
        total += max(compute, fetch) + (1 - HIDDEN) * min(compute, fetch) + launches
        computing += compute
        fetching += fetch
    return PredictedCost(total, computing, fetching)


def _fetching(nest: LoopNode, arrays: Arrays, target: Target, share: float) -> float:
    """Cycles to fetch what does not lie in the first cache, where so many threads share it: from the second one, from
    the one beyond, and from memory, which few threads use up."""
    near, far, beyond = (
        Traffic() if arrays.whole <= capacity else arrays.traffic(nest, float(capacity))
        for capacity in (target.l1_bytes, target.l2_bytes, SHARED_BYTES)
    )
    caches = (
        near.lines * CORE.second_cache_cycles
        + near.written
        + near.runs * CORE.jump_cycles
        + _far(far, CORE.shared_cycles)
    )
    return max(caches / share, _far(beyond, CORE.memory_cycles) / min(share, MEMORY_THREADS))


def _far(traffic: Traffic, line: float) -> float:
    """Cycles of lines; those that are written come first, and go back."""
    return (traffic.lines + traffic.written) * line + traffic.runs * CORE.jump_cycles


def _tasks(nest: LoopNode) -> float:
    return max(node.tasks for node in nest.all_inside())


def _computing(nest: LoopNode, work: dict[LoopNode, BodyWork], target: Target, threads: float) -> tuple[float, float]:
    """Cycles to compute, where threads share what they can, and to launch them."""
    cycles = launches = 0.0
    for node in nest.all_inside():
        shared = math.ceil(node.tasks / threads) / node.tasks if node.tasks > 1 else 1.0
        cycles += (
            node.iterations * work[node].cycles(target.vector_registers) + node.entries * CORE.entry_cycles
        ) * shared
        if node.launches and node.trips > 1 and threads > 1:
            launches += node.entries * LAUNCH_CYCLES
    return cycles, launches
