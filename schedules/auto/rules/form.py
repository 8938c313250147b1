"""Whether a stage has memory of its own, or is computed where it is read.

By default a stage is kept that others read again and again, as windows read what they go over, if its elements take
much themselves: the search would have to keep several of these at once to gain anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.constants import const_int
from ....ir.contents import free_vars
from ....ir.expr import Binary, Expr, TensorRead, Var
from ....ir.visit import tensor_reads, walk
from ....lowering.stage import Stage
from ....lowering.state import ScheduleState
from ...default_schedule import worth_inlining
from ..sketch import ScheduleRule, StageSketch

MANY_READS = 3
"""An element that takes so many reads, or more, or a division, is not computed again for each element that takes it."""


def _inline(at: StageSketch) -> None:
    at.stage.compute_inline()


def _is_cheap(at: StageSketch) -> bool:
    return worth_inlining(at.schedule.state, at.state) and not _is_shared(at)


def _is_shared(at: StageSketch) -> bool:
    """Whether elements that take much are each used for several elements of a reader."""
    return _takes_much(at.bodies) and _is_used_again(at.schedule.state, at.state)


def _takes_much(bodies: Sequence[Expr]) -> bool:
    nodes = [node for body in bodies for node in walk(body)]
    reads = {node for node in nodes if isinstance(node, TensorRead)}
    return len(reads) >= MANY_READS or any(isinstance(node, Binary) and node.op == "/" for node in nodes)


def _is_used_again(state: ScheduleState, stage: Stage) -> bool:
    """Whether a reader takes several elements of a stage for one of its own, or the same for all along an axis; or
    takes little, as a product does, and is used so itself."""
    for reader in state.consumers(stage):
        if not reader.is_compute:
            continue
        reads = {read for body in reader.compute.body for read in tensor_reads(body)}
        own = [read for read in reads if read.tensor in stage.tensors]
        axes = [axis.var for axis in reader.compute.axis if const_int(axis.extent) != 1]
        if len(own) > 1 or any(var not in _variables(read) for read in own for var in axes):
            return True
        if not _takes_much(reader.compute.body) and _is_used_again(state, reader):
            return True
    return False


def _variables(read: TensorRead) -> set[Var]:
    return {var for index in read.indices for var in free_vars(index)}


def _may_be_inlined(at: StageSketch) -> bool:
    state, stage = at.schedule.state, at.state
    readers = state.consumers(stage)
    spare = stage.name not in state.outputs and stage.compute.reduction is None
    return spare and not _is_cheap(at) and all(reader.is_compute for reader in readers)


def _keep(at: StageSketch) -> None:
    """Nothing is to be done."""


INLINE = ScheduleRule("inline", "form", _is_cheap, _inline)
KEEP = ScheduleRule("keep", "form", lambda at: True, _keep)
RECOMPUTE = ScheduleRule("recompute", "form", _may_be_inlined, _inline)
