"""The loops over the steps of sums that stay in registers."""

from __future__ import annotations

from ..ir.constants import const_int
from ..lowering.schedule import LoopView, StageView


def step_loops(stage: StageView) -> tuple[LoopView, ...]:
    """The loops of a reduction that no primitive changed, outermost first; an innermost one of two iterations is one
    loop with those around it.

        for c:                        for c_r in 2 * C:
            for r in 2:         →         sums += x[c_r // 2, … + c_r % 2] * …
                sums += x[c, … + r] * …

    LLVM makes a flag of a variable that is 0 and then 1, and copies and spills the sums of a register tile in its loop:
    convolutions by windows of 2 by 2 took 1.5 to 4 times as long.
    """
    op = stage.op
    loops = stage.loops[len(op.axis) :]
    extents = [const_int(axis.extent) for axis in op.reduce_axis]
    steps, count = 1, 0
    while steps <= 2 and count < len(loops):
        count += 1
        steps *= extents[-count] or 3  # one of an open extent is taken for a long one
    pairs = count > 1 and 2 in (extents[k] for k in range(len(loops) - count + 1, len(loops)))
    return (*loops[:-count], stage.fuse(*loops[-count:])) if pairs else loops
