"""Elementwise stages that read a tensor across its rows: square tiles of it are turned in registers."""

from __future__ import annotations

from ....base.dataclass import dataclass
from ....ir.constants import const_int
from ....ir.contents import free_vars
from ....ir.expr import Axis, TensorRead
from ....ir.open_extents import LONG
from ....ir.visit import tensor_reads
from ....lowering.stage import Inlined
from ....te.tensor import Tensor
from ...register_transpose import turn_tiles
from ..sketch import ScheduleRule, StageSketch

MOST_LANES = 16
"""The side of a square at most: of narrow elements, one as wide as a vector would take too many instructions."""


@dataclass(frozen=True, slots=True, eq=False)
class _Turned:
    """What is read across its rows: the tensor ``source``, of which the stage of ``reader`` reads an element at a time;
    its last index is the stage's ``axis``, and that at ``row`` the stage's last axis."""

    source: Tensor
    reader: Tensor
    axis: Axis
    row: int


def _turned(at: StageSketch) -> _Turned | None:
    op = at.op
    if not at.is_whole or op.reduction is not None or op.ragged_axes:
        return None
    reads: dict[Tensor, set[TensorRead]] = {}
    for body in at.bodies:
        for read in tensor_reads(body):
            if isinstance(read.tensor, Tensor):
                reads.setdefault(read.tensor, set()).add(read)
    for source, found in reads.items():
        readers = _readers(at, source)
        if len(found) == len(readers) == 1 and (across := _across(at, *found)) is not None:
            return _Turned(source, readers[0], *across)
    return None


def _across(at: StageSketch, read: TensorRead) -> tuple[Axis, int] | None:
    """The axis that the last index of a read is, and the number of the index that is the stage's last axis, where
    nothing else of the read depends on the two, and both are as long as a vector."""
    *outer, last = at.op.axis
    axis = next((axis for axis in outer if read.indices[-1] is axis.var), None)
    rows = [k for k, index in enumerate(read.indices) if last.var in set(free_vars(index))]
    if axis is None or len(rows) != 1 or read.indices[rows[0]] is not last.var:
        return None
    alone = all(axis.var not in set(free_vars(index)) for index in read.indices[:-1])
    long = all((const_int(each.extent) or LONG) >= at.lanes for each in (axis, last))
    return (axis, rows[0]) if alone and long else None


def _readers(at: StageSketch, source: Tensor) -> list[Tensor]:
    """The outputs of the stage and of those inlined into it that read a tensor themselves."""
    state = at.schedule.state
    pending, found = [at.op.outputs[0]], []
    for tensor in pending:
        for each in state.stage_of(tensor).op.inputs:
            if each is source:
                found.append(tensor)
            elif isinstance(state.stage_of(each).place, Inlined):
                pending.append(each)
    return found


def _schedule(at: StageSketch) -> None:
    turned = _turned(at)
    if turned is None:
        return
    lanes = at.decide("side", [size for size in (4, 8, MOST_LANES) if size <= at.lanes], min(at.lanes, MOST_LANES))
    loops = dict(zip(at.op.axis, at.stage.loops, strict=True))
    block, across = at.stage.split(loops.pop(at.op.axis[-1]), factor=lanes)
    loops[turned.axis], along = at.stage.split(loops[turned.axis], factor=lanes)
    at.stage.reorder(*loops.values(), block, along, across)
    at.stage.unroll(along)
    at.stage.vectorize(across)
    at.stage.parallel(at.stage.fuse(*loops.values()))
    turn_tiles(at.schedule, turned.source, turned.reader, at.stage, block, turned.row, lanes)


TURN = ScheduleRule("turn", "loops", lambda at: _turned(at) is not None, _schedule)
