"""nn.winograd_conv2d: a convolution by windows of 3×3 with stride 1, as Winograd's F(m×m, 3×3), of transformed weights.

A tile of m×m positions of the result needs (m+2)² products for each channel and filter, in place of 9m². By the
matrices of ``winograd_transform.py``, for each tile:

    V = Bᵀ d B        d: the (m+2)×(m+2) positions of x that the tile needs, of each channel
    M = Σ V ⊙ U       over the channels; U = G g Gᵀ, the planes, of each channel and filter
    y = Aᵀ M A        of each filter

For each of the (m+2)² planes, the sum is a product of matrices: of tiles by channels, and channels by filters. So tiles
are taken in groups: V of a group stays in the second cache while panels of filters pass by, some for each plane. Of an
image whose height or width is open, only the number of groups is: the layout planner chooses how many tiles one has.
A result in NCHW is written by strips of rows: those of a group wait in blocks, and are transposed (``unblocked.py``).
``nn.conv2d`` proposes it to the layout planner (``winograd_weights.py``), which weighs the cost declared here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import te
from ....base.aligned import ARENA_ALIGNMENT
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.layout import NCHW
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.open_extents import IN_COSTS, MANY_ROWS
from ....ir.simplify import simplify
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.blocks import MANY_TASKS
from ....schedules.fetch_ahead import fetch_ahead
from ....schedules.machine import CORE
from ....schedules.register_transpose import turn_squares
from ....te.tensor import Tensors
from ...definition.arguments import PerAxis, naming
from ...definition.cost import elements_of, moved
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy, Stages, register_strategy
from ..bilinear import chosen
from ..window import given_padding, inside
from .unblocked import TRANSPOSED_CYCLES, schedule_squares, split_places
from .winograd_blocking import Products, WinogradBlocking
from .winograd_transform import input_row, output_row, transforms
from .winograd_type import WinogradAttrs, panel_extents, winograd_type

# Registration

WINOGRAD_CONV2D = register_op(
    "nn.winograd_conv2d",
    "Convolution over H and W by windows of 3×3 with stride 1, as Winograd does it, with weights transformed before",
    [
        ("x", "[N, C, H, W], channels in blocks as data_layout says"),
        ("planes", "[K / f, m + 2, m + 2, C, f]: the transformed weights, in panels of f filters"),
    ],
    winograd_type,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    WinogradAttrs,
    support_level=10,
)


# Compute and schedule


@dataclass(frozen=True, slots=True)
class WinogradStages(Stages):
    """What is ``taken`` of x, its rows transformed, and its columns: the ``inputs``. Their ``products`` with the
    ``planes``. The rows of these transformed, and their columns, which are tiles ``made``; and the result in blocks of
    channels, which is that of the operator unless it has to be in NCHW."""

    taken: te.Tensor
    taken_rows: te.Tensor
    inputs: te.Tensor
    planes: te.Tensor
    products: te.Tensor
    made_rows: te.Tensor
    made: te.Tensor
    blocked: te.Tensor

    @property
    def is_unblocked(self) -> bool:
        """Whether the result is in NCHW."""
        return self.blocked is not self.result

    @property
    def before_result(self) -> list[te.Tensor]:
        """All stages that are computed before the result, which may be the one in blocks."""
        between = [self.blocked] if self.is_unblocked else []
        return [self.products, self.inputs, self.taken, self.taken_rows, self.made_rows, self.made, *between]


@dataclass(frozen=True, slots=True, eq=False)
class Winograd:
    """A convolution and how it is cut."""

    attrs: WinogradAttrs
    tiles: tuple[Expr, Expr]  # rows and columns of them
    products: Products  # of one image, open extents as costs assume them
    blocking: WinogradBlocking
    width: int
    lanes: int  # of a vector of filters
    strip: int  # how many positions of the result follow each other that a group makes, if the result is in NCHW

    @property
    def count(self) -> Expr:
        """The number of tiles."""
        return simplify(self.tiles[0] * self.tiles[1])

    @property
    def groups(self) -> Expr:
        """How many groups the tiles of an image are taken in; the last one may be filled in part."""
        rows, columns = self.tiles
        return simplify((rows * columns + self.blocking.group - 1) // self.blocking.group)

    @property
    def parts(self) -> int:
        """How many blocks of the result's channels a panel computes."""
        return self.width // self.lanes

    def compute(self, attrs: WinogradAttrs, inputs: Tensors, result: Type) -> WinogradStages:
        """The result, over tiles of x, these transformed, their products with the planes, and these transformed back;
        in NCHW, one more stage takes it out of its blocks."""
        x, planes = inputs[:2]
        kind = tensor_argument(result, "result")
        taken = self._inputs(x)
        products = self._products(taken[-1], planes)
        made = self._result(products, kind)
        if self.attrs.out is not NCHW:
            return WinogradStages(made[-1], *taken, planes, products, *made)
        blocked, lanes = made[-1], self.lanes
        plain = te.compute(kind.shape, lambda n, k, *o: blocked[(n, k // lanes, *o, k % lanes)], name="winograd.plain")
        return WinogradStages(plain, *taken, planes, products, *made)

    def _inputs(self, x: te.Tensor) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
        """V[n, i, j, block, tile, channel] = Bᵀ d B: by rows, then by columns. Beyond its borders, x is 0, and V is for
        tiles behind the last one, which fill up a register tile. Gives d, Bᵀ d, and V."""
        n, blocks, height, width, lanes = x.shape
        size, points, count = self.attrs.size, self.attrs.points, self.count
        matrix, (top, left, *_) = transforms(size).inputs, self.attrs.padding
        shape = (n, blocks, count, points, points, lanes)

        def taken(b: Axis, co: Axis, t: Axis, i: Axis, j: Axis, ci: Axis) -> Expr:
            position = (t // self.tiles[1] * size + i - top, t % self.tiles[1] * size + j - left)
            valid = inside(position, (height, width), self.attrs.padding, (True, True))
            return te.if_then_else(valid, x[b, co, *position, ci], te.const(0, x.dtype))

        tiles = te.compute(shape, taken, name="winograd.taken")

        def by_rows(*index: Axis) -> Expr:
            *outer, i, j, ci = index
            return chosen(i, [input_row(row, [tiles[*outer, r, j, ci] for r in range(points)]) for row in matrix])

        half = te.compute(shape, by_rows, name="winograd.taken_rows")

        def by_columns(b: Axis, i: Axis, j: Axis, co: Axis, t: Axis, ci: Axis) -> Expr:
            made = chosen(j, [input_row(row, [half[b, co, t, i, c, ci] for c in range(points)]) for row in matrix])
            return te.if_then_else(t < count, made, te.const(0, x.dtype))

        inputs = te.compute((n, points, points, blocks, count, lanes), by_columns, name="winograd.inputs")
        return tiles, half, inputs

    def _products(self, taken: te.Tensor, planes: te.Tensor) -> te.Tensor:
        """M[n, panel, i, j, tile, filter] = Σ V ⊙ U."""
        n, points, _, blocks, count, lanes = taken.shape
        co, ci = te.reduce_axis((0, blocks), name="co"), te.reduce_axis((0, lanes), name="ci")

        def element(b: Axis, panel: Axis, i: Axis, j: Axis, t: Axis, k: Axis) -> Expr:
            return te.sum(taken[b, i, j, co, t, ci] * planes[panel, i, j, co * lanes + ci, k], axis=[co, ci])

        shape = (n, planes.shape[0], points, points, count, self.width)
        return te.compute(shape, element, name="winograd.products")

    def _result(self, products: te.Tensor, kind: TensorType) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
        """Aᵀ M A, by rows, then by columns; and the result, which is made of these tiles. Gives Aᵀ M, too."""
        n, lanes, (height, width) = kind.shape[0], self.lanes, kind.shape[2:4]
        size, points, count = self.attrs.size, self.attrs.points, self.count
        matrix, parts = transforms(size).outputs, self.parts
        blocks = products.shape[1] * parts

        def by_rows(b: Axis, ko: Axis, t: Axis, i: Axis, j: Axis, ki: Axis) -> Expr:
            column = [products[b, ko // parts, r, j, t, ko % parts * lanes + ki] for r in range(points)]
            return chosen(i, [output_row(row, column) for row in matrix])

        half = te.compute((n, blocks, count, size, points, lanes), by_rows, name="winograd.made_rows")

        def by_columns(*index: Axis) -> Expr:
            *outer, j, ki = index
            return chosen(j, [output_row(row, [half[*outer, c, ki] for c in range(points)]) for row in matrix])

        tiles = te.compute((n, blocks, count, size, size, lanes), by_columns, name="winograd.made")

        def position(b: Axis, ko: Axis, y: Axis, x: Axis, ki: Axis) -> Expr:
            return tiles[b, ko, y // size * self.tiles[1] + x // size, y % size, x % size, ki]

        return half, tiles, te.compute((n, blocks, height, width, lanes), position, name="winograd")

    def schedule(self, attrs: WinogradAttrs, anchor: WinogradStages, outputs: Tensors, target: Target) -> Schedule:
        """Compute group by group, and in a group some panels together after others; ``_by_group`` says whether groups
        or panels run in parallel."""
        inputs, planes, products = anchor.inputs, anchor.planes, anchor.products
        schedule, main = schedule_around(anchor.result, outputs, anchor.before_result, target)
        stage = schedule[main]
        if anchor.is_unblocked:
            squares = turn_squares(schedule, anchor.blocked, anchor.result, 2, self.lanes)
            group, panels = self._schedule_strips(schedule, stage, squares)
            self._schedule_tiles(schedule, schedule[anchor.blocked], anchor)
            schedule[anchor.blocked].compute_at(stage, panels)
        else:
            n, panel, tile, *inner = self._schedule_tiles(schedule, stage, anchor)
            panels, panel = stage.split(panel, factor=self.blocking.together)
            group, tile = stage.split(tile, factor=self.blocking.group)
            stage.reorder(n, group, panels, panel, tile, *inner)
            group = stage.fuse(n, group)
        by_group = self._by_group(anchor.result, planes)
        stage.parallel(group if by_group else panels)
        if None in map(const_int, anchor.result.shape[2:]):  # where it is open whether the last group is full
            stage.annotate(group, "partition", False)
        block, channel = self._schedule_products(schedule[products])
        schedule[products].compute_at(stage, panels)
        _schedule_inputs(schedule, anchor, parallel=not by_group)
        schedule[inputs].compute_at(stage, group)
        ahead = math.ceil(CORE.ahead_distance / (self.width * planes.dtype.storage_bytes))
        fetch_ahead(schedule[products], planes, channel, ahead)
        fetch_ahead(schedule[products], inputs, block, 1)
        return schedule

    def _schedule_tiles(self, schedule: Schedule, stage: StageView, anchor: WinogradStages) -> list[LoopView]:
        """Tile by tile, all blocks of a panel; its loops. What goes before a tile is computed for each of them."""
        n, block, row, column, lane = stage.loops
        panel, part = stage.split(block, factor=self.parts)
        down, i = stage.split(row, factor=self.attrs.size)
        across, j = stage.split(column, factor=self.attrs.size)
        stage.reorder(n, panel, part, down, across, i, j, lane)
        tile = stage.fuse(down, across)
        loops = [n, panel, tile, part, i, j, lane]
        stage.reorder(*loops)
        stage.vectorize(lane)
        stage.unroll(j)
        made, made_rows = schedule[anchor.made], schedule[anchor.made_rows]
        _schedule_result(made, made_rows)
        made.compute_at(stage, i)
        made_rows.compute_at(stage, part)
        return loops

    def _schedule_strips(
        self, schedule: Schedule, stage: StageView, squares: Sequence[te.Tensor]
    ) -> tuple[LoopView, LoopView]:
        """Channel by channel, what a group and some panels make: rows in blocks, which wait in the second cache. Gives
        the loops over groups, and over panels together."""
        n, k, *plane = stage.loops
        panels, k = stage.split(k, factor=self.blocking.together * self.width)
        block, channel = stage.split(k, factor=self.lanes)
        group, square, lane = split_places(stage, plane, self.strip, self.lanes)
        stage.reorder(n, group, panels, block, square, channel, lane)
        schedule_squares(schedule, squares, stage, (square, channel, lane), self.lanes)
        return stage.fuse(n, group), panels

    def _by_group(self, result: te.Tensor, planes: te.Tensor) -> bool:
        """Whether groups run in parallel. Few of them do not come out even between threads, and each thread would fetch
        all weights; then it is panels, if there are several."""
        images, panels = (const_int(extent) or 1 for extent in (result.shape[0], planes.shape[0]))
        groups = const_int(self.groups)
        return groups is None or images * groups >= MANY_TASKS or panels == self.blocking.together

    def _schedule_products(self, stage: StageView) -> tuple[LoopView, LoopView]:
        """Plane by plane, so that panels share a plane of inputs. A tile of sums stays in registers: positions outside,
        filters inside, as each factor serves all filters. The last one is filled up, or has fewer positions where only
        a run knows how many there are. Gives the loops over blocks of channels, and channels."""
        *outer, panel, i, j, tile, filters, co, ci = stage.loops
        if const_int(self.count) is not None:
            tile = stage.round_up(tile, factor=self.blocking.rows)
        tile, row = stage.split(tile, factor=self.blocking.rows)
        part, lane = stage.split(filters, factor=self.lanes)
        stage.reorder(*outer, i, j, panel, tile, co, ci, row, part, lane)
        stage.vectorize(lane)
        stage.unroll(row)
        stage.unroll(part)
        _keep_apart(stage, 3)
        return co, ci


def _schedule_inputs(schedule: Schedule, anchor: WinogradStages, parallel: bool) -> None:
    """Tile by tile, a vector of channels at a time; a column of x is read at once, into registers."""
    stage, rows = schedule[anchor.inputs], schedule[anchor.taken_rows]
    n, i, j, block, tile, lane = stage.loops
    stage.reorder(n, block, tile, i, j, lane)
    stage.vectorize(lane)
    stage.unroll(j)
    if parallel:
        stage.parallel(block)
    _keep_apart(stage, 2)
    column = _schedule_rows(rows)
    rows.compute_at(stage, tile)
    taken = schedule[anchor.taken]
    _schedule_rows(taken)
    taken.compute_at(rows, column)


def _schedule_result(stage: StageView, half: StageView) -> None:
    *_, column, lane = stage.loops
    stage.vectorize(lane)
    stage.unroll(column)
    _schedule_rows(half)


def _schedule_rows(stage: StageView) -> LoopView:
    """Column by column, all rows at once, which share what they add. Gives the loop over columns."""
    *outer, row, column, lane = stage.loops
    stage.reorder(*outer, column, row, lane)
    stage.vectorize(lane)
    stage.unroll(row)
    return column


def _keep_apart(stage: StageView, dim: int) -> None:
    """Let the planes, whose columns are dimension ``dim``, be an odd number of cache lines apart: a tile has a line of
    each, and lines that are a page apart evict each other from the first cache."""
    line = ARENA_ALIGNMENT // stage.op.outputs[0].dtype.storage_bytes
    stage.storage_align(dim, 2 * line, line)


# Strategy


def winograd_of(attrs: WinogradAttrs, inputs: Sequence[Type], result: Type, target: Target) -> Winograd:
    """The convolution of x and planes of these types to ``result``, in the groups and tiles that cost least."""
    _, planes, kind = (tensor_argument(t, "argument") for t in (*inputs[:2], result))
    panels, _, _, channels, width = panel_extents(planes)
    rows, columns = (MANY_ROWS if (n := const_int(extent)) is None else n for extent in kind.shape[2:4])
    down, across = math.ceil(rows / attrs.size), math.ceil(columns / attrs.size)
    products = Products(attrs.points**2, down * across, channels, panels * width, width, kind.dtype, target)
    lanes, unit = attrs.out.factor("C"), 1
    if attrs.out is NCHW:  # a group makes whole rows, and whole vectors of their positions
        lanes = math.gcd(width, target.lanes(kind.dtype))
        unit = lanes // math.gcd(attrs.size * columns, lanes) * across
    blocking = products.best(unit) if not attrs.group else products.of_groups(attrs.group)
    strip = math.ceil(min(blocking.group // across * attrs.size, rows) * columns / lanes) * lanes
    height, breadth = (simplify((extent + attrs.size - 1) // attrs.size) for extent in kind.shape[2:4])
    return Winograd(attrs, (height, breadth), products, blocking, width, lanes, strip)


@register_strategy(WINOGRAD_CONV2D)
def _strategy(attrs: WinogradAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    x, _, kind = (tensor_argument(t, "argument") for t in (*inputs, result))
    made = winograd_of(attrs, inputs, result, target)
    cycles = made.blocking.cycles + made.products.transforms
    if attrs.out is NCHW:
        cycles += TRANSPOSED_CYCLES * elements_of(kind.shape[1:])
    cost = (const_int(x.shape[0]) or IN_COSTS) * cycles + moved([x, kind])
    strategy = OpStrategy()
    strategy.add_implementation(made.compute, made.schedule, "winograd_conv2d.tiled", cost=cost, direct=False)
    return strategy


# Calls


def winograd_conv2d(
    x: Node,
    planes: Node,
    size: int,
    padding: PerAxis = 0,
    data_layout: str = "NCHW16c",
    out_layout: str = "",
    group: int = 0,
) -> Call:
    """``conv2d`` of x, channels in blocks, by windows of 3×3, whose weights ``winograd_planes`` has transformed.

    ``padding``: one number, one per spatial axis, or all begins and then all ends. ``group`` is how many tiles are
    taken together, which has to be given where the height or the width of x is open.
    """
    with naming(WINOGRAD_CONV2D.name):
        attrs = WinogradAttrs(
            size=size,
            padding=given_padding(padding, 2),
            data_layout=data_layout,
            out_layout=out_layout,
            group=group,
        )
    return WINOGRAD_CONV2D(x, planes, attrs=attrs)
