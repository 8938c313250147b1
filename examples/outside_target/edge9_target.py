"""edge9, a target from outside loopwright: any CPU of the host's architecture, with small caches and no wide tiles.

``kind`` is what the entry point in pyproject.toml names. Importing this module registers the strategies: they are for
the key ``edge9``, so other targets never meet them.
"""

from collections.abc import Sequence
from typing import Any

import loopwright as lw
from loopwright.base.target_kind import TargetKind
from loopwright.graph.types import Type
from loopwright.ops.definition.relations import tensor_argument
from loopwright.ops.definition.strategy import (
    OpStrategy,
    auto_inline_injective,
    inherited_strategy,
    register_schedule,
    register_strategy,
)
from loopwright.ops.families.matmul.matmul import DENSE
from loopwright.ops.families.trilu import TRILU
from loopwright.schedules.around import schedule_around
from loopwright.te.tensor import Tensors

KEY = "edge9"


def kind() -> TargetKind:
    """What ``lw.compile(model, target="edge9")`` compiles for."""
    return TargetKind("edge9", keys=(KEY,), l1_bytes=16 * 1024, l2_bytes=128 * 1024)


def schedule_dense(attrs: Any, anchor: Tensors, outputs: Tensors, target: lw.Target) -> lw.Schedule:
    """A row at a time, in vectors; the sums of a vector stay in a register, and what follows is computed with it."""
    (sums,) = anchor
    schedule, main = schedule_around(sums, outputs, [sums], target)
    *rows, column = schedule[main].loops[: main.ndim]
    block, lane = schedule[main].split(column, factor=target.lanes(main.dtype))
    schedule[main].vectorize(lane)
    if rows:
        schedule[main].parallel(rows[0])
    if main is not sums:
        schedule[sums].compute_at(schedule[main], block)
        schedule[sums].vectorize(schedule[sums].loops[sums.ndim - 1])
    return schedule


@register_strategy(DENSE, key=KEY)
def dense_strategy(attrs: Any, inputs: Sequence[Type], result: Type, target: lw.Target) -> OpStrategy:
    """All that other CPUs have, and one implementation more, which is preferred where rows are few."""
    strategy = inherited_strategy(KEY, DENSE, attrs, inputs, result, target)
    generic = next(made for _, made in strategy.candidates() if made.name == "dense.direct")
    with strategy.specialized(tensor_argument(result, "the result").shape[0] <= 8):
        strategy.add_implementation(generic.compute, schedule_dense, "dense.edge9", plevel=30)
    return strategy


@register_schedule(TRILU, key=KEY)
def schedule_trilu(attrs: Any, anchor: Tensors, outputs: Tensors, target: lw.Target) -> lw.Schedule:
    """A schedule for the compute that all targets share: vectors, on one thread."""
    schedule = lw.create_schedule(list(outputs))
    auto_inline_injective(schedule)
    for output in outputs:
        _, lane = schedule[output].split(schedule[output].loops[-1], factor=target.lanes(output.dtype))
        schedule[output].vectorize(lane)
    return schedule
