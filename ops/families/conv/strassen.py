"""``nn.strassen_conv2d``: a convolution by windows of one element, by seven products of quarters.

It is the product of ``matmul/quarters.py`` whose rows are the positions of an image, whose k are channels, and
whose columns are the filters. Channels are in blocks, also in the sums. ``strassen_candidates`` proposes it to the
layout planner, which weighs the cost declared here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.layout import NCHW, Layout
from ....graph.node import Call, Node
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.row_major import ravel_index, unravel_index
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around
from ....schedules.channel_tile import ChannelTile, channel_tile, tile_cycles
from ....schedules.register_tile import RegisterTile
from ....te.tensor import Tensors
from ...definition.arguments import PerAxis, naming, per_axis
from ...definition.attrs import Attrs, all_positive, attr
from ...definition.cost import elements_of
from ...definition.layout_rule import LayoutCandidate, Packed, ValueLayout
from ...definition.registry import OpPattern, register_op
from ...definition.relations import same_dtype, tensor_argument
from ...definition.strategy import OpStrategy, Stages, register_strategy
from ..matmul.quarters import PRODUCTS, Planes, Quartered, ResultLoops, known_planes
from ..window import axis_extents, check_ranks, known_window, window_shape
from .layouts import channel_block, check_blocked, nchw
from .problem import ConvProblem

# 1. and 2. Attributes and type relation.


@dataclass(frozen=True, kw_only=True)
class StrassenConvAttrs(Attrs):
    """The attributes of ``nn.strassen_conv2d``, which has neither padding nor groups."""

    strides: tuple[int, ...] = attr("step from position to position, of H and of W", (1, 1), all_positive)
    data_layout: str = attr("layout of x, with channels in blocks", "NCHW16c")
    out_layout: str = attr("layout of the result, alike; empty: that of x", "")

    @property
    def data(self) -> Layout:
        """The layout of x."""
        return Layout(self.data_layout)

    @property
    def out(self) -> Layout:
        """The layout of the result; that of x unless another one is given."""
        return Layout(self.out_layout or self.data_layout)


def _relation(types: Sequence[Type], attrs: StrassenConvAttrs) -> Type:
    x, planes = tensor_argument(types[0], "x"), tensor_argument(types[1], "planes")
    panels, terms, width = known_planes(planes)
    same_dtype([x, planes], ["x", "planes"])
    check_ranks(2, strides=attrs.strides)
    check_blocked(attrs.data, "data_layout")
    check_blocked(attrs.out, "out_layout")
    extents = axis_extents(x, attrs.data_layout, "NCHW", "C", ("x", "data_layout"))
    if not const_int(extents["H"]) or not const_int(extents["W"]):
        raise TypeInferenceError(f"x must have a known height and width, not 0, found {x}")
    if const_int(extents["C"]) != 2 * terms or terms % attrs.data.factor("C"):
        raise TypeInferenceError(f"x has {extents['C']} channels, but planes have 2 · {terms}, each half in blocks")
    if width % attrs.out.factor("C"):
        raise TypeInferenceError(f"panels of {width} filters do not fall into blocks of out_layout {attrs.out}")
    positions = window_shape([extents["H"], extents["W"]], (1, 1), attrs.strides, (1, 1), (0,) * 4)
    named = {"N": extents["N"], "C": as_index(2 * panels * width), "H": positions[0], "W": positions[1]}
    return TensorType(attrs.out.shape(named), x.dtype)


# 3. Registration.

STRASSEN_CONV2D = register_op(
    "nn.strassen_conv2d",
    "Convolution over H and W by windows of one element, by seven products of quarters, as Strassen does it, those of "
    "the weights summed before",
    [
        ("x", "[N, C, H, W], channels in blocks as data_layout says"),
        ("planes", "[K / 2 / f, 7, C / 2, f]: the sums of quarters, in panels of f filters"),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    StrassenConvAttrs,
    support_level=10,
)

# 4. and 5. Compute, schedule and strategy.

SPARE_REGISTERS = 2
"""For the vectors of filters of a second step of the sum."""


@dataclass(frozen=True, slots=True)
class StrassenStages(Stages):
    """The sums of quarters of x, and the products of these with the planes."""

    sums: te.Tensor
    products: te.Tensor


@dataclass(frozen=True, slots=True)
class StrassenConv:
    """A convolution of which all but the number of images is known, to ``outputs`` positions; its blocking."""

    outputs: tuple[int, ...]
    blocking: Quartered

    def compute(self, attrs: StrassenConvAttrs, inputs: Tensors, result: Type) -> StrassenStages:
        """The result, over the sums of quarters of x, whose rows are positions, and the seven products of these with
        the planes."""
        x, planes = inputs
        blocking, block = self.blocking, attrs.data.factor("C")
        blocks = blocking.reduction_extent // 2 // block

        def left(batch: Sequence[Axis], position: Expr, k: int, at: Axis, lane: Axis) -> Expr:
            y, across = unravel_index(position, self.outputs)
            return x[(*batch, k * blocks + at, y * attrs.strides[0], across * attrs.strides[1], lane)]

        sums = blocking.sums(x.shape[:1], block, left)
        products = blocking.products(sums, planes)

        def element(n: Axis, ko: Axis, y: Axis, across: Axis, ki: Axis) -> Expr:
            return blocking.result(
                products, [n], ravel_index([as_index(y), as_index(across)], self.outputs), ko * blocking.tile.lanes + ki
            )

        made = te.compute(tensor_argument(result, "result").shape, element, name="strassen")
        return StrassenStages(made, sums, products)

    def schedule(self, attrs: StrassenConvAttrs, anchor: StrassenStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``compute``, by loops of the result over halves of positions and of filters; ``Quartered``
        does the rest."""
        schedule, main = schedule_around(anchor.result, outputs, [anchor.products, anchor.sums], target)
        stage, blocking = schedule[main], self.blocking.decided(schedule)
        n, block, y, across, lane = stage.loops[: main.ndim]
        i, row = stage.split(stage.fuse(y, across), factor=blocking.half)
        j, block = stage.split(block, factor=blocking.columns // 2 // blocking.tile.lanes)
        panel, vector = stage.split(block, factor=blocking.width // blocking.tile.lanes)
        blocking.schedule(schedule, stage, ResultLoops([n], i, row, j, panel, vector, lane), anchor.products)
        return schedule


@register_strategy(STRASSEN_CONV2D)
def _strategy(attrs: StrassenConvAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    planes, kind = (tensor_argument(t, "argument") for t in (inputs[1], result))
    panels, terms, width = known_planes(planes)
    outputs = known_window(kind.shape[2:4])
    lanes, filters = attrs.out.factor("C"), 2 * panels * width
    tile = _tile(math.prod(outputs), width // lanes, lanes, kind.dtype, target)
    blocking = Quartered(math.prod(outputs), 2 * terms, filters, width, tile, kind.dtype, target)
    cycles = tile_cycles(1, blocking.half, ChannelTile(1, tile.rows, tile.vectors), target.fma_per_cycle)
    steps = cycles * filters / 2 / tile.columns
    made = StrassenConv(outputs, blocking)
    cost = blocking.cost(
        elements_of(kind.shape[:1]), PRODUCTS * terms * steps * math.ceil(lanes / target.lanes(kind.dtype))
    )
    strategy = OpStrategy()
    strategy.add_implementation(made.compute, made.schedule, "strassen_conv2d.panels", cost=cost, direct=False)
    return strategy


def _tile(positions: int, blocks: int, lanes: int, kind: DType, target: Target) -> RegisterTile:
    """The register tile of a quarter that has so many blocks of filters, each of ``lanes``."""
    registers = target.vector_registers // math.ceil(lanes / target.lanes(kind)) - SPARE_REGISTERS
    tile = channel_tile(1, math.ceil(positions / 2), blocks, registers)
    return RegisterTile(tile.columns, tile.blocks, lanes)


# 6. and 7. Who calls it.


def strassen_candidates(problem: ConvProblem, given: ValueLayout | None) -> Iterator[LayoutCandidate]:
    """The layout rule of a 2-D convolution by constant weights of one element: channels and filters in blocks, of
    which there are even numbers."""
    outputs = problem.outputs
    if outputs is None or not _serves(problem, outputs):
        return
    filters, channels, lanes = problem.filters, problem.group_channels, problem.lanes
    block, data = channel_block(filters, lanes), channel_block(channels, lanes)
    if given is not None:
        data = given.layout.factor("C") if given.primal is NCHW and given.layout.is_blocked else None
    if block is None or data is None or filters % (2 * block) or channels % (2 * data):
        return
    held, out = ValueLayout(NCHW, nchw(data)), ValueLayout(NCHW, nchw(block))
    if given not in (None, held):
        return
    tile = _tile(math.prod(outputs), filters // 2 // block, block, problem.dtype, problem.target)
    make = Planes(tile.columns, transposed=True)
    packed = Packed(make, make.type_of(channels, filters, problem.dtype))
    made = StrassenConvAttrs(strides=problem.attrs.strides, data_layout=str(held), out_layout=str(out))
    yield LayoutCandidate((held, packed), made, out, STRASSEN_CONV2D)


def _serves(problem: ConvProblem, outputs: tuple[int, ...]) -> bool:
    plain = problem.rank == 2 and problem.is_plain and problem.has_plain_kernel and problem.attrs.groups == 1
    wide = problem.is_of_one_float and problem.dtype.bits >= 32
    known = all(const_int(extent) for extent in problem.x.shape[2:]) and math.prod(outputs) > 1 and problem.batch != 0
    return problem.constant_weight and plain and problem.is_pointwise and wide and known


def strassen_conv2d(
    x: Node, planes: Node, strides: PerAxis = 1, data_layout: str = "NCHW16c", out_layout: str = ""
) -> Call:
    """``conv2d`` of x, channels in blocks, by windows of one element, the quarters of whose weights are summed in
    ``planes``."""
    with naming(STRASSEN_CONV2D.name):
        attrs = StrassenConvAttrs(
            strides=per_axis(strides, 2, "strides"), data_layout=data_layout, out_layout=out_layout
        )
    return STRASSEN_CONV2D(x, planes, attrs=attrs)
