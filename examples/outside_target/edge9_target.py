"""edge9, a target from outside loopwright: any CPU of the host's architecture, with small caches and no wide tiles.

``kind`` is what the entry point in pyproject.toml names. Importing this module registers the strategies: they are for
the key ``edge9``, so other targets never meet them.
"""

from collections.abc import Sequence
from typing import Any

import loopwright as lw
from loopwright import op

KEY = "edge9"
DENSE, TRILU = op.get_op("nn.dense"), op.get_op("trilu")


def kind() -> op.TargetKind:
    """What ``lw.compile(model, target="edge9")`` compiles for."""
    return op.TargetKind("edge9", keys=(KEY,), l1_bytes=16 * 1024, l2_bytes=128 * 1024)


def schedule_dense(attrs: Any, anchor: op.Tensors, outputs: op.Tensors, target: lw.Target) -> lw.Schedule:
    """A row at a time, in vectors; the sums of a vector stay in a register, and what follows is computed with it."""
    (sums,) = anchor
    schedule, main = op.schedule_around(sums, outputs, [sums], target)
    *rows, column = schedule[main].loops[: main.ndim]
    block, lane = schedule[main].split(column, factor=target.lanes(main.dtype))
    schedule[main].vectorize(lane)
    if rows:
        schedule[main].parallel(rows[0])
    if main is not sums:
        schedule[sums].compute_at(schedule[main], block)
        schedule[sums].vectorize(schedule[sums].loops[sums.ndim - 1])
    return schedule


@op.register_strategy(DENSE, key=KEY)
def dense_strategy(attrs: Any, inputs: Sequence[op.Type], result: op.Type, target: lw.Target) -> op.OpStrategy:
    """All that other CPUs have, and one implementation more, which is preferred where rows are few."""
    strategy = op.inherited_strategy(KEY, DENSE, attrs, inputs, result, target)
    generic = next(made for _, made in strategy.candidates() if made.name == "dense.direct")
    with strategy.specialized(op.tensor_argument(result, "the result").shape[0] <= 8):
        strategy.add_implementation(generic.compute, schedule_dense, "dense.edge9", plevel=30)
    return strategy


@op.register_schedule(TRILU, key=KEY)
def schedule_trilu(attrs: Any, anchor: op.Tensors, outputs: op.Tensors, target: lw.Target) -> lw.Schedule:
    """A schedule for the compute that all targets share: vectors, on one thread."""
    schedule = lw.create_schedule(list(outputs))
    op.auto_inline_injective(schedule)
    for output in outputs:
        _, lane = schedule[output].split(schedule[output].loops[-1], factor=target.lanes(output.dtype))
        schedule[output].vectorize(lane)
    return schedule
