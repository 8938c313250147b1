"""What a machine model predicts for the innermost loops of the machine code: cycles an iteration, and what bounds them.

The model is that by which register tiles are chosen and products cost (``schedules/register_tile.py``), applied to the
instructions that a loop has in the end; what such tiles have little of, stores and other instructions, is added here.
Beside it stands what ``llvm-mca`` says, where that is installed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..base.quantities import count_text
from ..base.target import Target
from ..codegen.report.loop_work import LoopWork, loop_work
from ..codegen.report.report import CodeLoop, VectorReport
from ..ir.open_extents import IN_COSTS
from ..ir.origin import Nest
from ..schedules.machine import CORE
from .llvm_mca import ask_llvm_mca
from .loop_prediction import Bound, LoopPrediction

MOST_LOOPS = 12
"""Of so many loops there is a prediction: llvm-mca is asked about each by itself."""


def predictions(report: VectorReport, nest: Nest, target: Target) -> tuple[LoopPrediction, ...]:
    """The predictions for the innermost loops of a report, without copies for borders: first the loop that takes the
    most cycles in all iterations. Only the code of x86-64 is read."""
    loops = [loop for loop in report.code if loop.innermost and not loop.tail and loop.origin]
    work = [(loop, loop_work(loop.instructions)) for loop in loops]
    work.sort(key=lambda item: -_iterations(nest, item[0].origin) * max(b.cycles for b in bounds(item[1], target)))
    return tuple(_prediction(loop, found, target) for loop, found in work[:MOST_LOOPS])


def _iterations(nest: Nest, origin: int) -> int:
    """How many a loop has, with those of the loops around it."""
    extents = (nest.loops[number].extent for number in (*nest.loops[origin].around, origin))
    return math.prod(int(extent) if extent.isdecimal() else IN_COSTS for extent in extents)


def _prediction(loop: CodeLoop, work: LoopWork, target: Target) -> LoopPrediction:
    opinion = ask_llvm_mca(loop.instructions, target)
    return LoopPrediction(loop.origin, loop.name, work.instructions, tuple(bounds(work, target)), work.beyond, opinion)


def bounds(work: LoopWork, target: Target) -> Iterator[Bound]:
    """What an iteration takes at least, for each part of a core."""
    full = work.widest if work.bits == target.vector_bits else 0  # two of all others are done in a cycle
    rate = target.fma_per_cycle if full else CORE.full_rate
    products = full / target.fma_per_cycle + (work.arithmetic - full) / CORE.full_rate
    yield Bound("fma", products, f"{count_text(work.arithmetic, 'product or sum', 'products or sums')}, {rate} a cycle")
    yield _rated("load", work.loads, "load", CORE.loads)
    yield _rated("store", work.stores, "store", CORE.stores)
    chain = (
        f"{count_text(work.chain, 'step')} from a sum to itself in the next iteration, {CORE.sum_cycles:g} cycles each"
    )
    yield Bound(
        "latency", work.chain * CORE.sum_cycles, chain if work.chain else "no sum goes on in the next iteration"
    )
    yield _rated("front end", work.instructions, "instruction", CORE.renamed)


def _rated(of: str, count: int, thing: str, per_cycle: int) -> Bound:
    return Bound(of, count / per_cycle, f"{count_text(count, thing)}, {per_cycle} a cycle")
