"""A reduction in tiles: rows times vectors of sums in registers, and what it reads often packed for them."""

from __future__ import annotations

import math

from ....ir.constants import const_int
from ....ir.expr import Axis
from ....ir.open_extents import LONG
from ....lowering.access_strides import stride_along
from ....lowering.loop_names import LoopView
from ....lowering.relations import Tail
from ....te.tensor import Tensor
from ...axis_choice import best_lanes, best_rows
from ...default_schedule import schedule_stage
from ...gaps import COPIED_USES, moving_index, only_read, uses_of, with_last
from ...register_tile import register_tile
from ..sketch import ScheduleRule, StageSketch
from .vectors import lane_count

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
VECTORS = (1, 2, 3, 4, 6, 8)
STEPS = (1, 2, 4, 8)
UNROLLED_TERMS = 9
"""A reduction of so many terms is written out by default, as the window of a stencil."""


def _is_tiled(at: StageSketch) -> bool:
    op = at.op
    return op.reduction is not None and bool(op.axis) and not op.ragged_axes


def _tile(at: StageSketch) -> None:
    """Tiles of sums stay in registers while the reductions run; what is outside of tiles is shared by threads."""
    op = at.op
    loops = dict(zip((*op.axis, *op.reduce_axis), at.stage.loops, strict=True))
    lanes_axis = _lanes_axis(at)
    row_axis = best_rows(op, at.bodies, lanes_axis)
    width = at.extent(loops[lanes_axis])
    height = 1 if row_axis is None else at.extent(loops[row_axis])
    lanes = lane_count(at, width)
    rows, vectors = _tile_size(at, height, width, lanes)
    _close_gaps_and_pack(at, lanes_axis, vectors * lanes)
    ragged = bool((height or 1) % rows or (width or 1) % (vectors * lanes))
    tails = ["guard", "peel"] if ragged else ["guard"]
    tail: Tail = "peel" if at.decide("tail", tails, "guard") == "peel" else "guard"
    outer: list[LoopView] = []
    inner: list[LoopView] = []
    for axis in op.axis:
        loop = loops[axis]
        if axis is lanes_axis and width != 1:
            block, column = at.stage.split(loop, factor=vectors * lanes, tail=tail)
            vector, lane = at.stage.split(column, factor=lanes)
            outer.append(block)
            inner += [vector, lane]
        elif axis is row_axis and rows > 1:
            block, row = at.stage.split(loop, factor=rows, tail=tail)
            outer.append(block)
            inner.insert(0, row)
        else:
            outer.append(loop)
    terms, steps = _steps(at, [loops[axis] for axis in op.reduce_axis])
    outer = _in_order(at, outer, next(k for k, axis in enumerate(op.axis) if axis is lanes_axis))
    at.stage.reorder(*outer, *terms, *steps, *inner)
    for loop in (*steps, *(inner if width == 1 else inner[:-1])):
        at.stage.unroll(loop)
    if width != 1:
        at.stage.vectorize(inner[-1])
    if at.is_whole and outer:
        at.stage.parallel(at.stage.fuse(*outer))


def _lanes_axis(at: StageSketch) -> Axis:
    """The axis whose elements become lanes: any that fills a vector."""
    op = at.op
    best = best_lanes(op, at.bodies)
    names = {axis.name if _is_alone(op.axis, axis) else f"{axis.name}{k}": axis for k, axis in enumerate(op.axis)}
    wide = [name for name, axis in names.items() if axis is best or (const_int(axis.extent) or LONG) >= at.lanes]
    default = next(name for name, axis in names.items() if axis is best)
    return names[at.decide("lanes", wide, default)]


def _is_alone(axes: tuple[Axis, ...], axis: Axis) -> bool:
    return sum(other.name == axis.name for other in axes) == 1


def _tile_size(at: StageSketch, height: int | None, width: int | None, lanes: int) -> tuple[int, int]:
    """How many rows and vectors of sums are in registers, as decisions."""
    tall, across = height or LONG, -(-(width or LONG) // lanes)
    kind = min((tensor.dtype for tensor in at.op.outputs), key=at.target.lanes)
    outputs = len(at.op.outputs)
    usual = register_tile(tall, across * lanes, at.target, kind, outputs=outputs) if lanes > 1 else None
    sums = max(1, at.target.vector_registers // outputs)
    most_rows = [rows for rows in ROWS if rows <= tall]
    wanted = usual.rows if usual is not None and tall > 1 else 1
    rows = at.decide("rows", most_rows, max(r for r in most_rows if r <= max(wanted, 1)))
    counts = [count for count in VECTORS if count <= across and (count == 1 or count * rows < sums)]
    wide = usual.vectors if usual is not None and tall > 1 else at.target.vector_registers // 4
    vectors = at.decide("vectors", counts, max(c for c in counts if c <= max(wide, 1)))
    return rows, vectors


def _steps(at: StageSketch, terms: list[LoopView]) -> tuple[list[LoopView], list[LoopView]]:
    """The reduction's loops, and those inside that are unrolled: some steps of the innermost, or all of a window."""
    extents = [at.extent(loop) for loop in terms]
    whole = math.prod(extent or LONG for extent in extents)
    last = extents[-1] or LONG
    few = [count for count in STEPS if count == 1 or (count < last and last % count == 0)]
    options = [*few, last] if extents[-1] is not None and 1 < last <= UNROLLED_TERMS else few
    count = at.decide("steps", sorted(set(options)), last if whole <= UNROLLED_TERMS and last in options else 1)
    if count == 1:
        return terms, []
    if count == last:
        rest = [(loop, extent) for loop, extent in zip(terms[:-1], extents[:-1], strict=True)]
        small = whole <= UNROLLED_TERMS
        return ([] if small else [loop for loop, _ in rest]), [*(loop for loop, _ in rest if small), terms[-1]]
    term, step = at.stage.split(terms[-1], factor=count)
    return [*terms[:-1], term], [step]


def _in_order(at: StageSketch, outer: list[LoopView], lanes: int) -> list[LoopView]:
    """The loops over tiles: in the order of the axes, or those along the lanes outermost, which read rows again, but
    stay at what the lanes read."""
    order = at.decide("order", ["axes", "lanes first"] if len(outer) > 1 and lanes > 0 else ["axes"], "axes")
    return outer if order == "axes" else [outer[lanes], *outer[:lanes], *outer[lanes + 1 :]]


def _close_gaps_and_pack(at: StageSketch, lanes: Axis, columns: int) -> None:
    """Copy what is read often along the lanes: without gaps, or into panels as wide as a tile."""
    op = at.op
    for number, tensor in enumerate(op.inputs):
        read = only_read(op, tensor)
        stride = None if read is None else stride_along(read, lanes.var)
        moving = None if read is None or stride == 0 else moving_index(read, lanes.var)
        if moving is None or read is None or not at.is_whole or uses_of(op, tensor) < COPIED_USES:
            continue
        dimension, step = moving
        straight = read.indices[dimension] is lanes.var
        ways = ["as it is", "without gaps", *(["panels"] if straight else [])]
        if stride == 1:
            ways.remove("without gaps")
        if len(ways) == 1:
            continue
        way = at.decide(f"copy {number}", ways, "as it is" if stride == 1 else "without gaps")
        if way == "as it is":
            continue
        copy = at.schedule.cache_read(tensor, "global", [at.name])
        stage = at.schedule[copy]
        stage.transform_layout(
            with_last(tensor.ndim, dimension, step) if way == "without gaps" else _panels(tensor, dimension, columns)
        )
        schedule_stage(stage, at.target)


def _panels(tensor: Tensor, dimension: int, columns: int) -> str:
    """The index map under which so many neighbours in a dimension lie together for all other indices."""
    names = [f"i{d}" for d in range(tensor.ndim)]
    moved, others = names[dimension], names[:dimension] + names[dimension + 1 :]
    return f"lambda {', '.join(names)}: ({', '.join([f'{moved} // {columns}', *others, f'{moved} % {columns}'])})"


TILE = ScheduleRule("tile", "loops", _is_tiled, _tile)
