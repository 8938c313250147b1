"""How a product whose right factor stands in panels is blocked: for registers, for caches and for threads.

    rows of the left factor, each copied to another offset in its page than its neighbours, where they would evict each
    other from the first cache: an extent of 1024 is bad for that, one of 1000 is not
    for task in parallel(chunks of panels × blocks of rows):
        for panel in chunk:                                    a chunk stays in the second cache, for all blocks of rows
            sums of a register tile, over the whole reduction
            what follows them, on the tile

Its sizes are decisions of the schedule, by name, whose defaults follow from the sizes of the product and of the target
(``decide_blocking``). The compute is the definition of the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ....base.dataclass import dataclass
from ....base.target import Target
from ....ir.constants import const_int
from ....ir.open_extents import MANY_ROWS
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around_sums
from ....schedules.blocks import MANY_TASKS, bytes_of, evict_each_other, largest_divisor, near_divisor, part_sizes
from ....schedules.decide_tile import decide_tile
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.machine import CORE
from ....schedules.register_tile import RegisterTile, register_tile
from ....schedules.register_transpose import turn_tiles
from ....te.tensor import Tensor
from ...definition.cost import moved
from .panels import MatrixProduct, ProductStages, RightLayout

STREAMING = 0.25
"""Cycles that a vector of a panel costs beside the step it is for, as it comes from the second cache."""
FEW_BLOCKS = 16
"""For so many blocks of rows, panels that go to memory and come back cost more than columns that are read in parts."""
FEWEST_TURNED = 4
"""Square tiles of a factor are turned in registers if vectors have so many lanes."""
UNROLLED = (1, 2, 4, 8)
AHEAD = (0, 1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Blocking:
    """A register tile; how many panels make a chunk; whether the left factor's rows are copied; whether a task has a
    chunk for all rows, and makes its panels, if they are made at run time; how many ``steps`` of the sum are unrolled,
    so many of these ``ahead`` a panel is fetched, 0 for none; how many blocks of rows are a task."""

    tile: RegisterTile
    chunk: int
    copies_rows: bool
    packs_chunks: bool = False
    steps: int = CORE.steps_unrolled
    ahead: int = 0
    blocks: int = 1


@dataclass(frozen=True, slots=True)
class BlockingPlan:
    """What the decisions of a product are by default: its tile, whether its right factor is packed, and the blocking
    of one with a given tile that is packed or not."""

    tile: RegisterTile
    pack: bool
    blocking: Callable[[RegisterTile, bool], Blocking]


def choose_blocking(product: MatrixProduct, target: Target, vectors: int | None = None) -> Blocking:
    """The blocking of a product; ``vectors`` is how wide the panels are, if that is given."""
    kind = product.result.dtype
    tile = register_tile(
        product.rows, product.columns, target, kind, vectors=vectors, streaming=STREAMING, steps=CORE.steps_unrolled
    )
    return with_tile(product, tile, target)


def with_tile(product: MatrixProduct, tile: RegisterTile, target: Target) -> Blocking:
    """The blocking of a product whose register tile is given."""
    kind = product.result.dtype
    panels = math.ceil(product.columns / tile.columns)
    tasks = product.batch * math.ceil(product.rows / tile.rows) * panels
    chunk = _chunk(product, tile, target, tasks // MANY_TASKS)
    copies_rows = not product.left_transposed and evict_each_other(tile.rows, product.reduction_extent, kind)
    return Blocking(tile, chunk, copies_rows)


def copying(product: MatrixProduct, blocking: Blocking) -> float:
    """Cycles to copy the left factor's rows, if they are copied."""
    return moved([product.left, product.left]) if blocking.copies_rows else 0.0


def blocking_plan(product: MatrixProduct, tile: RegisterTile, pack: bool, target: Target) -> BlockingPlan:
    """The plan of a product of floats as they lie, or in panels."""
    return BlockingPlan(tile, pack, partial(_blocking_with, product, target))


def _blocking_with(product: MatrixProduct, target: Target, tile: RegisterTile, pack: bool) -> Blocking:
    blocking = with_tile(product, tile, target)
    return packed_by_chunks(product, blocking, target) if pack else blocking


def packed_by_chunks(product: MatrixProduct, blocking: Blocking, target: Target) -> Blocking:
    """The blocking for panels that are made at run time: for few blocks of rows, by the task that has a chunk, which
    finds them in the second cache then. More blocks of rows are tasks of their own, and all panels are made before."""
    tile = blocking.tile
    panels, blocks = math.ceil(product.columns / tile.columns), math.ceil(product.rows / tile.rows)
    known = const_int(product.left.shape[-2]) is not None
    if product.batch > 1 or product.transposed or not known or blocks > FEW_BLOCKS or panels < MANY_TASKS:
        return blocking
    return replace(blocking, chunk=_chunk(product, tile, target, panels // MANY_TASKS), packs_chunks=True)


def _chunk(product: MatrixProduct, tile: RegisterTile, target: Target, most: int) -> int:
    """How many panels are a chunk, at most so many, that stays in half of the second cache. With open rows all chunks
    are whole: tasks are divided by an open number of blocks then, which would hide where the last one ends."""
    panels = math.ceil(product.columns / tile.columns)
    panel_bytes = product.reduction_extent * tile.columns * product.result.dtype.storage_bytes
    most = min(target.l2_bytes // 2 // panel_bytes, most)
    if product.is_open:
        return 1
    is_open = None in [const_int(extent) for extent in product.result.shape[:-1]]
    return largest_divisor(panels, max(1, most)) if is_open else near_divisor(panels, most)


def schedule_blocked(
    product: ProductStages,
    outputs: Sequence[Tensor],
    plan: BlockingPlan,
    target: Target,
    right_layout: RightLayout,
    keep: Sequence[Tensor] = (),
) -> Schedule:
    """Schedule a product of two factors, and what follows it.

    ``right_layout`` is how the product reads its right factor; if it is decided to ``pack``, that is copied to panels
    first. What computes a factor is inlined, unless it is among ``keep``, the stages that the caller schedules.
    """
    left, right = product.left, product.right
    schedule, core, main = schedule_around_sums(product.result, product.sums, outputs, [left, right, *keep], target)
    pack = schedule.decide("pack", [False] if right_layout == "panels" else [False, True], plan.pack)
    copyable = left not in keep and not any(source.op.inputs for source in left.op.inputs)
    blocking = decide_blocking(schedule, product, plan, target, right_layout, pack, copyable)
    tile = blocking.tile
    columns = const_int(core.shape[-1]) or 1
    width = (const_int(right.shape[-1]) or 1) if right_layout == "panels" else tile.columns
    ragged = math.ceil(columns / width) * width % tile.columns if right_layout == "panels" else columns % tile.columns
    panels = right
    if pack or ragged:
        panels = schedule.cache_read(right, "local", [core], pad="edge" if right_layout == "panels" else 0)
    is_ragged = _is_ragged(core, tile)
    rounds_up = is_ragged and _is_high(core, tile, target)
    rows = _row_copies(schedule, core, left, rounds_up) if blocking.copies_rows else None
    if is_ragged and (rows is None or not rounds_up):  # the last tile reads the last row again
        nearest = schedule.cache_read(left if rows is None else rows, "local", [core], pad="edge")
        schedule[nearest].compute_inline()
    made = blocking.packs_chunks and not pack
    for factor in (left, right):
        if factor.op.inputs and factor is not rows and factor not in keep and not (made and factor is right):
            schedule[factor].compute_inline()
    if rows is not None:
        _copy_rows(schedule[rows], tile, target)
    stage = schedule[main]
    stores_sums = main is product.result and not rounds_up  # stored from where they are summed
    task, panel = tile_result(stage, main.ndim - core.ndim, blocking, stores_sums)
    schedule[core].compute_at(stage, panel)
    if blocking.packs_chunks:
        schedule[panels if pack else right].compute_at(stage, task)
    if pack:
        _pack_panels(schedule, panels, right, blocking, right_layout)
    elif made:
        _make_panels(schedule[right], blocking)
    if panels is not right and not pack:  # where it lies, and 0 beyond its end
        schedule[panels].compute_inline()
    term = _sum_terms(schedule[core], blocking, width, rounds_up)
    if blocking.ahead:
        fetch_ahead(schedule[core], panels, term, blocking.ahead)
    if bytes_of(main.shape, main.dtype) > target.l2_bytes // 2 and blocking.chunk > 1:
        fetch_ahead(stage, main, panel, 1)
    return schedule


def tile_result(stage: StageView, matrices: int, blocking: Blocking, stores_sums: bool) -> tuple[LoopView, LoopView]:
    """Split the result into tasks, chunks of panels by blocks of rows, and these into tiles; gives the loops of a task
    and of a panel. The rows of several ``matrices`` are those of one."""
    tile = blocking.tile
    *outer, row, column = stage.loops[: len(stage.op.axis)]
    if matrices:
        outer, row = [], stage.fuse(*outer, row)
    panel, column = stage.split(column, factor=tile.columns)
    chunk, panel = stage.split(panel, factor=blocking.chunk)
    vector, lane = stage.split(column, factor=tile.lanes)
    block, row = stage.split(row, factor=tile.rows)
    several = [block]
    if blocking.blocks > 1:
        several = [*stage.split(block, factor=blocking.blocks)]
    stage.reorder(*outer, chunk, *several, panel, row, vector, lane)
    stage.vectorize(lane)
    if stores_sums:
        stage.unroll(vector)
        stage.unroll(row)
    task = stage.fuse(*outer, chunk) if blocking.packs_chunks else stage.fuse(*outer, chunk, several[0])
    stage.parallel(task)
    return task, panel


def decide_blocking(
    schedule: Schedule,
    product: ProductStages,
    plan: BlockingPlan,
    target: Target,
    right_layout: RightLayout,
    pack: bool,
    copyable: bool,
) -> Blocking:
    """The blocking of a product by the decisions of its schedule. None of them changes the order of a sum."""
    in_panels = pack or right_layout == "panels"
    rows, columns = (const_int(extent) or MANY_ROWS for extent in product.sums.shape[-2:])
    tile = decide_tile(schedule, plan.tile, rows, columns, target, keeps_width=right_layout == "panels")
    default = plan.blocking(tile, pack)
    makeable = pack or (in_panels and bool(product.right.op.inputs))
    packs_chunks = schedule.decide(
        "packs_chunks", [False, True] if makeable else [False], default.packs_chunks and makeable
    )
    chunk = schedule.decide("chunk", part_sizes(math.ceil(columns / tile.columns), default.chunk), default.chunk)
    copies_rows = schedule.decide(
        "copies_rows", [False, True] if copyable else [False], default.copies_rows and copyable
    )
    extent = const_int(product.sums.op.reduce_axis[0].extent)
    unrolled = [count for count in UNROLLED if count == 1 or (extent or 1) % count == 0]
    steps = schedule.decide("steps", unrolled, default.steps if default.steps in unrolled else 1)
    panel_bytes = (extent or MANY_TASKS) * tile.columns * product.right.dtype.storage_bytes
    stored = not product.right.op.inputs or pack  # else made in registers
    far = in_panels and stored and panel_bytes > target.l1_bytes // 2
    ahead = max(1, CORE.near_steps // max(steps, default.steps)) if far else 0
    ahead = schedule.decide("ahead", AHEAD if in_panels else [0], ahead)
    most = 1 if packs_chunks else math.ceil(rows / tile.rows)
    blocks = schedule.decide("blocks", [size for size in part_sizes(most, 1) if size & (size - 1) == 0], 1)
    return Blocking(tile, chunk, copies_rows, packs_chunks, steps, ahead, blocks)


def _sum_terms(stage: StageView, blocking: Blocking, width: int, rounds_up: bool) -> LoopView:
    """Keep a tile of sums in registers while the reduction runs; gives the loop over it. Columns fill panels of a
    ``width``; of an open number of rows, those that are not there are summed as well if it ``rounds_up``, else left out
    by a test of each."""
    (core,) = stage.op.outputs
    tile, steps = blocking.tile, blocking.steps
    *outer, row, column, term = stage.loops
    if _is_ragged(core, tile) or (const_int(core.shape[-1]) or 1) % width:
        column = stage.round_up(column, factor=width)
    if rounds_up:
        row = stage.round_up(row, factor=tile.rows)
    vector, lane = stage.split(column, factor=tile.lanes)
    inner: list[LoopView] = []
    if steps > 1:
        term, step = stage.split(term, factor=steps)
        inner = [step]
    stage.reorder(*outer, term, *inner, row, vector, lane)
    stage.vectorize(lane)
    for loop in (*inner, row, vector):
        stage.unroll(loop)
    return term


def _is_ragged(core: Tensor, tile: RegisterTile) -> bool:
    """Whether there may be any number of rows, so that the last tile may not be full."""
    return tile.rows > 1 and const_int(core.shape[-2]) is None


def _is_high(core: Tensor, tile: RegisterTile, target: Target) -> bool:
    """Whether a tile's sums take so many registers that its rows cannot be tested one by one while they are summed. Of
    several matrices each has a last tile, so that to sum rows that are not there takes longer than the tests."""
    one_matrix = all(const_int(extent) == 1 for extent in core.shape[:-2])
    return one_matrix and tile.rows * tile.vectors > target.vector_registers // 2


def _row_copies(schedule: Schedule, core: Tensor, left: Tensor, rounds_up: bool) -> Tensor:
    """The stage that copies the left factor row by row: the one that makes it, or one of its own, which has the last
    row again and again for the tile that ends beyond it."""
    if rounds_up:
        return schedule.cache_read(left, "local", [core], pad="edge")
    return left if left.op.inputs else schedule.cache_read(left, "local", [core])


def _copy_rows(stage: StageView, tile: RegisterTile, target: Target) -> None:
    """Copy blocks of rows, whose stride is an odd number of vectors."""
    (copy,) = stage.op.outputs
    line = target.lanes(copy.dtype)
    stage.storage_align(copy.ndim - 2, 2 * line, line)
    *outer, row, term = stage.loops
    block, row = stage.split(row, factor=tile.rows)
    _, lane = stage.split(term, factor=tile.lanes)
    stage.vectorize(lane)
    stage.parallel(stage.fuse(*outer, block))


def _make_panels(stage: StageView, blocking: Blocking) -> None:
    """Make panels term by term, some terms at a time."""
    tile, term, column = stage.loops
    term, step = stage.split(term, factor=blocking.steps)
    vector, lane = stage.split(column, factor=blocking.tile.lanes)
    stage.reorder(tile, term, step, vector, lane)
    stage.vectorize(lane)
    for loop in (step, vector):
        stage.unroll(loop)


def _pack_panels(schedule: Schedule, panels: Tensor, right: Tensor, blocking: Blocking, layout: RightLayout) -> None:
    """Copy a right factor to panels: by rows, which reads it in order, or in square tiles that are turned in registers
    where its columns are rows in memory."""
    stage, tile = schedule[panels], blocking.tile
    batch = [f"b{k}" for k in range(panels.ndim - 2)]
    *outer, first, second = stage.loops
    term, column = (first, second) if layout == "rows" else (second, first)
    width = tile.columns
    if (const_int(panels.shape[-1 if layout == "rows" else -2]) or 1) % width:
        column = stage.round_up(column, factor=width)
    panel, column = stage.split(column, factor=width)
    vector, lane = stage.split(column, factor=tile.lanes)
    turns = layout == "columns" and not right.op.inputs and tile.lanes >= FEWEST_TURNED
    if turns:
        block, term = stage.split(term, factor=tile.lanes)
        stage.reorder(*outer, panel, block, vector, term, lane)
        stage.unroll(term)
        task = stage.fuse(*outer, panel)
    else:
        stage.reorder(*outer, term, panel, vector, lane)
        stage.unroll(vector)
        task = term if blocking.packs_chunks else stage.fuse(*outer, term)
    stage.vectorize(lane)
    if not blocking.packs_chunks:
        stage.parallel(task)
    if turns:
        turn_tiles(schedule, right, panels, stage, vector, right.ndim - 2, tile.lanes)
    axes = [*batch, *(("k", "j") if layout == "rows" else ("j", "k"))]
    stage.transform_layout(
        f"lambda {', '.join(axes)}: ({''.join(f'{b}, ' for b in batch)}j // {width}, k, j % {width})"
    )
