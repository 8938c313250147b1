"""roi_align: an image read between its elements at positions inside boxes, in as many bins for each box.

How many positions a bin has may follow from the boxes, which are data, so it is a loop of its own (``te.extern``):
boxes and blocks of channels run in parallel. The channels of a block are the lanes of vectors, which share the
positions and weights of what they read. Channels may be the last axis, which the layout planner weighs against reading
each element by itself.

Source: He et al., Mask R-CNN (2017), as ONNX's RoiAlign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import Layout
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import IRBuilder
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.stmt import Stmt
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.arguments import PerAxis, flag, integer, naming, per_axis, real
from ..definition.attrs import Attrs, attr, one_of
from ..definition.cost import elements, moved
from ..definition.layout_rule import LayoutCandidate, ValueLayout
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import schedule_default
from ..definition.registry import OpPattern, register_op
from ..definition.relations import same_extent, tensor_argument
from ..definition.strategy import OpStrategy, register_strategy
from .roi_bins import IMAGE, LANES, Bins, binned, each_block, positive

GROUP = OpGroup.IMAGES

USUAL_SAMPLES = 2
"""Along an axis of a bin, where boxes tell."""
ELEMENTS_CYCLES, VECTORS_CYCLES = 200.0, 40.0
"""To read a position of a block of channels: element by element, and in vectors."""

MOST_SAMPLES = 1 << 16
"""Along an axis of a bin, so that a box that is out of all bounds comes to an end."""


def _not_negative(value: int) -> str | None:
    return None if value >= 0 else "must be 0 or more"


@dataclass(frozen=True)
class RoiAlignAttrs(Attrs):
    """The attributes of ``roi_align``."""

    bins: tuple[int, ...] = attr("the rows and columns of bins of a box", check=positive)
    scale: float = attr("how many elements of x a unit of the boxes is", 1.0)
    samples: int = attr("samples along each axis of a bin; 0: one for each element, rounded up", 0, _not_negative)
    mode: str = attr("what becomes of the samples of a bin", "avg", one_of("avg", "max"))
    half_pixel: bool = attr("whether elements lie at the middles of units, else at their beginnings", True)
    channels_last: bool = attr("whether channels are the last axis of x and of the result, else the second", False)

    @property
    def axes_of_image(self) -> tuple[int, int]:
        """The axes of rows and columns."""
        return (1, 2) if self.channels_last else (2, 3)


def _align_relation(types: Sequence[Type], attrs: RoiAlignAttrs) -> Type:
    x, boxes, samples = map(tensor_argument, types, ("x", "boxes", "batch_indices"))
    if attrs.channels_last and x.ndim == 4:
        n, rows, columns, c = x.shape
        boxes_of, channels, *bins = binned(TensorType((n, c, rows, columns), x.dtype), boxes, 4, attrs.bins).shape
        result = TensorType((boxes_of, *bins, channels), x.dtype)
    else:
        result = binned(x, boxes, 4, attrs.bins)
    if samples.ndim != 1 or not samples.dtype.is_data_int:
        raise TypeInferenceError(f"batch_indices must be integers, one for each box, found {samples}")
    same_extent(boxes.shape[0], samples.shape[0], f"{boxes.shape[0]} boxes have {samples.shape[0]} batch_indices")
    return result


def _inside(index: Expr, extent: Expr) -> Expr:
    return (index >= 0) & (index < extent)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """The part of an axis that a box takes, in bins with some samples each."""

    builder: IRBuilder
    extent: Expr
    start: Expr
    bin_size: Expr
    samples: Expr

    def at(self, number: Expr, sample: Expr) -> Expr:
        """Where a sample of a bin lies."""
        kind = self.start.dtype
        within = (te.cast(sample, kind) + 0.5) * self.bin_size / te.cast(self.samples, kind)
        return self.builder.let("at", self.start + te.cast(number, kind) * self.bin_size + within).as_expr()

    def is_near(self, at: Expr) -> Expr:
        """Whether a position is within the image, or at most an element beside it; NaN is not, and none is of an empty
        image."""
        return (at >= -1.0) & (at <= te.cast(self.extent, at.dtype)) & (self.extent > 0)

    def neighbours(self, at: Expr) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
        """The elements around a position that is near, and their weights."""
        ib, last = self.builder, self.extent - 1
        inside = te.minimum(te.maximum(at, te.const(0, at.dtype)), te.cast(last, at.dtype))
        position = ib.let("place", inside).as_expr()
        low = ib.let("low", te.minimum(as_index(te.cast(position, "int64")), last)).as_expr()
        part = ib.let("part", position - te.cast(low, at.dtype)).as_expr()
        return (low, 1.0 - part), (ib.let("high", te.minimum(low + 1, last)).as_expr(), part)


def _line(ib: IRBuilder, attrs: RoiAlignAttrs, begin: Expr, end: Expr, extent: Expr, bins: int) -> _Line:
    kind = accumulator(begin.dtype)
    offset = te.const(0.5 if attrs.half_pixel else 0.0, kind)
    start, stop = (
        ib.let("end", te.arithmetic_fence(widened(v) * attrs.scale) - offset).as_expr() for v in (begin, end)
    )
    length: Expr = stop - start
    if not attrs.half_pixel:
        length = te.maximum(length, te.const(1, kind))
    size = ib.let("bin_size", length / te.const(bins, kind)).as_expr()
    if attrs.samples:
        return _Line(ib, extent, start, size, as_index(attrs.samples))
    wanted = te.select(size > 0, te.minimum(te.ceil(size), te.const(MOST_SAMPLES, kind)), te.const(0, kind))
    return _Line(ib, extent, start, size, ib.let("samples", as_index(te.cast(wanted, "int64"))).as_expr())


def _align_compute(attrs: RoiAlignAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        x, boxes, samples, target = map(ib.buffer_ptr, (*ins, *outs))
        kind = accumulator(x.dtype)
        with each_block(ib, x.shape[-1 if attrs.channels_last else 1], boxes) as (box, first):
            sample = ib.let("sample", as_index(samples[box])).as_expr()
            totals = ib.allocate(kind, (LANES,), "totals")
            bins = Bins(ib, x, target, sample, box, first, totals, attrs.channels_last)
            rows, columns = (
                _line(ib, attrs, boxes[box, 1 - k], boxes[box, 3 - k], x.shape[axis], attrs.bins[k])
                for k, axis in enumerate(attrs.axes_of_image)
            )
            count = te.cast(te.maximum(rows.samples * columns.samples, 1), kind)
            with (
                ib.for_range(0, attrs.bins[0], name="row") as row,
                ib.for_range(0, attrs.bins[1], name="column") as column,
            ):
                bins.fill(te.const(0, kind))
                with ib.if_scope(_inside(sample, x.shape[0])):
                    _sample_bin(bins, attrs, rows, columns, (row.as_expr(), column.as_expr()))
                bins.store(
                    row.as_expr(), column.as_expr(), lambda total: total / count if attrs.mode == "avg" else total
                )
        return ib.get()

    return te.extern(tensor_argument(result, "result").shape, inputs, body, "roi_align", inputs[0].dtype)


def _sample_bin(bins: Bins, attrs: RoiAlignAttrs, rows: _Line, columns: _Line, position: tuple[Expr, Expr]) -> None:
    """Take all samples of a bin together. Where they are not averaged, a sample is the greatest of four weighted
    elements; one that is far from the image is 0."""
    ib, kind = bins.builder, bins.totals.dtype
    averaged = attrs.mode == "avg"
    if not averaged:
        bins.fill(te.select(rows.samples * columns.samples > 0, te.const(float("-inf"), kind), te.const(0, kind)))

    def take(value: Callable[[Expr], Expr]) -> None:
        with bins.channels() as (lane, channel):
            old = bins.totals[lane]
            bins.totals[lane] = old + value(channel) if averaged else te.maximum(old, value(channel))

    def take_nothing() -> None:
        if not averaged:
            with ib.else_scope():
                take(lambda channel: te.const(0, kind))

    with ib.for_range(0, rows.samples, name="sample_row") as i:
        y = rows.at(position[0], i.as_expr())
        with ib.if_scope(rows.is_near(y)):
            above, below = rows.neighbours(y)
            with ib.for_range(0, columns.samples, name="sample_column") as j:
                x = columns.at(position[1], j.as_expr())
                with ib.if_scope(columns.is_near(x)):
                    corners = tuple(
                        (r, c, ib.let("weight", v * w).as_expr())
                        for r, v in (above, below)
                        for c, w in columns.neighbours(x)
                    )
                    take(lambda channel: _interpolated(bins, corners, channel, averaged))
                take_nothing()
        take_nothing()


def _interpolated(bins: Bins, corners: Sequence[tuple[Expr, Expr, Expr]], channel: Expr, averaged: bool) -> Expr:
    weighted = (weight * bins.read(channel, row, column) for row, column, weight in corners)
    return reduce(add if averaged else te.maximum, weighted)


def _layout_rule(call: Call, given: ValueLayout | None, target: Target) -> Iterator[LayoutCandidate]:
    """Channels may be the last axis."""
    held = ValueLayout(Layout("NCHW"), Layout("NHWC"))
    if not call.attrs.channels_last and given in (None, held):
        yield LayoutCandidate((held, None, None), replace(call.attrs, channels_last=True), held)


ROI_ALIGN = register_op(
    "nn.roi_align",
    "what x has inside of boxes, in bins, each the average or the greatest of samples between its elements",
    [
        (IMAGE[0], f"{IMAGE[1]}, or with the channels last"),
        ("boxes", "[boxes, 4]: x1, y1, x2, y2"),
        ("batch_indices", "[boxes], integers; 0 is read of others"),
    ],
    _align_relation,
    OpPattern.OPAQUE,
    RoiAlignAttrs,
    layout_rule=_layout_rule,
)


@register_strategy(ROI_ALIGN)
def _strategy(attrs: RoiAlignAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy, kind = OpStrategy(), tensor_argument(result, "result")
    positions = (attrs.samples or USUAL_SAMPLES) ** 2 * elements(kind)
    of_block = ELEMENTS_CYCLES if not attrs.channels_last else VECTORS_CYCLES
    cost = moved([*inputs, result]) + positions * of_block / LANES
    strategy.add_implementation(_align_compute, schedule_default, "nn.roi_align.generic", cost=cost)
    return strategy


def roi_align(
    x: Node,
    boxes: Node,
    batch_indices: Node,
    bins: PerAxis = 1,
    scale: float = 1.0,
    samples: int = 0,
    mode: str = "avg",
    half_pixel: bool = True,
    channels_last: bool = False,
) -> Call:
    """What ``x`` [batch, channels, rows, columns] has inside of ``boxes`` [n, 4], which are (x1, y1, x2, y2) in units
    of ``scale`` elements: [n, channels, rows, columns] of ``bins``. ``batch_indices`` [n] are the samples that the
    boxes are of; a box of a sample that there is not is 0.

    A bin is the average of ``samples`` by ``samples`` positions, 0 for one an element, each interpolated between four
    elements; with ``mode="max"`` it is the greatest of all weighted elements. ``half_pixel`` says that elements lie at
    the middles of units; without it a box is an element large at least. ``channels_last``: x and the result
    have their channels as the last axis.
    """
    with naming("roi_align", x):
        attrs = RoiAlignAttrs(
            per_axis(bins, 2, "bins"),
            real(scale, "scale"),
            integer(samples, "samples"),
            mode,
            flag(half_pixel, "half_pixel"),
            flag(channels_last, "channels_last"),
        )
    return ROI_ALIGN(x, boxes, batch_indices, attrs=attrs)
