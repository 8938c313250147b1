"""Elementwise stages and stencils: vectors along a row, strips of rows that threads share, rows side by side."""

from __future__ import annotations

import math

from ....ir.constants import const_int
from ....ir.contents import free_vars
from ....ir.expr import Axis
from ....ir.open_extents import LONG
from ....ir.visit import tensor_reads
from ....lowering.loop_names import LoopView
from ....lowering.stage import Inlined
from ...axis_choice import neighbouring
from ...default_schedule import TASKS, pointwise_lanes
from ...gaps import only_read
from ..sketch import ScheduleRule, StageSketch

STRIPS = (1, 2, 4, 8, 16, 32, 64)
STRIP = 16
"""Rows of a strip whose inputs are computed for it."""
COLUMNS = (4, 8, 16, 32, 64)
"""Vectors of a row that are a block of its own."""
SHORT = 4
"""Rows of fewer vectors are joined with those beside them where that is one loop."""
SIDE_BY_SIDE = (1, 2, 4)
WIDTHS = (1, 2, 4)
"""Vectors that are computed together."""


def _is_elementwise(at: StageSketch) -> bool:
    op = at.op
    return op.reduction is None and bool(op.axis) and not op.ragged_axes


def _schedule(at: StageSketch) -> None:
    loops = list(at.stage.loops)
    extents = [at.extent(loop) for loop in loops]
    rank = len(loops) - _joined(at, extents)
    row = None if None in extents[rank:] else math.prod(e or 1 for e in extents[rank:])
    columns = at.stage.fuse(*loops[rank:]) if len(loops) - rank > 1 else loops[-1]
    usual = pointwise_lanes(at.stage, row, at.target)
    widths = [at.lanes * count for count in WIDTHS if row is None or at.lanes * count <= row] or [max(row or 1, 1)]
    width = at.decide("width", sorted({*widths, min(usual, row or usual)}), min(usual, row or usual))
    if not at.is_whole:
        _vectorize(at, columns, width, row)
        return
    outer, strip, inside = _strips(at, loops[:rank], extents[:rank])
    outer, repeated = _around_strips(at, outer, strip)
    block, vector, lane = _blocks(at, columns, width, row)
    body = [loop for loop in (vector,) if loop is not None]
    around = [loop for loop in (block,) if loop is not None]
    rows, together = _side_by_side(at, inside)
    at.stage.reorder(*outer, *strip, *repeated, *around, *rows, *body, *together, *lane)
    for loop in together:
        at.stage.unroll(loop)
    for loop in lane:
        at.stage.vectorize(loop)
    tasks = [*outer, *strip]
    count = math.prod(at.extent(loop) or LONG for loop in tasks)
    if count < TASKS and not rows:
        tasks += around or body
    elif count < TASKS:
        tasks += around
    if tasks:
        at.stage.parallel(at.stage.fuse(*tasks))


def _joined(at: StageSketch, extents: list[int | None]) -> int:
    """How many of the innermost loops become one. Where producers may be computed for strips of rows, these are only
    short rows, and a loop is left for the strips."""
    most = neighbouring(at.stage, at.op)
    if at.is_whole and not _has_producers(at):
        return most
    count = 1
    whole = [const_int(axis.extent) for axis in at.op.axis]
    while count < min(most, len(extents) - 1) and extents[-count] == whole[-count]:
        if None in extents[-count - 1 :] or math.prod(e or 1 for e in extents[-count:]) >= SHORT * at.lanes:
            break
        count += 1
    return count


def _has_producers(at: StageSketch) -> bool:
    """Whether it reads stages that have memory of their own, so that these may be computed in its loops."""
    state = at.schedule.state
    pending = [state.stage_of(tensor) for tensor in at.op.inputs]
    for stage in pending:
        if isinstance(stage.place, Inlined):
            pending += [state.stage_of(tensor) for tensor in stage.op.inputs]
        elif stage.is_compute:
            return True
    return False


def _vectorize(at: StageSketch, loop: LoopView, width: int, extent: int | None) -> None:
    if extent == 1:
        return
    if extent == width:
        at.stage.vectorize(loop)
        return
    _, lane = at.stage.split(loop, factor=width)
    at.stage.vectorize(lane)


def _strips(
    at: StageSketch, outer: list[LoopView], extents: list[int | None]
) -> tuple[list[LoopView], list[LoopView], list[LoopView]]:
    """The loops outside, that over strips, and that over the rows of one, which is absent where strips are one row."""
    if not outer:
        return [], [], []
    rows = extents[-1] or LONG
    heights = [height for height in STRIPS if height <= rows]
    most = STRIP if _has_producers(at) else SIDE_BY_SIDE[-1] if _shares_rows(at, len(outer) - 1) else 1
    usual = max(h for h in heights if h <= most and (h == 1 or rows >= 2 * h))
    height = at.decide("strip", heights, usual)
    if height == 1:
        return outer[:-1], [outer[-1]], []
    strip, row = at.stage.split(outer[-1], factor=height)
    return outer[:-1], [strip], [row]


def _shares_rows(at: StageSketch, row: int) -> bool:
    """Whether rows read some of the same: elements of one array that differ along the axis of that number alone."""
    var = at.op.axis[row].var
    seen: set[tuple[object, ...]] = set()
    for read in {read for body in at.bodies for read in tensor_reads(body)}:
        moving = [k for k, index in enumerate(read.indices) if var in set(free_vars(index))]
        key = read.tensor, *(index for k, index in enumerate(read.indices) if k not in moving)
        if moving and key in seen:
            return True
        seen.add(key)
    return False


def _around_strips(
    at: StageSketch, outer: list[LoopView], strip: list[LoopView]
) -> tuple[list[LoopView], list[LoopView]]:
    """The loops around those over strips, and those inside, which what is computed for a strip serves again and again,
    as all channels of an image whose brightness they share."""
    inside = [loop for loop, axis in zip(outer, at.op.axis, strict=False) if strip and _serves_all(at, axis)]
    if not inside or at.decide("order", ["strips first", "axes"], "strips first") == "axes":
        return outer, []
    return [loop for loop in outer if loop not in inside], inside


def _serves_all(at: StageSketch, axis: Axis) -> bool:
    """Whether it reads the same of a stage that has memory of its own, wherever it is along an axis."""
    state = at.schedule.state
    stages = ((tensor, state.stage_of(tensor)) for tensor in at.op.inputs)
    kept = [tensor for tensor, stage in stages if stage.is_compute and not isinstance(stage.place, Inlined)]
    reads = [read for tensor in kept if (read := only_read(at.op, tensor)) is not None]
    return any(all(axis.var not in set(free_vars(index)) for index in read.indices) for read in reads)


def _blocks(
    at: StageSketch, columns: LoopView, width: int, extent: int | None
) -> tuple[LoopView | None, LoopView | None, list[LoopView]]:
    """A row's loop over blocks, if there is one, that over vectors, and their lanes."""
    vectors = -(-(extent or LONG) // width)
    sizes = [0, *(size for size in COLUMNS if size < vectors)]
    size = at.decide("columns", sizes, 0)
    if extent == 1:
        return None, columns, []
    if size:
        block, columns = at.stage.split(columns, factor=size * width)
        vector, lane = at.stage.split(columns, factor=width)
        return block, vector, [lane]
    if extent == width:
        return None, None, [columns]
    vector, lane = at.stage.split(columns, factor=width)
    return None, vector, [lane]


def _side_by_side(at: StageSketch, rows: list[LoopView]) -> tuple[list[LoopView], list[LoopView]]:
    """The loop over rows of a strip, and those that are computed together, so that what they share is read once."""
    if not rows:
        return [], []
    height = at.extent(rows[0]) or 1
    counts = [count for count in SIDE_BY_SIDE if count <= height and height % count == 0]
    # Where nothing is computed for a strip, rows are in strips for the sake of what they share.
    count = at.decide("together", counts, 1 if _has_producers(at) else counts[-1])
    if count == 1:
        return rows, []
    row, together = at.stage.split(rows[0], factor=count)
    return [row], [together]


ELEMENTS = ScheduleRule("elements", "loops", _is_elementwise, _schedule)
